import { guard } from "../../kernel/guard.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { nameSuffix } from "../../kernel/random.ts";
import { alreadyExists, ApiError, badRequest } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import {
  bucketOf,
  idOf,
  type ResourceRequest,
  type SchemaRunner,
  type ServerEnvironment,
} from "../contract.ts";
import { assertValid, expectedKind, settle } from "./admit.ts";
import { answerObject } from "./answer.ts";
import { cannotBeHandled, decodeObject } from "./decode.ts";
import { subjectOf } from "./errors.ts";
import { finalizerWarnings, newMetadata, withNamespace, withoutDoubleOwners } from "./metadata.ts";
import { assertNamespaceTakes, isNamespaces, withContentFinalizer } from "./namespaces.ts";
import { negotiate } from "./negotiate.ts";
import { parseWriteOptions } from "./options.ts";
import { writeObject, type Verdict, type Written } from "./write.ts";

/** As in kube-apiserver: with a million names of one prefix, one creation in a thousand fails. */
const generatedNameTries = 8;
/** What a generated name keeps of its prefix, so that with five more it is still a DNS label. */
const generatedPrefixMax = 58;

export async function createObject(
  environment: ServerEnvironment,
  request: ResourceRequest,
): Promise<WireResponse> {
  const { resource, query } = request;
  const output = negotiate(request, "one");
  const options = parseWriteOptions(query, "CreateOptions");
  const expected = expectedKind(resource);
  const { object, complaints } = decodeObject(request, expected);
  const runner = environment.runnerOf(resource);
  const warnings = settle(object, runner, {
    fieldValidation: options.fieldValidation,
    complaints,
    refuse: (why) => cannotBeHandled(expected, why),
  });
  const { meta, warnings: ownerWarnings } = withoutDoubleOwners(
    withNamespace(object.metadata, resource.namespaced ? request.namespace : undefined),
  );
  warnings.push(...ownerWarnings, ...finalizerWarnings(resource, meta, undefined));
  assertUnversioned(meta.resourceVersion);
  const creation: Creation = { environment, request, runner, dryRun: options.dryRun };
  const { item } = await createNamed(creation, { ...object, metadata: meta });
  return answerObject(item, { environment, request, output, warnings, status: 201 });
}

interface Creation {
  readonly environment: ServerEnvironment;
  readonly request: ResourceRequest;
  readonly runner: SchemaRunner;
  readonly dryRun: boolean;
}

function assertUnversioned(resourceVersion: string | undefined): void {
  if (resourceVersion === undefined || resourceVersion === "0") return;
  throw badRequest("resourceVersion should not be set on objects to be created");
}

/** Creates under the name that was sent, or under generated ones until one is free. */
async function createNamed(creation: Creation, sent: KubeObject): Promise<Written> {
  const { name, generateName } = sent.metadata;
  if (name || !generateName) return createOnce(creation, sent);
  for (let tries = 1; ; tries++) {
    const prefix = generateName.slice(0, generatedPrefixMax);
    const named = `${prefix}${nameSuffix(creation.environment.random)}`;
    const metadata = { ...sent.metadata, name: named };
    try {
      return await createOnce(creation, { ...sent, metadata });
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== "AlreadyExists") throw error;
      if (tries === generatedNameTries) throw noUniqueName(error);
    }
  }
}

function noUniqueName({ code, reason, message, details }: ApiError): ApiError {
  const why = `${message}, the server was not able to generate a unique name for the object`;
  return new ApiError(code, reason, why, { ...details, retryAfterSeconds: 1 });
}

function createOnce(creation: Creation, sent: KubeObject): Promise<Written> {
  const { environment, request, dryRun } = creation;
  const { resource } = request;
  const { name = "", namespace } = sent.metadata;
  const object = initialObject(creation, sent);
  const key = { bucket: bucketOf(resource), id: idOf(namespace, name) };
  return writeObject({ store: environment.store, key, dryRun }, (current): Verdict => {
    assertNamespaceTakes(environment.store, resource, { namespace, name });
    assertValid(object, undefined, { resource, runner: creation.runner });
    if (current && !guard("create-if-absent", current === undefined)) {
      throw taken(current, alreadyExists(subjectOf(resource, name)));
    }
    return { do: "put", object };
  });
}

function taken(current: KubeObject, { code, reason, message, details }: ApiError): ApiError {
  const isGoing = current.metadata.deletionTimestamp !== undefined;
  const why = isGoing ? `object is being deleted: ${message}` : message;
  return new ApiError(code, reason, why, details);
}

function initialObject({ environment, request }: Creation, sent: KubeObject): KubeObject {
  const { resource } = request;
  const { clock, random } = environment;
  const metadata = newMetadata(sent.metadata, {
    uid: random.uuid(),
    nowMs: clock.nowMs(),
    isNative: resource.native !== undefined,
  });
  const object: KubeObject = { ...sent, metadata };
  // Whoever creates an object declares; what is observed is written through its own door.
  if (resource.subresources.status) delete object["status"];
  const owned = isNamespaces(resource) ? withContentFinalizer(object, undefined) : object;
  return resource.native?.prepare?.(owned, undefined) ?? owned;
}
