import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { parseJsonPointer } from "./json-pointer.ts";
import { ApiError, badRequest, tooLarge } from "./status.ts";

/** kube-apiserver's bound on the operations of one JSON patch. */
const patchOperationsMax = 10_000;

/** One operation of a JSON patch, its pointers already split. */
export type PatchOperation = { readonly path: string; readonly tokens: readonly string[] } & (
  | { readonly op: "add" | "replace" | "test"; readonly value: Json }
  | { readonly op: "remove" }
  | { readonly op: "move" | "copy"; readonly fromTokens: readonly string[] }
);

/** Reads the body of a JSON patch; throws an ApiError in kube-apiserver's words. */
export function parseJsonPatch(operations: Json): PatchOperation[] {
  if (!Array.isArray(operations)) {
    const type = goTypeName(operations);
    throw malformed(`cannot unmarshal ${type} into Go value of type []handlers.jsonPatchOp`);
  }
  if (operations.length > patchOperationsMax) {
    const most = `The allowed maximum operations in a JSON patch is ${patchOperationsMax}`;
    throw tooLarge(`${most}, got ${operations.length}`);
  }
  return operations.map(parseOperation);
}

/** The refusal of a patch that does not apply. Kubernetes says no more; the cause says why. */
export function patchRefused(operation: { op: string; path: string }, why: string): ApiError {
  const message = "the server rejected our request due to an error in our request";
  const cause = { field: operation.path, message: `${operation.op} operation: ${why}` };
  return new ApiError(422, "Invalid", message, { causes: [cause] });
}

function parseOperation(operation: Json): PatchOperation {
  if (!isJsonObject(operation)) {
    const type = goTypeName(operation);
    throw malformed(`cannot unmarshal ${type} into Go value of type handlers.jsonPatchOp`);
  }
  const op = stringMember(operation, "op") ?? "unknown";
  const path = stringMember(operation, "path");
  const from = stringMember(operation, "from");
  const named = { op, path: path ?? "" };
  if (path === undefined) throw patchRefused(named, "failed to decode path: missing value");
  const base = { path, tokens: tokensOf(named, path) };
  switch (op) {
    case "add":
    case "replace":
    case "test":
      return { ...base, op, value: valueOf(named, operation) };
    case "remove":
      return { ...base, op };
    case "move":
    case "copy":
      if (from === undefined) throw patchRefused(named, "failed to decode from: missing value");
      return { ...base, op, fromTokens: tokensOf(named, from) };
    default:
      throw patchRefused(named, `Unexpected kind: ${op}`);
  }
}

function stringMember(operation: JsonObject, key: string): string | undefined {
  if (!Object.hasOwn(operation, key)) return undefined;
  const value = operation[key];
  if (typeof value === "string") return value;
  // Go's decoder leaves a string alone when it meets null.
  if (value === null || value === undefined) return undefined;
  const target = `Go struct field jsonPatchOp.${key} of type string`;
  throw malformed(`cannot unmarshal ${goTypeName(value)} into ${target}`);
}

function valueOf(named: { op: string; path: string }, operation: JsonObject): Json {
  if (!Object.hasOwn(operation, "value")) throw patchRefused(named, "missing value field");
  return operation["value"] ?? null;
}

function tokensOf(named: { op: string; path: string }, pointer: string): string[] {
  const tokens = parseJsonPointer(pointer);
  if (tokens === undefined) throw patchRefused(named, `not a JSON pointer: "${pointer}"`);
  return tokens;
}

function malformed(why: string): ApiError {
  return badRequest(`error decoding patch: json: ${why}`);
}

/** The kind of a JSON value in the words of Go's decoder. */
function goTypeName(value: Json): string {
  if (Array.isArray(value)) return "array";
  if (typeof value === "boolean") return "bool";
  return value === null ? "null" : typeof value;
}
