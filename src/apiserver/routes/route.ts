import type { WireRequest, WireResponse } from "../../kernel/wire.ts";
import type { Attributes } from "../authorization/index.ts";
import type { ResourceRequest, User } from "../contract.ts";
import type { ParsedUrl } from "./url.ts";

/** The methods that any route knows. All others are answered with 405 on every path. */
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A request on its way to its route. */
export interface Call {
  readonly request: WireRequest;
  readonly url: ParsedUrl;
  readonly method: Method;
  /** What stood in the places of the pattern. */
  readonly params: Readonly<Record<string, string>>;
}

export interface UserCall extends Call {
  readonly user: User;
}

/**
 * One line of the route table. `access` has no default: a route that does not say who may call it
 * does not compile, and the test that walks the table names what everybody gets from it.
 *
 * - `public`: anyone, without credentials. It must not tell anything that is not for everybody.
 * - `authenticated`: every user. It serves what is the same for all, or about themselves.
 * - `permitted`: whoever the authorizer allows what it needs. It serves what is no object.
 * - `authorized`: whoever the authorizer allows to do what `resolve` made of the request.
 */
export type Route = RouteHead &
  (PublicRoute | AuthenticatedRoute | PermittedRoute | AuthorizedRoute);

export interface RouteHead {
  /** "/api/{version}/{resource}"; "{path...}" at the end takes the rest, at least one segment. */
  readonly pattern: string;
  readonly methods: readonly Method[];
}

export interface PublicRoute {
  readonly access: "public";
  readonly serve: (call: Call) => WireResponse | Promise<WireResponse>;
}

export interface AuthenticatedRoute {
  readonly access: "authenticated";
  readonly serve: (call: UserCall) => WireResponse | Promise<WireResponse>;
}

export interface PermittedRoute {
  readonly access: "permitted";
  readonly needs: Attributes;
  readonly serve: (call: UserCall) => WireResponse | Promise<WireResponse>;
}

export interface AuthorizedRoute {
  readonly access: "authorized";
  /** What is asked of which resource. Throws 404 or 405 where the resource has no such thing. */
  readonly resolve: (call: UserCall) => ResourceRequest;
}

export type RouteMatch = {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
};

/** Finds the route of a path, whatever the method. The first in the table that fits wins. */
export type FindRoute = (segments: readonly string[]) => RouteMatch | undefined;

export function compileRoutes(routes: readonly Route[]): FindRoute {
  const exact = new Map<number, Compiled[]>();
  const open: Compiled[] = [];
  for (const route of routes) {
    const compiled = compile(route);
    if (compiled.rest !== undefined) open.push(compiled);
    else exact.set(compiled.parts.length, [...(exact.get(compiled.parts.length) ?? []), compiled]);
  }
  return (segments) => {
    return firstMatch(exact.get(segments.length) ?? [], segments) ?? firstMatch(open, segments);
  };
}

interface Compiled {
  readonly route: Route;
  readonly parts: readonly Part[];
  /** The name of the parameter that takes the rest of the path. */
  readonly rest: string | undefined;
}

type Part = { readonly literal: string } | { readonly param: string };

function compile(route: Route): Compiled {
  const segments = route.pattern.slice(1).split("/");
  const rest = /^\{(\w+)\.\.\.\}$/.exec(segments.at(-1) ?? "")?.[1];
  const fixed = rest === undefined ? segments : segments.slice(0, -1);
  return { route, rest, parts: fixed.map(compilePart) };
}

function compilePart(segment: string): Part {
  const param = /^\{(\w+)\}$/.exec(segment)?.[1];
  return param === undefined ? { literal: segment } : { param };
}

function firstMatch(
  candidates: readonly Compiled[],
  segments: readonly string[],
): RouteMatch | undefined {
  for (const candidate of candidates) {
    const params = matchParts(candidate, segments);
    if (params !== undefined) return { route: candidate.route, params };
  }
  return undefined;
}

function matchParts(
  compiled: Compiled,
  segments: readonly string[],
): Record<string, string> | undefined {
  const { parts, rest } = compiled;
  if (rest !== undefined && segments.length <= parts.length) return undefined;
  const params: Record<string, string> = {};
  let index = 0;
  for (const part of parts) {
    const segment = segments[index++] ?? "";
    if ("param" in part) {
      if (segment === "") return undefined;
      params[part.param] = segment;
    } else if (part.literal !== segment) return undefined;
  }
  if (rest !== undefined) params[rest] = segments.slice(parts.length).join("/");
  return params;
}
