import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { redact } from "../../kernel/redact.ts";
import type { ServedKind } from "../objects/discovery.ts";
import { listPages } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { chooseObjects } from "./choose-objects.ts";
import { redactObject } from "./redact-object.ts";
import type { ArchivedFile } from "./tar.ts";

/** Lines of the log: enough for what led to the trouble. */
const logLinesMax = 2_000;

/** What a part of the bundle is, and why it may be missing. */
export type Collected = ArchivedFile | { readonly path: string; readonly missing: string };

/** Built-in kinds that tell something about Berth; of all others only Berth's own are taken. */
const builtinKinds: ReadonlySet<string> = new Set([
  "namespaces",
  "secrets",
  "configmaps",
  "leases",
  "events",
]);

/** Every object that matters, each kind in a file of its own, without secrets. */
export async function collectObjects(
  server: Server,
  served: readonly ServedKind[],
): Promise<Collected[]> {
  const kinds = served.filter(({ group, plural, verbs }) => {
    const isOurs = group === "berth.dev" || group.endsWith(".berth.dev");
    const isTaken = isOurs || (builtinKinds.has(plural) && isCoreGroup(group));
    return isTaken && verbs.includes("list");
  });
  return await Promise.all(kinds.map((kind) => collectKind(server, kind)));
}

/** A kind of the same name may be served under several groups: Events are. */
function isCoreGroup(group: string): boolean {
  return group === "" || group === "coordination.k8s.io";
}

async function collectKind(server: Server, kind: ServedKind): Promise<Collected> {
  const path = `objects/${kind.plural}.json`;
  try {
    const pages = await listPages(server, { kind });
    const items = pages.flatMap(itemsOf);
    const named = { kind: kind.kind, apiVersion: apiVersionOf(kind) };
    const shown = chooseObjects(items.map((item) => redactObject({ ...named, ...item })));
    return { path, content: jsonText({ count: items.length, shown: shown.length, items: shown }) };
  } catch (error) {
    return { path, missing: messageOf(error) };
  }
}

function apiVersionOf({ group, version }: ServedKind): string {
  return group === "" ? version : `${group}/${version}`;
}

function itemsOf(page: JsonObject): JsonObject[] {
  const { items } = page;
  return Array.isArray(items) ? items.filter(isJsonObject) : [];
}

/** The metrics, where the server has them: a real Kubernetes has others, which are none of ours. */
export async function collectMetrics(server: Server): Promise<Collected> {
  const path = "metrics.txt";
  try {
    const text = await server.askText({ path: "/metrics" });
    const isOurs = text.includes("berth_build_info");
    return isOurs ? { path, content: redact(text) } : { path, missing: "this server has none" };
  } catch (error) {
    return { path, missing: messageOf(error) };
  }
}

/** The last lines of the log, older file first. */
export function collectLog(texts: readonly (string | undefined)[]): Collected {
  const path = "log.txt";
  const lines = texts.flatMap((text) => (text ?? "").split("\n")).filter((line) => line !== "");
  if (lines.length === 0) return { path, missing: "there is no log in the data folder" };
  return { path, content: `${redact(lines.slice(-logLinesMax).join("\n"))}\n` };
}

export function jsonText(value: Json | object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

export function messageOf(error: unknown): string {
  return redact(error instanceof Error ? error.message : String(error));
}
