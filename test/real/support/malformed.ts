import type { Ask } from "./http.ts";
import type { Seeded } from "./seeded.ts";

/** Requests that nobody should send: each breaks one or two things of a good one. */
export function malformedAsk(random: Seeded): Ask {
  const good = goodAsk(random);
  const broken = random.pick([breakPath, breakQuery, breakHeaders, breakBody, breakPatch])(
    random,
    good,
  );
  return random.chance(0.3) ? breakQuery(random, broken) : broken;
}

const group = "/apis/berth.dev/v1alpha1";
const places: readonly [string, ...string[]] = [
  "/api/v1/namespaces/default/configmaps",
  "/api/v1/namespaces/default/secrets",
  "/api/v1/namespaces/default/events",
  "/api/v1/namespaces",
  "/apis/coordination.k8s.io/v1/namespaces/default/leases",
  `${group}/namespaces/default/virtualmachines`,
  `${group}/namespaces/default/vmclasses`,
  `${group}/hypervisors`,
  `${group}/claims`,
  `${group}/vmnetworks`,
];

function goodAsk(random: Seeded): Ask {
  const place = random.pick(places);
  const name = `fuzz-${random.below(50)}`;
  return random.pick<Ask>([
    { path: place },
    { path: `${place}/${name}` },
    { method: "POST", path: place, body: manifest(place, name) },
    { method: "PUT", path: `${place}/${name}`, body: manifest(place, name) },
    {
      method: "PATCH",
      path: `${place}/${name}`,
      type: "application/merge-patch+json",
      body: { metadata: { labels: { a: "b" } } },
    },
    { method: "DELETE", path: `${place}/${name}` },
    { path: "/api" },
    { path: "/apis" },
    { path: "/openapi/v3/apis/berth.dev/v1alpha1" },
  ]);
}

function manifest(place: string, name: string): Record<string, unknown> {
  const kinds: Record<string, [string, string]> = {
    configmaps: ["v1", "ConfigMap"],
    secrets: ["v1", "Secret"],
    events: ["v1", "Event"],
    namespaces: ["v1", "Namespace"],
    leases: ["coordination.k8s.io/v1", "Lease"],
    virtualmachines: ["berth.dev/v1alpha1", "VirtualMachine"],
    vmclasses: ["berth.dev/v1alpha1", "VMClass"],
    hypervisors: ["berth.dev/v1alpha1", "Hypervisor"],
    claims: ["berth.dev/v1alpha1", "Claim"],
    vmnetworks: ["berth.dev/v1alpha1", "VMNetwork"],
  };
  const [apiVersion, kind] = kinds[place.split("/").at(-1) ?? ""] ?? ["v1", "ConfigMap"];
  return { apiVersion, kind, metadata: { name }, spec: { disks: [{ name: "root" }] } };
}

function breakPath(random: Seeded, ask: Ask): Ask {
  const at = random.below(ask.path.length) + 1;
  const noise = random.pick([
    "%",
    "%zz",
    "%00",
    "%2f",
    "..",
    "//",
    "/./",
    "%ff%fe",
    "a".repeat(random.below(9_000)),
    encodeURI(random.text(40).replaceAll(/[\ud800-\udfff]/g, "")),
  ]);
  return { ...ask, path: `${ask.path.slice(0, at)}${noise}${ask.path.slice(at)}` };
}

const parameters: readonly [string, ...string[]] = [
  "limit=",
  "continue=",
  "resourceVersion=",
  "resourceVersionMatch=",
  "labelSelector=",
  "fieldSelector=",
  "fieldValidation=",
  "dryRun=",
  "propagationPolicy=",
  "gracePeriodSeconds=",
  "fieldManager=",
  "includeObject=",
  "pretty=",
];

