import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";

/**
 * Writes the compact schemas of the Proxmox simulator from dumps of the real API trees, which are
 * not part of this repository (see docs/decisions/0010-simulator-schema.md):
 *
 *     node scripts/proxmox-schema.ts FOLDER
 *
 * The folder holds pve-7.json.gz, pve-8.json.gz and pve-9.json.gz. Only names, types, bounds,
 * enumerations and checks are taken over; no descriptions.
 */
export function main(args: readonly string[]): number {
  const folder = args[0];
  if (folder === undefined) return 2;
  for (const [file, release] of Object.entries(releases)) {
    const tree: unknown = JSON.parse(gunzipSync(readFileSync(join(folder, file))).toString("utf8"));
    const text = JSON.stringify(compact(tree)).replaceAll("\\", "\\\\").replaceAll("'", "\\'");
    const path = join(root, `src/sim/proxmox/schema/pve-${release}.generated.ts`);
    writeFileSync(path, `${header}export const text =\n  '${text}';\n`);
  }
  return 0;
}

const root = join(import.meta.dirname, "..");
const releases = { "pve-7.json.gz": "7.4", "pve-8.json.gz": "8.4", "pve-9.json.gz": "9.2" };
const header = "// Written by scripts/proxmox-schema.ts: do not edit.\n";

/** What the simulator serves; a path that is not here is answered as not implemented. */
const served =
  /^\/(version|access(\/(ticket|permissions|acl|users|groups|roles|domains).*)?|cluster(\/(resources|status|nextid|tasks|options|ha\/(resources|status|groups|rules).*|mapping.*))?|nodes(\/\{node\}(\/(status|version|dns|hosts|lxc|time|certificates\/info|qemu.*|tasks.*|storage.*|network.*|query-url-metadata|capabilities.*|hardware.*))?)?|pools.*|storage.*)$/;
const left =
  /firewall|vncproxy|spice|termproxy|vncweb|mtunnel|sendkey|rrd|monitor|prunebackups|file-restore|dbus|remote_migrate|oci|import-metadata|tfa|arm-ha|sync$/;

type Node = Readonly<Record<string, unknown>>;

function compact(tree: unknown): object {
  const table: object[] = [];
  const places = new Map<string, number>();
  const intern = (property: Node): number => {
    const value = compactProperty(property, intern);
    const key = JSON.stringify(value);
    const place = places.get(key) ?? table.push(value) - 1;
    places.set(key, place);
    return place;
  };
  const methods: Record<string, object> = {};
  for (const { path, method, info } of methodsOf(tree)) {
    methods[`${method} ${path}`] = compactMethod(info, intern);
  }
  return { properties: table, methods };
}

function* methodsOf(tree: unknown): Generator<{ path: string; method: string; info: Node }> {
  for (const node of listOf(tree)) {
    const path = String(node["path"]);
    const known = served.test(path) && !left.test(path);
    for (const [method, info] of Object.entries(known ? nodeOf(node["info"]) : {})) {
      yield { path, method, info: nodeOf(info) };
    }
    yield* methodsOf(node["children"]);
  }
}

function compactMethod(info: Node, intern: (property: Node) => number): object {
  const parameters = nodeOf(info["parameters"]);
  const permissions = nodeOf(info["permissions"]);
  const p: Record<string, number> = {};
  for (const [name, property] of Object.entries(nodeOf(parameters["properties"]))) {
    p[name] = intern(nodeOf(property));
  }
  return {
    p,
    x: isTrue(parameters["additionalProperties"] ?? 1) ? 1 : undefined,
    c: permissions["check"],
    u: permissions["user"],
    d: isTrue(info["protected"]) ? 1 : undefined,
    n: info["proxyto"] === "node" ? 1 : undefined,
    T: info["allowtoken"] === 0 ? 1 : undefined,
  };
}

function compactProperty(property: Node, intern: (property: Node) => number): object {
  const { format } = property;
  return {
    t: property["type"],
    o: isTrue(property["optional"]) ? 1 : undefined,
    f: typeof format === "object" && format !== null ? partsOf(nodeOf(format), intern) : format,
    e: property["enum"],
    p: property["pattern"],
    m: numberOf(property["minimum"]),
    M: numberOf(property["maximum"]),
    l: numberOf(property["minLength"]),
    L: numberOf(property["maxLength"]),
    r: property["requires"],
    k: isTrue(property["default_key"]) ? 1 : undefined,
    a: property["alias"],
    K: property["keyAlias"],
  };
}

function partsOf(format: Node, intern: (property: Node) => number): Record<string, number> {
  const names = Object.entries(format).filter(([, part]) => typeof part === "object");
  return Object.fromEntries(names.map(([name, part]) => [name, intern(nodeOf(part))]));
}

function numberOf(value: unknown): number | undefined {
  return value === undefined || value === null ? undefined : Number(value);
}

function isTrue(value: unknown): boolean {
  return value === true || value === 1 || value === "1";
}

function listOf(value: unknown): Node[] {
  return Array.isArray(value) ? value.map(nodeOf) : [];
}

function nodeOf(value: unknown): Node {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2));
