import { isJsonObject, jsonEqual, type Json, type JsonObject } from "./json.ts";
import { copyJson, getMember, setMember } from "./json-member.ts";
import { parseJsonPatch, patchRefused, type PatchOperation } from "./json-patch-operations.ts";
import { limits } from "./limits.ts";

/** kube-apiserver's bound on what all `copy` operations of one patch may add, in bytes of JSON. */
const copiedBytesMax = 3 * 1024 * 1024;
/**
 * Values visited and list elements shifted by one patch. Ten thousand insertions at the head of a
 * long list would otherwise hold up everybody else for seconds.
 */
const workMax = 20_000_000;

/**
 * Applies a JSON patch (RFC 6902), all of it or nothing. The result shares nothing with target or
 * operations.
 *
 * Where kube-apiserver is known to be more generous than the RFC, and clients rely on it, so are
 * we: `replace` of an absent member adds it, a negative index counts from the end, and `test` of
 * an absent member against null holds.
 *
 * Throws an ApiError: 400 for what is no patch, 413 for too many operations, and 422 in
 * kube-apiserver's words, with the operation at fault as the cause, where one does not apply.
 */
export function applyJsonPatch(target: Json, operations: Json): Json {
  const parsed = parseJsonPatch(operations);
  const draft: Draft = { root: copyJson(target), copiedBytes: 0, work: 0 };
  for (const operation of parsed) applyOperation(draft, operation);
  return draft.root;
}

/** The document under way, and what the patch has cost so far. */
interface Draft {
  root: Json;
  copiedBytes: number;
  work: number;
}

function applyOperation(draft: Draft, operation: PatchOperation): void {
  switch (operation.op) {
    case "add":
      return insert(draft, operation, copyJson(operation.value));
    case "remove":
      return void take(draft, operation, operation.tokens);
    case "replace":
      return replace(draft, operation, copyJson(operation.value));
    case "move": {
      // The destination is looked up after the removal, so a value cannot move into itself.
      const value = take(draft, operation, operation.fromTokens);
      return insert(draft, operation, value);
    }
    case "copy":
      return insert(draft, operation, copied(draft, operation, operation.fromTokens));
    case "test":
      return test(draft, operation, operation.value);
  }
}

function insert(draft: Draft, operation: PatchOperation, value: Json): void {
  assertDepth(draft, operation, value);
  if (operation.tokens.length === 0) {
    draft.root = value;
    return;
  }
  const { container, key } = locate(draft, operation, operation.tokens);
  if (!Array.isArray(container)) return setMember(container, key, value);
  const index = key === "-" ? container.length : indexOf(operation, key, container.length + 1);
  spend(draft, operation, container.length - index);
  container.splice(index, 0, value);
}

function replace(draft: Draft, operation: PatchOperation, value: Json): void {
  assertDepth(draft, operation, value);
  if (operation.tokens.length === 0) {
    draft.root = value;
    return;
  }
  const { container, key } = locate(draft, operation, operation.tokens);
  if (!Array.isArray(container)) return setMember(container, key, value);
  container[indexOf(operation, key, container.length)] = value;
}

function take(draft: Draft, operation: PatchOperation, tokens: readonly string[]): Json {
  if (tokens.length === 0) throw patchRefused(operation, "the whole document cannot be removed");
  const { container, key } = locate(draft, operation, tokens);
  if (Array.isArray(container)) {
    const index = indexOf(operation, key, container.length);
    spend(draft, operation, container.length - index);
    return container.splice(index, 1)[0] ?? null;
  }
  const value = getMember(container, key);
  if (value === undefined) {
    throw patchRefused(operation, `Unable to remove nonexistent key: ${key}: missing value`);
  }
  delete container[key];
  return value;
}

function copied(draft: Draft, operation: PatchOperation, fromTokens: readonly string[]): Json {
  const value = lookUp(draft, operation, fromTokens);
  if (value === undefined) throw patchRefused(operation, "doc is missing from path: missing value");
  draft.copiedBytes += Buffer.byteLength(JSON.stringify(value));
  if (draft.copiedBytes <= copiedBytesMax) return copyJson(value);
  const size = `the accumulated size increase of copy is ${draft.copiedBytes}`;
  const why = `Unable to complete the copy, ${size}, exceeding the limit ${copiedBytesMax}`;
  throw patchRefused(operation, why);
}

function test(draft: Draft, operation: PatchOperation, expected: Json): void {
  const value = lookUp(draft, operation, operation.tokens) ?? null;
  if (!jsonEqual(value, expected)) {
    throw patchRefused(operation, `testing value ${operation.path} failed: test failed`);
  }
}

function lookUp(
  draft: Draft,
  operation: PatchOperation,
  tokens: readonly string[],
): Json | undefined {
  if (tokens.length === 0) return draft.root;
  const { container, key } = locate(draft, operation, tokens);
  if (!Array.isArray(container)) return getMember(container, key);
  return container[indexOf(operation, key, container.length)];
}

function locate(
  draft: Draft,
  operation: PatchOperation,
  tokens: readonly string[],
): { container: Json[] | JsonObject; key: string } {
  let container: Json | undefined = draft.root;
  for (const token of tokens.slice(0, -1)) container = step(operation, container, token);
  if (!Array.isArray(container) && !isJsonObject(container)) {
    throw patchRefused(operation, "doc is missing path: missing value");
  }
  return { container, key: tokens.at(-1) ?? "" };
}

function step(
  operation: PatchOperation,
  container: Json | undefined,
  token: string,
): Json | undefined {
  if (Array.isArray(container)) return container[indexOf(operation, token, container.length)];
  return isJsonObject(container) ? getMember(container, token) : undefined;
}

function indexOf(operation: PatchOperation, token: string, length: number): number {
  if (!/^(0|-?[1-9][0-9]*)$/.test(token)) {
    throw patchRefused(operation, `value was not a proper array index: '${token}'`);
  }
  const index = Number(token) < 0 ? Number(token) + length : Number(token);
  if (index >= 0 && index < length) return index;
  throw patchRefused(operation, `Unable to access invalid index: ${token}`);
}

/**
 * Keeps the document as shallow as a request may be. Copying a value into itself doubles its depth
 * each time, and everything that handles the object later walks it recursively.
 */
function assertDepth(draft: Draft, operation: PatchOperation, value: Json): void {
  const room = limits.jsonDepth - operation.tokens.length;
  if (fits(draft, operation, { value, room })) return;
  throw patchRefused(operation, `the object is nested deeper than ${limits.jsonDepth}`);
}

function fits(
  draft: Draft,
  operation: PatchOperation,
  { value, room }: { value: Json; room: number },
): boolean {
  if (room < 0) return false;
  if (typeof value !== "object" || value === null) return true;
  const children = Array.isArray(value) ? value : Object.values(value);
  spend(draft, operation, children.length);
  return children.every((child) => fits(draft, operation, { value: child, room: room - 1 }));
}

function spend(draft: Draft, operation: PatchOperation, steps: number): void {
  draft.work += steps;
  if (draft.work > workMax) throw patchRefused(operation, "the patch takes too much work");
}
