import assert from "node:assert/strict";
import type { VirtualMachine } from "../../../src/api/index.ts";
import { isJsonObject } from "../../../src/kernel/json.ts";

/** A machine as the server, or kubectl for it, prints it. */
export function parseMachine(text: string): VirtualMachine {
  const object: unknown = JSON.parse(text);
  assert.ok(isJsonObject(object) && object["kind"] === "VirtualMachine", text);
  // cast: the server lets in only what the schema of the kind allows.
  return object as unknown as VirtualMachine;
}
