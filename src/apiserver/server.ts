import type { Random } from "../kernel/random.ts";
import type { Clock } from "../kernel/clock.ts";
import { ApiError, methodNotAllowed, pathNotFound } from "../kernel/status.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";
import type { Authenticator } from "./authentication/index.ts";
import { authenticate } from "./authentication/index.ts";
import type { Authorizer } from "./authorization/index.ts";
import { refused, refuseImpersonation } from "./authorization/index.ts";
import type { Catalogue, ResourceHandler, User } from "./contract.ts";
import type { DocumentHandler } from "./documents/index.ts";
import type { Log } from "./log.ts";
import { createLogThrottle } from "./log.ts";
import { createFailureReport } from "./routes/failures.ts";
import type { Health } from "./routes/health.ts";
import { attributesOf } from "./routes/resources.ts";
import { statusResponse } from "./routes/responses.ts";
import type { Call, Route, RouteMatch } from "./routes/route.ts";
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
  /** Of this build: "0.1.0". */
  readonly version: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
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
    try {
      const url = parseUrl(request.url);
      return await serve(options, { request, url, found: findRoute(url.segments), who });
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

interface Arrival {
  readonly request: WireRequest;
  readonly url: ParsedUrl;
  readonly found: RouteMatch | undefined;
  /** Throws 401 where nobody is known. */
  readonly who: () => User;
}

/**
 * Who, then whether there is such a thing, then whether they may. Without credentials nobody learns
 * even that a path does not exist.
 */
function serve(options: ApiServerOptions, arrival: Arrival): WireResponse | Promise<WireResponse> {
  const { request, url, found, who } = arrival;
  if (found?.route.access === "public") {
    return found.route.serve(callOf(request, url, found));
  }
  const user = who();
  refuseImpersonation(user, request.headers);
  if (found === undefined) throw pathNotFound();
  const call = { ...callOf(request, url, found), user };
  if (found.route.access === "authenticated") return found.route.serve(call);
  const wanted = found.route.resolve(call);
  const attributes = attributesOf(wanted);
  const verdict = options.authorizer.authorize(user, attributes);
  if (!verdict.allowed) throw refused(user, attributes, verdict.reason);
  return options.resources.handle(wanted);
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
