import { assert } from "../../kernel/assert.ts";
import { notFound } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { bucketOf, idOf, type ResourceRequest, type ServerEnvironment } from "../contract.ts";
import { answerThrough } from "./answer.ts";
import { cannotBeHandled, decodeObject } from "./decode.ts";
import { doorOf } from "./door.ts";
import { subjectOf } from "./errors.ts";
import { assertName, finalizerWarnings, withNamespace, withoutDoubleOwners } from "./metadata.ts";
import { negotiate } from "./negotiate.ts";
import { parseWriteOptions } from "./options.ts";
import { assertSameUid, replaceObject } from "./replace.ts";
import { writeObject, type Verdict } from "./write.ts";

/** PUT: the sent object takes the place of the one that stands. It never creates one. */
export async function updateObject(
  environment: ServerEnvironment,
  request: ResourceRequest,
): Promise<WireResponse> {
  const { resource, namespace, name } = request;
  assert(name !== undefined, "an update names its object");
  const output = negotiate(request, "one");
  const options = parseWriteOptions(request.query, "UpdateOptions");
  const runner = environment.runnerOf(resource);
  const door = doorOf(request, runner);
  const { object, complaints } = decodeObject(request, door.expected);
  const warnings = door.settle(object, {
    fieldValidation: options.fieldValidation,
    complaints,
    refuse: (why) => cannotBeHandled(door.expected, why),
  });
  const { meta, warnings: ownerWarnings } = withoutDoubleOwners(
    withNamespace(object.metadata, resource.namespaced ? namespace : undefined),
  );
  assertName(meta, name);
  const subresource = request.subresource === "status" ? "status" : undefined;
  const key = { bucket: bucketOf(resource), id: idOf(namespace, name) };
  const target = { store: environment.store, key, dryRun: options.dryRun };
  const { item } = await writeObject(target, (current): Verdict => {
    assertSameUid(resource, meta, current);
    if (!current) throw notFound(subjectOf(resource, name));
    const sent = door.enter({ ...object, metadata: meta }, current);
    warnings.push(...ownerWarnings, ...finalizerWarnings(resource, meta, current.metadata));
    return replaceObject(sent, current, { resource, runner, subresource });
  });
  return answerThrough(door.show, item, { environment, request, output, warnings });
}
