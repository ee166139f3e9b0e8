import { sleep } from "../../../kernel/clock.ts";
import { authenticate } from "../access/authenticate.ts";
import { checkPermission } from "../access/check.ts";
import type { Caller } from "../access/rights.ts";
import type { Cluster } from "../cluster.ts";
import type { Call } from "../endpoint.ts";
import { forbidden, PveError } from "../errors.ts";
import type { RequestFault } from "../faults.ts";
import type { Outcome, Process } from "../process.ts";
import { checkParameters, type Parameters, type RawParameters } from "../schema/check.ts";
import { decodeRequest, type Upload } from "./body.ts";
import { dataResponse, errorResponse, type Format } from "./format.ts";
import {
  type ApiRequest,
  type ApiResponse,
  ConnectionLost,
  ConnectionRefused,
  plainResponse,
} from "./message.ts";
import { findRoute, type Route } from "./routes.ts";
import { Workers } from "./workers.ts";

const verbs: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "DELETE"]);
const workersPerNode = 3;
/** Numbers of request processes: far above those of tasks, and not kept anywhere. */
const firstRequestPid = 2 ** 40;

/** The HTTP side of a cluster: from a request to a reply, through whichever node was asked. */
export class Api {
  readonly #cluster: Cluster;
  readonly #workers = new Workers(workersPerNode);
  #nextPid = firstRequestPid;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  /** Rejects with ConnectionLost or ConnectionRefused where no reply comes. */
  async send(request: ApiRequest): Promise<ApiResponse> {
    const { clock, faults } = this.#cluster;
    const via = this.#entryNode(request);
    const fault = faults.takeRequest(request);
    if (fault?.kind === "delay") await sleep(clock, fault.delayMs ?? 0);
    if (fault?.kind === "loseRequest") throw new ConnectionLost("socket hang up");
    const response = await this.#answer(request, via, fault);
    if (fault?.kind === "loseReply") throw new ConnectionLost("socket hang up");
    if (response.status === 401) await sleep(clock, this.#cluster.timing.refusalMs);
    // The node that was asked writes its own time, also where another one worked on the request.
    const date = new Date(this.#cluster.nodeTimeMs(via)).toUTCString();
    return { ...response, headers: { ...response.headers, date } };
  }

  /** The power of a node failed: its workers are gone. */
  reset(node: string): void {
    this.#workers.reset(node);
  }

  #entryNode({ via }: ApiRequest): string {
    const name = via ?? this.#cluster.state.nodes.find(({ isOnline }) => isOnline)?.name ?? "";
    if (this.#cluster.findNode(name)?.isOnline !== true) {
      throw new ConnectionRefused(`connect ECONNREFUSED ${name}:8006`);
    }
    return name;
  }

  async #answer(
    request: ApiRequest,
    via: string,
    fault: RequestFault | undefined,
  ): Promise<ApiResponse> {
    const { quirks } = this.#cluster;
    if (!verbs.has(request.method)) {
      return plainResponse(501, `method '${request.method}' not available`);
    }
    const where = placeOf(request.path);
    if (typeof where === "string") {
      return plainResponse(501, where, quirks.plainErrorBody ? where : "");
    }
    const decoded = decodeRequest(request, quirks);
    if (decoded.kind === "refused") return decoded.response;
    const route = findRoute(this.#cluster.state.release, request.method, where.path);
    const caller = this.#callerOf(request, route);
    if (typeof caller === "string") return plainResponse(401, caller);
    try {
      if (route === undefined) throw notImplemented(request.method, where.path);
      const raw = { ...decoded.parameters, ...route.parameters };
      const prepared = this.#prepare(route, { raw, caller, via, upload: decoded.upload, fault });
      return dataResponse(where.format, await this.#run(route, prepared, via));
    } catch (error) {
      return this.#failure(error, where.format, decoded.upload);
    }
  }

  #failure(error: unknown, format: Format, upload: Upload | undefined): ApiResponse {
    if (error instanceof ConnectionLost) throw error;
    const isRefused = error instanceof PveError && error.status === 403;
    // An upload is refused before the API sees it: by the server itself, without a body.
    if (isRefused && upload !== undefined) return plainResponse(403, error.message);
    return errorResponse(format, this.#cluster.quirks, error);
  }

  /** The caller, or why it is refused. */
  #callerOf(request: ApiRequest, route: Route | undefined): Caller | string {
    if (route?.method.u === "world") return { id: "", userid: "" };
    const { state, rights, quirks, clock } = this.#cluster;
    const { method, headers } = request;
    const found = authenticate(
      { state, rights, quirks },
      { method, headers, nowMs: clock.nowMs() },
    );
    if (found.kind === "caller") return found.caller;
    return found.kind === "nobody" ? "No ticket" : found.reason;
  }

  /** Finds the node, checks rights and parameters: in this order, as Proxmox does. */
  #prepare(
    { method }: Route,
    given: {
      readonly raw: RawParameters;
      readonly caller: Caller;
      readonly via: string;
      readonly upload: Upload | undefined;
      readonly fault: RequestFault | undefined;
    },
  ): Call {
    const { raw, caller, via, upload, fault } = given;
    const cluster = this.#cluster;
    const node = this.#targetNode(method, raw, via);
    if (method.T === 1 && caller.token !== undefined) {
      throw forbidden("not available with API token, need proper ticket.");
    }
    checkPermission({ rights: cluster.rights, caller, parameters: textsOf(raw) }, method);
    const parameters = checkParameters(cluster.state.release, method, raw);
    return {
      cluster,
      caller,
      parameters,
      node,
      ...(upload === undefined ? {} : { upload }),
      ...(fault?.kind === "noWorker" ? { hasNoWorker: true } : {}),
    };
  }

