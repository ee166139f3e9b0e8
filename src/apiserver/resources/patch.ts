import { assert } from "../../kernel/assert.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError, invalid, notFound } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { bucketOf, idOf, type ResourceRequest, type ServerEnvironment } from "../contract.ts";
import { toKubeObject } from "./decode.ts";
import { doorOf, type Door } from "./door.ts";
import { subjectOf } from "./errors.ts";
import { assertName, finalizerWarnings, withNamespace, withoutDoubleOwners } from "./metadata.ts";
import { negotiate } from "./negotiate.ts";
import { parseWriteOptions, type WriteOptions } from "./options.ts";
import { readPatch, type Patch } from "./patch-body.ts";
import { replaceObject } from "./replace.ts";
import { answerThrough } from "./answer.ts";
import { writeObject, type Verdict } from "./write.ts";

/**
 * PATCH: what stands is changed as the patch says, and then takes its own place as if it had been
 * PUT. The store lets one write of an object decide at a time, so a patch without a
 * resourceVersion cannot meet a conflict.
 */
export async function patchObject(
  environment: ServerEnvironment,
  request: ResourceRequest,
): Promise<WireResponse> {
  const { resource, namespace, name } = request;
  assert(name !== undefined, "a patch names its object");
  const patch = readPatch(request);
  const output = negotiate(request, "one");
  const options = parseWriteOptions(request.query, "PatchOptions");
  const runner = environment.runnerOf(resource);
  const door = doorOf(request, runner);
  const subresource = request.subresource === "status" ? "status" : undefined;
  const key = { bucket: bucketOf(resource), id: idOf(namespace, name) };
  const target = { store: environment.store, key, dryRun: options.dryRun };
  const warnings: string[] = [];
  const { item } = await writeObject(target, (current): Verdict => {
    if (!current) throw notFound(subjectOf(resource, name));
    const sent = patched({ request, patch, door, options, warnings }, current);
    warnings.push(...finalizerWarnings(resource, sent.metadata, current.metadata));
    return replaceObject(sent, current, { resource, runner, subresource });
  });
  return answerThrough(door.show, item, { environment, request, output, warnings });
}

interface Patching {
  readonly request: ResourceRequest;
  readonly patch: Patch;
  readonly door: Door;
  readonly options: WriteOptions;
  readonly warnings: string[];
}

/** The object as the patch leaves it. What stands is frozen, and patches copy what they change. */
function patched(patching: Patching, current: KubeObject): KubeObject {
  const { request, patch, door, options, warnings } = patching;
  const { resource, namespace, name = "" } = request;
  const value = patch.apply(asJson(door.show(current)));
  const sent = readPatched(() => toKubeObject(value, door.expected, request.body));
  warnings.push(
    ...door.settle(sent, {
      fieldValidation: options.fieldValidation,
      complaints: patch.complaints,
      refuse: (why) => invalidPatch(why),
    }),
  );
  const { meta, warnings: ownerWarnings } = withoutDoubleOwners(
    withNamespace(sent.metadata, resource.namespaced ? namespace : undefined),
  );
  assertName(meta, name);
  warnings.push(...ownerWarnings);
  return readPatched(() => door.enter({ ...sent, metadata: meta }, current));
}

/** A result that cannot be read is the patch's fault, and Kubernetes says so with another code. */
function readPatched(read: () => KubeObject): KubeObject {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 400) throw error;
    throw invalidPatch(error.message);
  }
}

/**
 * Kubernetes also shows the whole object that came of the patch. Here it does not: nobody finds the
 * fault behind it, and who may write an object may not always read it.
 */
function invalidPatch(why: string): ApiError {
  return invalid({ group: "", kind: "", name: "" }, [
    { type: "FieldValueInvalid", field: "patch", detail: why },
  ]);
}

function asJson(object: KubeObject): JsonObject {
  assert(isJsonObject(object), "an object is JSON");
  return object;
}
