import type { Endpoint } from "../endpoint.ts";
import { immediate } from "../endpoint.ts";
import { accessEndpoints } from "../endpoints/access.ts";
import { clusterEndpoints } from "../endpoints/cluster.ts";
import { capabilityEndpoints } from "../endpoints/capabilities.ts";
import { haEndpoints } from "../endpoints/ha.ts";
import { mappingEndpoints } from "../endpoints/mappings.ts";
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
  ...capabilityEndpoints,
  ...guestEndpoints,
  ...haEndpoints,
  ...mappingEndpoints,
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
  readonly parts: readonly Part[];
  readonly parameters: number;
  /** Its last part is a volume's name, which has slashes of its own. */
  readonly isVolume: boolean;
  readonly endpoint: Endpoint;
}

/** A part of a path: a word, or a parameter by its name. */
interface Part {
  readonly text: string;
  readonly isParameter: boolean;
}

/**
 * Templates by verb and number of parts: most requests fit only a few. A literal part wins over a
 * parameter, /tasks over /{vmid}: those with the fewest parameters come first.
 */
const templates = new Map<string, Template[]>();
for (const [name, endpoint] of Object.entries(endpoints)) {
  const [verb = "", path = ""] = name.split(" ");
  const template = templateOf(name, partsOf(path), endpoint);
  const key = keyOf(verb, template.parts.length);
  const known = templates.get(key) ?? [];
  templates.set(
    key,
    [...known, template].toSorted((left, right) => left.parameters - right.parameters),
  );
}

function templateOf(name: string, words: readonly string[], endpoint: Endpoint): Template {
  const parts = words.map((word) => {
    const parameter = /^\{(\w+)\}$/.exec(word)?.[1];
    return { text: parameter ?? word, isParameter: parameter !== undefined };
  });
  const parameters = parts.filter(({ isParameter }) => isParameter).length;
  return { name, parts, parameters, endpoint, isVolume: words.at(-1) === "{volume}" };
}

function keyOf(verb: string, parts: number): string {
  return `${verb} ${parts}`;
}

/** "/nodes/{node}/storage/{storage}/content/{volume}": its last part may have slashes. */
const volumeParts = 6;

const open: Method = { p: {}, u: "all" };

/** The endpoint of a path in a release; undefined where that release has none. */
export function findRoute(release: Release, verb: string, path: string): Route | undefined {
  const parts = partsOf(path);
  const template = findTemplate(verb, parts);
  if (template === undefined) return undefined;
  const { name, endpoint } = template;
  const method = name === "GET /" ? open : schemaOf(release).methods[name];
  return method && { name, endpoint, method, parameters: parametersOf(template, parts) };
}

function findTemplate(verb: string, parts: readonly string[]): Template | undefined {
  const exact = templates.get(keyOf(verb, parts.length));
  const found = exact?.find((template) => fits(template, parts));
  if (found !== undefined || parts.length <= volumeParts) return found;
  const volumes = templates.get(keyOf(verb, volumeParts));
  return volumes?.find((template) => template.isVolume && fits(template, parts));
}

function fits(template: Template, parts: readonly string[]): boolean {
  return template.parts.every(({ text, isParameter }, index) => {
    return isParameter || text === parts[index];
  });
}

function parametersOf(template: Template, parts: readonly string[]): Record<string, string> {
  const parameters: Record<string, string> = {};
  const last = template.parts.length - 1;
  for (const [index, { text, isParameter }] of template.parts.entries()) {
    if (!isParameter) continue;
    const isRest = index === last && template.isVolume;
    parameters[text] = isRest ? parts.slice(index).join("/") : (parts[index] ?? "");
  }
  return parameters;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "");
}
