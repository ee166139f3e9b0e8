import type { Endpoint } from "../endpoint.ts";
import { immediate } from "../endpoint.ts";
import { accessEndpoints } from "../endpoints/access.ts";
import { clusterEndpoints } from "../endpoints/cluster.ts";
import { guestEndpoints } from "../endpoints/guests.ts";
import { nodeEndpoints } from "../endpoints/nodes.ts";
import { poolEndpoints } from "../endpoints/pools.ts";
import { storageEndpoints } from "../endpoints/storage.ts";
import { taskEndpoints } from "../endpoints/tasks.ts";
import type { Release } from "../release.ts";
import { type Method, schemaOf } from "../schema/schema.ts";

const roots = ["access", "cluster", "nodes", "pools", "storage", "version"];

const endpoints: Readonly<Record<string, Endpoint>> = {
  "GET /": immediate(() => roots.map((subdir) => ({ subdir }))),
  ...accessEndpoints,
  ...clusterEndpoints,
  ...guestEndpoints,
  ...nodeEndpoints,
  ...poolEndpoints,
  ...storageEndpoints,
  ...taskEndpoints,
};

export interface Route {
  readonly name: string;
  readonly method: Method;
  readonly endpoint: Endpoint;
  /** What the path itself says: node, vmid … */
  readonly parameters: Readonly<Record<string, string>>;
}

interface Template {
  readonly name: string;
  readonly parts: readonly string[];
  readonly endpoint: Endpoint;
}

/** Templates by verb and number of parts: most requests fit only a few. */
const templates = new Map<string, Template[]>();
for (const [name, endpoint] of Object.entries(endpoints)) {
  const [verb = "", path = ""] = name.split(" ");
  const parts = partsOf(path);
  const key = `${verb} ${parts.length}`;
  templates.set(key, [...(templates.get(key) ?? []), { name, parts, endpoint }]);
}
/** "/nodes/{node}/storage/{storage}/content/{volume}": its last part may have slashes. */
const volumeParts = 6;

const open: Method = { p: {}, u: "all" };

/** The endpoint of a path in a release; undefined where that release has none. */
export function findRoute(release: Release, verb: string, path: string): Route | undefined {
  const parts = partsOf(path);
  const matches = candidates(verb, parts).flatMap((template) => {
    const parameters = matchParts(template.parts, parts);
    return parameters === undefined ? [] : [{ template, parameters }];
  });
  // A literal part wins over a parameter: /tasks over /{vmid}.
  const rank = (match: { parameters: object }): number => Object.keys(match.parameters).length;
  const best = matches.sort((left, right) => rank(left) - rank(right))[0];
  if (best === undefined) return undefined;
  const { name, endpoint } = best.template;
  const method = name === "GET /" ? open : schemaOf(release).methods[name];
  return method && { name, endpoint, method, parameters: best.parameters };
}

function candidates(verb: string, parts: readonly string[]): Template[] {
  const exact = templates.get(`${verb} ${parts.length}`) ?? [];
  if (parts.length <= volumeParts) return exact;
  return [...exact, ...(templates.get(`${verb} ${volumeParts}`) ?? [])];
}

function matchParts(
  template: readonly string[],
  parts: readonly string[],
): Record<string, string> | undefined {
  const isVolume = template.at(-1) === "{volume}" && parts.length > template.length;
  const given = isVolume ? withVolume(template, parts) : parts;
  if (template.length !== given.length) return undefined;
  const parameters: Record<string, string> = {};
  for (const [index, part] of template.entries()) {
    const value = given[index] ?? "";
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name !== undefined) parameters[name] = value;
    else if (part !== value) return undefined;
  }
  return parameters;
}

/** The name of a volume has slashes of its own. */
function withVolume(template: readonly string[], parts: readonly string[]): string[] {
  const at = template.length - 1;
  return [...parts.slice(0, at), parts.slice(at).join("/")];
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}
