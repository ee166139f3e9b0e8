import type { Resource } from "../../api/resource.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { applyJsonPatch } from "../../kernel/json-patch.ts";
import { applyMergePatch } from "../../kernel/merge-patch.ts";
import { applyStrategicMergePatch } from "../../kernel/strategic-merge.ts";
import { badRequest, unsupportedMediaType } from "../../kernel/status.ts";
import type { ResourceRequest } from "../contract.ts";
import { mediaTypeOf } from "./accept.ts";
import { parseJson, UnreadableBody, type ParsedBody } from "./body.ts";
import { unknownFormat } from "./decode.ts";

/** A patch, read and ready to be applied to whatever stands when its turn comes. */
export interface Patch {
  apply(target: JsonObject): Json;
  readonly complaints: readonly string[];
}

const jsonPatch = "application/json-patch+json";
const mergePatch = "application/merge-patch+json";
const strategicPatch = "application/strategic-merge-patch+json";
const applyPatch = "application/apply-patch+yaml";

/** Reads the patch of a request. Throws 415 for other forms, 400 for what is no patch. */
export function readPatch(request: ResourceRequest): Patch {
  const mediaType = mediaTypeOf(request.headers["content-type"]);
  const accepted = acceptedTypes(request);
  // Server-side apply finds its room here. kubectl turns a 415 into "not available on the server".
  if (mediaType === applyPatch) throw applyNotServed(accepted);
  if (!accepted.includes(mediaType)) throw unknownFormat(accepted);
  const { value, duplicates } = parsePatch(request.body);
  switch (mediaType) {
    case jsonPatch:
      return {
        apply: (target) => applyJsonPatch(target, value),
        complaints: duplicates.map((complaint) => `json patch ${complaint}`),
      };
    case strategicPatch: {
      const patch = assertObject(value);
      const mergeKeys = request.resource.native?.mergeKeys ?? {};
      return {
        apply: (target) => applyStrategicMergePatch(target, patch, mergeKeys),
        complaints: duplicates,
      };
    }
    default: {
      const patch = assertObject(value);
      return { apply: (target) => applyMergePatch(target, patch), complaints: duplicates };
    }
  }
}

/** Strategic merge needs to know the lists of a kind, which Kubernetes does only of its own. */
function acceptedTypes({ resource, subresource }: ResourceRequest): string[] {
  const isNative = (of: Resource): boolean => of.native !== undefined;
  const always = [jsonPatch, mergePatch];
  return isNative(resource) && subresource !== "scale" ? [...always, strategicPatch] : always;
}

function applyNotServed(accepted: readonly string[]): Error {
  return unsupportedMediaType(
    "server-side apply is not served yet, use client-side apply instead - accepted media types " +
      `include: ${accepted.join(", ")}`,
  );
}

function parsePatch(body: Uint8Array): ParsedBody {
  try {
    return parseJson(body);
  } catch (error) {
    if (!(error instanceof UnreadableBody)) throw error;
    throw badRequest(`error decoding patch: ${error.message}`);
  }
}

function assertObject(value: Json): JsonObject {
  if (isJsonObject(value)) return value;
  if (value === null) throw badRequest("error decoding patch: Invalid JSON Patch");
  const found = Array.isArray(value) ? "array" : typeof value;
  const wanted = "Go value of type map[string]interface {}";
  throw badRequest(`error decoding patch: json: cannot unmarshal ${found} into ${wanted}`);
}