function breakQuery(random: Seeded, ask: Ask): Ask {
  const value = random.pick([
    "-1",
    "0",
    "1e99",
    "99999999999999999999",
    "NaN",
    "%",
    "%zz",
    "in (",
    "a in (b,c),!d,",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4ifQ",
    encodeURIComponent(random.text(60).replaceAll(/[\ud800-\udfff]/g, "")),
  ]);
  // A watch that is understood lasts its second: few of them, or nothing else gets a turn.
  const watch = "watch=true&timeoutSeconds=1&resourceVersion=";
  const query = `${random.chance(0.01) ? watch : random.pick(parameters)}${value}`;
  return { ...ask, path: `${ask.path}${ask.path.includes("?") ? "&" : "?"}${query}` };
}

function breakHeaders(random: Seeded, ask: Ask): Ask {
  const printable = random.text(60).replaceAll(/[^\x20-\x7e]/g, "");
  const headers = random.pick<Record<string, string>>([
    { accept: printable },
    { accept: "application/json;as=Table;v=v9;g=meta.k8s.io" },
    { accept: "application/json;as=Table;g=meta.k8s.io;v=v1,,;;" },
    { "content-type": printable },
    { "content-type": "application/vnd.kubernetes.protobuf" },
    { "content-type": "application/yaml" },
    { "content-encoding": "gzip" },
    { "if-none-match": printable },
    { "x-long": "y".repeat(random.below(20_000)) },
    { "impersonate-user": "admin" },
    { authorization: `Bearer ${printable}` },
    { authorization: printable },
    { expect: "nonsense" },
  ]);
  return { ...ask, headers };
}

function breakBody(random: Seeded, ask: Ask): Ask {
  const text = JSON.stringify(ask.body ?? manifest(places[0], "fuzz"));
  const raw = random.pick<() => string | Buffer>([
    () => mutate(random, text),
    () => Buffer.from(Array.from({ length: random.below(300) }, () => random.below(256))),
    () => Buffer.concat([Buffer.from("k8s\0"), Buffer.from(mutate(random, text))]),
    () => "[".repeat(random.below(20_000)),
    () => `{"a":`.repeat(random.below(3_000)),
    () => "null",
    () => `"${random.text(30)}"`,
    () => JSON.stringify(wrongTypes(random, JSON.parse(text))),
    () => `{"__proto__":{"a":1},"constructor":{},${text.slice(1)}`,
    () => `{"apiVersion":"v1","apiVersion":"v2",${text.slice(1)}`,
  ])();
  const type = random.pick([
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
  ]);
  return { ...ask, method: random.pick(["POST", "PUT", "PATCH", "DELETE", "QUERY"]), raw, type };
}

function breakPatch(random: Seeded, ask: Ask): Ask {
  const type = random.pick([
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
  ]);
  const path = random.pick([
    "/metadata/labels",
    "/spec/disks/-",
    "/metadata/name",
    "",
    "/a~2",
    "/0",
  ]);
  const op = random.pick(["add", "remove", "replace", "move", "copy", "test", "explode"]);
  const raw = random.pick<() => string>([
    () => JSON.stringify([{ op, path, value: wrongTypes(random, { a: [1] }), from: path }]),
    () => JSON.stringify(Array.from({ length: random.below(200) }, () => ({ op, path }))),
    () => JSON.stringify({ metadata: wrongTypes(random, { name: "x", labels: { a: "b" } }) }),
    () => JSON.stringify({ $patch: op, metadata: { $retainKeys: [1], finalizers: { a: 1 } } }),
    () => mutate(random, JSON.stringify([{ op, path }])),
  ])();
  return { ...ask, method: "PATCH", path: `${random.pick(places)}/fuzz-1`, raw, type };
}

function mutate(random: Seeded, text: string): string {
  const at = random.below(text.length);
  const cut = random.below(6);
  return text.slice(0, at) + random.text(6) + text.slice(at + cut);
}

/** The same shape with values of other types in it. */
function wrongTypes(random: Seeded, value: unknown): unknown {
  if (random.chance(0.25)) return random.pick<unknown>([null, 1.5, -1, "", [], {}, true, [[]]]);
  if (Array.isArray(value)) return value.map((item) => wrongTypes(random, item));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, wrongTypes(random, item)]);
  return Object.fromEntries(entries);
}
