import type { Resource } from "../../api/resource.ts";
import { methodNotAllowed, pathNotFound } from "../../kernel/status.ts";
import type { Attributes } from "../authorization/index.ts";
import type { Catalogue, ResourceRequest, Verb } from "../contract.ts";
import type { Method, Route, UserCall } from "./route.ts";
import { queryFlag } from "./url.ts";

/**
 * The routes of objects: of the core group under /api, of all others under /apis. A path is read as
 * Kubernetes reads it, so "namespaces/N/…" is what is in N, except that N's own status is N's.
 */
export function resourceRoutes(catalogue: Catalogue): Route[] {
  const resolve = (call: UserCall): ResourceRequest => resolveResource(catalogue, call);
  return ["/api/{version}", "/apis/{group}/{version}"].flatMap((root) =>
    [
      { pattern: `${root}/{resource}`, methods: collection },
      { pattern: `${root}/{resource}/{name}`, methods: item },
      { pattern: `${root}/namespaces/{namespace}/{resource}/{name}/{subresource}`, methods: part },
      { pattern: `${root}/namespaces/{namespace}/{resource}/{name}`, methods: item },
      ...(root === "/api/{version}" ? [namespaceStatus] : []),
      { pattern: `${root}/namespaces/{namespace}/{resource}`, methods: collection },
      { pattern: `${root}/{resource}/{name}/{subresource}`, methods: part },
    ].map((head): Route => ({ ...head, access: "authorized", resolve })),
  );
}

const collection: readonly Method[] = ["GET", "POST", "DELETE"];
const item: readonly Method[] = ["GET", "PUT", "PATCH", "DELETE"];
const part: readonly Method[] = ["GET", "PUT", "PATCH"];
const namespaceStatus = { pattern: "/api/{version}/namespaces/{name}/status", methods: part };

/** What the authorizer is asked about a request for objects. */
export function attributesOf(request: ResourceRequest): Attributes {
  const { verb, resource, subresource, namespace } = request;
  return {
    verb,
    group: resource.group,
    resource: resource.plural,
    subresource,
    namespace,
    allNamespaces: resource.namespaced && namespace === undefined,
    name: request.name ?? selectedName(request.query),
  };
}

function resolveResource(catalogue: Catalogue, call: UserCall): ResourceRequest {
  const { params, url, request, user } = call;
  // "/api/v1/namespaces/N/status" names neither its resource nor its part in the pattern.
  const isNamespaceStatus = params["resource"] === undefined;
  const plural = params["resource"] ?? "namespaces";
  const resource = catalogue.find(params["group"] ?? "", params["version"] ?? "", plural);
  if (resource === undefined) throw pathNotFound();
  const subresource = subresourceOf(resource, isNamespaceStatus ? "status" : params["subresource"]);
  const { name, namespace } = params;
  const verb = verbOf(call.method, name, url.query);
  checkScope(resource, verb, namespace);
  const { headers, body } = request;
  return { verb, resource, namespace, name, subresource, query: url.query, headers, body, user };
}

function subresourceOf(
  resource: Resource,
  subresource: string | undefined,
): "status" | "scale" | undefined {
  if (subresource === undefined) return undefined;
  if (subresource === "status" && resource.subresources.status) return "status";
  if (subresource === "scale" && resource.subresources.scale) return "scale";
  throw pathNotFound();
}

function verbOf(method: Method, name: string | undefined, query: URLSearchParams): Verb {
  switch (method) {
    case "GET":
      if (name !== undefined) return "get";
      return queryFlag(query, "watch") ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === undefined ? "deletecollection" : "delete";
  }
}

/** Over all namespaces there is only reading; a kind without namespaces is in none. */
function checkScope(resource: Resource, verb: Verb, namespace: string | undefined): void {
  if (!resource.namespaced) {
    if (namespace !== undefined) throw pathNotFound();
    return;
  }
  if (namespace !== undefined || verb === "list" || verb === "watch") return;
  if (verb === "create" || verb === "deletecollection") throw methodNotAllowed();
  throw pathNotFound();
}

/** A list or watch of `metadata.name=x` is a request for x: as kube-apiserver, for the refusal. */
function selectedName(query: URLSearchParams): string | undefined {
  const selector = query.get("fieldSelector");
  if (!selector?.startsWith("metadata.name=")) return undefined;
  const name = selector.slice("metadata.name=".length).replace(/^=/, "");
  return name === "" || name.includes(",") ? undefined : name;
}
