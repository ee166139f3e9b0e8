import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { apiVersionOf, groupOf } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import type { Server } from "./server.ts";

/** A kind that the server serves, as discovery describes it. */
export interface ServedKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

const aggregated = [
  "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
  "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
  "application/json",
].join(",");

/**
 * All kinds, each in the version that the server prefers, the core group first. A server that knows
 * aggregated discovery is asked twice, an older one once per group and version.
 */
export async function discover(server: Server): Promise<ServedKind[]> {
  const [core, groups] = await Promise.all(
    ["/api", "/apis"].map((path) => server.ask({ path, accept: aggregated })),
  );
  return [...(await kindsOf(server, core ?? null)), ...(await kindsOf(server, groups ?? null))];
}

async function kindsOf(server: Server, answer: Json): Promise<ServedKind[]> {
  if (!isJsonObject(answer)) return [];
  if (answer["kind"] === "APIGroupDiscoveryList") return objectsOf(answer["items"]).flatMap(group);
  const versions =
    answer["kind"] === "APIVersions"
      ? strings(answer["versions"])
      : objectsOf(answer["groups"]).flatMap(versionsOfGroup);
  const lists = await Promise.all(versions.map((version) => askResources(server, version)));
  return newestOnly(lists.flat());
}

function group(item: JsonObject): ServedKind[] {
  const name = member(item["metadata"], "name");
  const kinds = objectsOf(item["versions"]).flatMap((version) => {
    return objectsOf(version["resources"]).map((resource): ServedKind => {
      const kind = isJsonObject(resource["responseKind"]) ? resource["responseKind"] : {};
      return {
        group: name,
        version: member(version, "version"),
        kind: member(kind, "kind"),
        plural: member(resource, "resource"),
        singular: member(resource, "singularResource"),
        shortNames: strings(resource["shortNames"]),
        categories: strings(resource["categories"]),
        namespaced: resource["scope"] === "Namespaced",
        verbs: strings(resource["verbs"]),
      };
    });
  });
  return newestOnly(kinds);
}

/** The versions of a group, the preferred one first. */
function versionsOfGroup(item: JsonObject): string[] {
  const preferred = member(item["preferredVersion"], "groupVersion");
  const all = objectsOf(item["versions"]).map((version) => member(version, "groupVersion"));
  return [...new Set([preferred, ...all])].filter((version) => version !== "");
}

/** A group whose own server is away (an APIService) must not keep the others from being used. */
async function askResources(server: Server, groupVersion: string): Promise<ServedKind[]> {
  const root = groupVersion.includes("/") ? "/apis" : "/api";
  try {
    const answer = await server.ask({ path: `${root}/${groupVersion}` });
    return isJsonObject(answer) ? objectsOf(answer["resources"]).flatMap(plainKind) : [];
  } catch (error) {
    if (error instanceof ApiError && error.code >= 500) return [];
    throw error;
  }

  function plainKind(resource: JsonObject): ServedKind[] {
    const plural = member(resource, "name");
    if (plural.includes("/")) return [];
    const kind = member(resource, "kind");
    return [
      {
        group: groupOf(groupVersion),
        version: groupVersion.slice(groupVersion.indexOf("/") + 1),
        kind,
        plural,
        singular: member(resource, "singularName") || kind.toLowerCase(),
        shortNames: strings(resource["shortNames"]),
        categories: strings(resource["categories"]),
        namespaced: resource["namespaced"] === true,
        verbs: strings(resource["verbs"]),
      },
    ];
  }
}

/** Versions come in the order of preference; a kind is used in the first that has it. */
function newestOnly(kinds: readonly ServedKind[]): ServedKind[] {
  const seen = new Map<string, ServedKind>();
  for (const kind of kinds) {
    const key = `${kind.plural}.${kind.group}`;
    if (!seen.has(key)) seen.set(key, kind);
  }
  return [...seen.values()];
}

/** "berth.dev/v1alpha1". */
export function apiVersionOfKind(kind: ServedKind): string {
  return apiVersionOf(kind.group, kind.version);
}

function objectsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function strings(value: Json | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function member(value: Json | undefined, name: string): string {
  const found = isJsonObject(value) ? value[name] : undefined;
  return typeof found === "string" ? found : "";
}
