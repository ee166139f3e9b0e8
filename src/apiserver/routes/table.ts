import type { Authorizer } from "../authorization/index.ts";
import type { Catalogue, User } from "../contract.ts";
import type { DocumentHandler } from "../documents/index.ts";
import { documentRoutes } from "./documents.ts";
import type { Health } from "./health.ts";
import { healthRoutes } from "./health.ts";
import { metricsRoutes, type MetricsSource } from "./metrics.ts";
import { jsonResponse } from "./responses.ts";
import { resourceRoutes } from "./resources.ts";
import { reviewRoutes } from "./reviews.ts";
import type { Route } from "./route.ts";
import { compileRoutes } from "./route.ts";
import { versionRoute } from "./version.ts";

/** What the routes lead to. */
export interface RouteEnvironment {
  readonly catalogue: Catalogue;
  readonly authorizer: Authorizer;
  readonly discovery: DocumentHandler;
  readonly openApi: DocumentHandler;
  readonly health: Health;
  /** Absent: there are none to be read. */
  readonly metrics?: MetricsSource | undefined;
  /** Of this build: "0.1.0". */
  readonly version: string;
}

/**
 * The one table of all that is served. The order counts: of the patterns that fit a path the first
 * is taken, so what is spelled out stands before what has places. What is not in it is a 404 for
 * users, and for all others a 401 like everything that is not public.
 */
export function createRouteTable(environment: RouteEnvironment): readonly Route[] {
  const { catalogue, authorizer, discovery, openApi, health, metrics, version } = environment;
  const fixed = [
    versionRoute(version),
    ...healthRoutes(health),
    ...metricsRoutes(metrics),
    ...documentRoutes(discovery, openApi),
  ];
  const findFixed = compileRoutes(fixed);
  const mayRead = (user: User, path: string): boolean => {
    const route = findFixed(path.slice(1).split("/"))?.route;
    if (route?.access !== "permitted") return route !== undefined;
    return authorizer.authorize(user, route.needs).allowed;
  };
  return [
    rootRoute(fixed),
    ...fixed,
    ...reviewRoutes({ catalogue, authorizer, mayRead }),
    ...resourceRoutes(catalogue),
  ];
}

/** What there is to ask for, for people with curl. */
function rootRoute(fixed: readonly Route[]): Route {
  const paths = fixed.map((route) => route.pattern).filter((pattern) => !pattern.includes("{"));
  return {
    pattern: "/",
    methods: ["GET"],
    access: "authenticated",
    serve: () => jsonResponse(200, { paths }),
  };
}
