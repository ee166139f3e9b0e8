import type { Random } from "../kernel/random.ts";
import type { Clock } from "../kernel/clock.ts";
import { ApiError, methodNotAllowed, pathNotFound } from "../kernel/status.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";
import type { Authenticator } from "./authentication/index.ts";
import { authenticate } from "./authentication/index.ts";
import type { Authorizer } from "./authorization/index.ts";
import { refused, refusedPath, refuseImpersonation } from "./authorization/index.ts";
import type { Catalogue, ResourceHandler, User } from "./contract.ts";
import type { DocumentHandler } from "./documents/index.ts";
import type { Log } from "./log.ts";
import { createLogThrottle } from "./log.ts";
import { createFailureReport } from "./routes/failures.ts";
import type { Health } from "./routes/health.ts";
import type { MetricsSource } from "./routes/metrics.ts";
import { attributesOf } from "./routes/resources.ts";
import { statusResponse } from "./routes/responses.ts";
import type { Call, Route, RouteMatch, UserCall } from "./routes/route.ts";
import { compileRoutes } from "./routes/route.ts";
import { createRouteTable } from "./routes/table.ts";
import type { ParsedUrl } from "./routes/url.ts";
import { parseUrl } from "./routes/url.ts";

export interface ApiServerOptions {
  readonly catalogue: Catalogue;
  readonly resources: ResourceHandler;
  readonly discovery: DocumentHandler;
  readonly openApi: DocumentHandler;
  /** Asked in this order; the first that recognises a token decides who it is. */
  readonly authenticators: readonly Authenticator[];
  readonly authorizer: Authorizer;
  readonly health: Health;
  /** Served on /metrics. */
  readonly metrics?: MetricsSource;
  /** Told of every request that was answered. */
  readonly observe?: (served: ServedRequest) => void;
  /** Of this build: "0.1.0". */
  readonly version: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

/** A request that was answered, in few words: none of them is the name of an object. */
export interface ServedRequest {
  /** The verb of Kubernetes, or the method where no object was asked for. */
  readonly verb: string;
  /** The plural of a kind, or the pattern of a path that is no object's. */
  readonly resource: string;
  readonly code: number;
  /** Until the answer, or of a watch until it began. */
  readonly tookMs: number;
}

/** The API, freed from its transport: `http` puts it on a socket, clients call it in process. */
export interface ApiServer {
  /** Answers a request. Never rejects: whatever goes wrong becomes a Status. */
  handle(
    request: WireRequest,
    peer?: { readonly remoteAddress?: string | undefined },
  ): Promise<WireResponse>;
  /** The same for a user who is known already: the controllers in this process. */
  handleAs(user: User, request: WireRequest): Promise<WireResponse>;
  /** Whether these headers carry valid credentials. */
  knows(headers: WireRequest["headers"]): boolean;
  /** Everything that is served, to be walked by tests. */
  readonly routes: readonly Route[];
  /** Ends the open watches. */
  close(): void;
}

export function createApiServer(options: ApiServerOptions): ApiServer {
  const routes = createRouteTable(options);
  const findRoute = compileRoutes(routes);
  const report = createFailureReport(options);
  const noteStranger = createStrangerLog(options);
  const identify = (headers: WireRequest["headers"]): User => {
    return authenticate(options.authenticators, headers);
  };
  const answer = async (request: WireRequest, who: () => User): Promise<WireResponse> => {
    const startMs = options.clock.monotonicMs();
    const asked: Asked = { verb: "other", resource: "other" };
    const response = await attempt(request, who, asked);
    const tookMs = options.clock.monotonicMs() - startMs;
    options.observe?.({ ...asked, code: response.status, tookMs });
    return response;
  };
  const attempt = async (
    request: WireRequest,
    who: () => User,
    asked: Asked,
  ): Promise<WireResponse> => {
    try {
      const url = parseUrl(request.url);
      return await serve(options, { request, url, found: findRoute(url.segments), who, asked });
    } catch (error) {
      return statusResponse(report(error, request));
    }
  };
  return {
    handle: async (request, peer) => {
      const response = await answer(request, () => identify(request.headers));
      if (response.status === 401) noteStranger(peer?.remoteAddress);
      return response;
    },
    handleAs: (user, request) => answer(request, () => user),
    knows: (headers) => isKnown(() => identify(headers)),
    routes,
    close: () => options.resources.close(),
  };
}

/** What was asked for, as far as it is known. */
interface Asked {
  verb: string;
  resource: string;
}

interface Arrival {
  readonly request: WireRequest;
  readonly url: ParsedUrl;
  readonly found: RouteMatch | undefined;
  /** Throws 401 where nobody is known. */
  readonly who: () => User;
  readonly asked: Asked;
}

/**
 * Who, then whether there is such a thing, then whether they may. Without credentials nobody learns
 * even that a path does not exist.
 */
function serve(options: ApiServerOptions, arrival: Arrival): WireResponse | Promise<WireResponse> {
  const { request, url, found, who, asked } = arrival;
  if (found?.route.access === "public") {
    asked.resource = found.route.pattern;
    return found.route.serve(callOf(request, url, found));
  }
  const user = who();
  refuseImpersonation(user, request.headers);
  if (found === undefined) throw pathNotFound();
  const call = { ...callOf(request, url, found), user };
  if (found.route.access !== "authorized") {
    asked.verb = call.method;
    asked.resource = found.route.pattern;
    return servePath(options, found.route, call);
  }
  const wanted = found.route.resolve(call);
  asked.verb = wanted.verb;
  asked.resource = wanted.resource.plural;
  const attributes = attributesOf(wanted);
  const verdict = options.authorizer.authorize(user, attributes);
  if (!verdict.allowed) throw refused(user, attributes, verdict.reason);
  return options.resources.handle(wanted);
}

/** What is no object: open to all users, or to those who may do what it needs. */
function servePath(
  { authorizer }: ApiServerOptions,
  route: Exclude<Route, { access: "authorized" }>,
  call: UserCall,
): WireResponse | Promise<WireResponse> {
  const isOpen =
    route.access !== "permitted" || authorizer.authorize(call.user, route.needs).allowed;
  if (!isOpen) throw refusedPath(call.user, call.method.toLowerCase(), route.pattern);
  return route.serve(call);
}

function callOf(request: WireRequest, url: ParsedUrl, found: RouteMatch): Call {
  const method = found.route.methods.find((candidate) => candidate === request.method);
  if (method === undefined) throw methodNotAllowed();
  return { request, url, method, params: found.params };
}

function isKnown(identify: () => User): boolean {
  try {
    identify();
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return false;
  }
}

/**
 * Tokens cannot be guessed, so nobody is slowed down for trying; but an admin wants to see that
 * somebody tries, and the log must not be flooded by it.
 */
function createStrangerLog(options: ApiServerOptions): (peer: string | undefined) => void {
  const mayLog = createLogThrottle(options.clock);
  return (peer = "unknown") => {
    if (mayLog(peer)) options.log("warn", "requests without valid credentials", { peer });
  };
}
