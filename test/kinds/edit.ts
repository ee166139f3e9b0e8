import { cloneJson } from "../../src/kernel/json.ts";
import type { Json, JsonObject } from "../../src/kernel/json.ts";
import type { KubeObject } from "../../src/kernel/object.ts";

/** Values by dotted path, "spec.disks.0.size"; undefined removes. */
export type Edits = Readonly<Record<string, Json | undefined>>;

/** A copy of an object with some fields different, for telling a case by what is odd about it. */
export function edit(base: KubeObject, edits: Edits): KubeObject {
  const copy = cloneJson(base);
  for (const [path, value] of Object.entries(edits)) set(copy, path.split("."), value);
  return copy;
}

function set(root: KubeObject, path: string[], value: Json | undefined): void {
  const last = path.pop() ?? "";
  let place = root as unknown as JsonObject;
  for (const part of path) place = (place[part] ??= {}) as JsonObject;
  if (value === undefined) delete place[last];
  else place[last] = value;
}
