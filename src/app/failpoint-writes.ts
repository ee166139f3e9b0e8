import type { FailpointName } from "../kernel/failpoints.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import type { WireRequest } from "../kernel/wire.ts";

/** The points around one write. */
export interface WritePoints {
  readonly before: FailpointName;
  readonly after: FailpointName;
}

/** Which write of a controller a request is: undefined for reads, and for what has no point. */
export function pointsOfWrite({ method, url, body }: WireRequest): WritePoints | undefined {
  if (method === "GET") return undefined;
  const path = url.replace(/\?.*/, "");
  if (/\/leases(\/[^/]+)?$/.test(path)) return method === "DELETE" ? undefined : pair("lease");
  if (/\/claims(\/[^/]+)?$/.test(path)) return ofClaim(method);
  if (!/\/virtualmachines\/[^/]+(\/status)?$/.test(path)) return undefined;
  const written = read(body);
  return path.endsWith("/status") ? ofStatus(written) : ofFinalizers(written);
}

function ofClaim(method: string): WritePoints {
  if (method === "POST") return pair("claim-create");
  return pair(method === "DELETE" ? "claim-delete" : "claim-update");
}

/** An operation without a task is an intent: its task is known only once it was begun. */
function ofStatus(written: Json): WritePoints {
  const status = isJsonObject(written) ? written["status"] : undefined;
  const operation = isJsonObject(status) ? status["operation"] : undefined;
  const isIntent = isJsonObject(operation) && operation["task"] === undefined;
  return pair(isIntent ? "intent" : "status");
}

function ofFinalizers(written: Json): WritePoints | undefined {
  if (!Array.isArray(written)) return undefined;
  const kinds = written.map((step) => (isJsonObject(step) ? step["op"] : undefined));
  if (kinds.includes("add")) return pair("finalizer-add");
  return kinds.includes("remove") ? pair("finalizer-remove") : undefined;
}

function read(body: Uint8Array): Json {
  if (body.byteLength === 0) return null;
  // cast: JSON.parse gives JSON.
  return JSON.parse(new TextDecoder().decode(body)) as Json;
}

type Write = FailpointName extends `${"before" | "after"}-${infer Rest}` ? Rest : never;

function pair(write: Write): WritePoints {
  return { before: `before-${write}`, after: `after-${write}` };
}