  /** The node that the path names does the work; the one that was asked passes it on. */
  #targetNode(method: Route["method"], raw: RawParameters, via: string): string {
    const named = raw["node"];
    const node = typeof named !== "string" || named === "localhost" ? via : named;
    const isPassedOn = method.n === 1 || method.d === 1;
    if (isPassedOn && !this.#cluster.node(node).isOnline) {
      throw new PveError("No route to host", 595);
    }
    return node;
  }

  /** Runs the endpoint as a process of its node. After thirty seconds nobody waits for it. */
  #run(route: Route, call: Call, via: string): Promise<unknown> {
    const { clock, timing } = this.#cluster;
    return new Promise((resolve, reject) => {
      const limit = clock.after(timing.proxyLimitMs, () => {
        reject(new PveError("Connection timed out", 596));
      });
      this.#start(route, call, (outcome) => {
        limit();
        if (outcome.kind === "done") resolve(outcome.value);
        else if (outcome.kind === "failed") reject(outcome.error);
        else if (via === call.node) reject(new ConnectionLost("socket hang up"));
        else reject(new PveError("Connection reset by peer", 596));
      });
    });
  }

  #start(route: Route, call: Call, onEnd: (outcome: Outcome<unknown>) => void): void {
    const { processes } = this.#cluster;
    const pid = this.#nextPid++;
    const run = (onOver: () => void): void => {
      const body: Process<unknown> = route.endpoint(call);
      const over = (outcome: Outcome<unknown>): void => {
        onOver();
        onEnd(outcome);
      };
      processes.start({ pid, node: call.node, name: route.name, body, onEnd: over });
    };
    if (route.method.d !== 1) run(() => undefined);
    else this.#workers.acquire(call.node, () => run(() => this.#workers.release(call.node)));
  }
}

function notImplemented(method: string, path: string): PveError {
  return new PveError(`Method '${method} ${path}' not implemented`, 501);
}

/** Parameters as the permission checks read them. Most are text already. */
function textsOf(raw: RawParameters): Parameters {
  if (areTexts(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, String(value)]));
}

function areTexts(raw: RawParameters): raw is Parameters {
  for (const name in raw) if (typeof raw[name] !== "string") return false;
  return true;
}

/** The format and the path of a URL, or why there is none. */
function placeOf(url: string): { format: Format; path: string } | string {
  const query = url.indexOf("?");
  const plain = query < 0 ? url : url.slice(0, query);
  const found = /^\/+api2\/+([^/]+)(\/.*)?$/.exec(plain);
  const path = cleanPath(found?.[2] ?? "/");
  const format = found?.[1];
  if (format === "json" || format === "extjs") return { format, path };
  return found === null ? `no such file '${plain}'` : `no formatter for uri ${path}, ${format}`;
}

/** Without empty parts, and with each part decoded. */
function cleanPath(path: string): string {
  if (!/%|\/\/|\/$/.test(path)) return path;
  const parts = path.split("/").filter((part) => part !== "");
  return `/${parts.map(decodePart).join("/")}`;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
