import type { Resource } from "../../api/resource.ts";
import { formatTime } from "../../kernel/clock.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type { ObjectMeta, OwnerReference } from "../../kernel/object.ts";
import { badRequest } from "../../kernel/status.ts";

/** The part of the metadata that is the server's: what clients send of it is not believed. */

/** The metadata of an object that is about to exist. Its name must have been settled before. */
export function newMetadata(
  sent: ObjectMeta,
  made: { readonly uid: string; readonly nowMs: number; readonly isNative: boolean },
): ObjectMeta {
  const { identity, rest } = clientPart(sent);
  return {
    ...identity,
    uid: made.uid,
    // Kubernetes' own kinds that we serve have no generation.
    ...(made.isNative ? {} : { generation: 1 }),
    creationTimestamp: formatTime(made.nowMs),
    ...rest,
  };
}

/** The metadata of an object that takes the place of another. */
export function carriedMetadata(sent: ObjectMeta, current: ObjectMeta): ObjectMeta {
  const { identity, rest } = clientPart(sent);
  const { rest: _ofClients, identity: _identity, ofServer } = clientPart(current);
  // These can be sent, and are then held against what stands; see validateMetadataUpdate.
  const { uid, deletionTimestamp, deletionGracePeriodSeconds } = sent;
  return {
    ...identity,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...ofServer,
    ...(uid === undefined ? {} : { uid }),
    ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    ...rest,
  };
}

/**
 * The namespace of the URL, on the object. A namespace on an object whose kind has none is dropped;
 * another one than the URL's is refused.
 */
export function withNamespace(meta: ObjectMeta, namespace: string | undefined): ObjectMeta {
  const { namespace: sent, ...rest } = meta;
  if (namespace === undefined) return rest;
  if (sent !== undefined && sent !== namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
  return { ...rest, namespace };
}

/** Refuses an object that has another name than the URL it was sent to. */
export function assertName(meta: ObjectMeta, name: string): void {
  if (!meta.name) {
    throw badRequest(
      `the name of the object (${name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (meta.name === name) return;
  throw badRequest(
    `the name of the object (${meta.name}) does not match the name on the URL (${name})`,
  );
}

/** The metadata without owner references that say the same twice, and the warning about them. */
export function withoutDoubleOwners(meta: ObjectMeta): { meta: ObjectMeta; warnings: string[] } {
  const { ownerReferences } = meta;
  if (ownerReferences === undefined || ownerReferences.length < 2) return { meta, warnings: [] };
  const kept: OwnerReference[] = [];
  const doubled: string[] = [];
  for (const owner of ownerReferences) {
    if (kept.some((other) => jsonEqual(other, owner))) doubled.push(owner.uid);
    else kept.push(owner);
  }
  if (doubled.length === 0) return { meta, warnings: [] };
  const warning =
    ".metadata.ownerReferences contains duplicate entries, which were dropped; " +
    `duplicate UID(s) observed: ${doubled.join(", ")}`;
  return { meta: { ...meta, ownerReferences: kept }, warnings: [warning] };
}

const standardFinalizers = new Set(["orphan", "foregroundDeletion", "kubernetes"]);

/** Kubernetes warns about new finalizers that anybody else might call the same. */
export function finalizerWarnings(
  resource: Resource,
  meta: ObjectMeta,
  current: ObjectMeta | undefined,
): string[] {
  if (resource.native) return [];
  const added = (meta.finalizers ?? []).filter((name) => !current?.finalizers?.includes(name));
  return added
    .filter((name) => !name.includes("/") && !standardFinalizers.has(name))
    .toSorted()
    .map((name) => {
      const including = name.includes(".") ? " including a path (/)" : "";
      return (
        `metadata.finalizers: ${JSON.stringify(name)}: prefer a domain-qualified finalizer ` +
        `name${including} to avoid accidental conflicts with other finalizer writers`
      );
    });
}

type ServerField =
  | "uid"
  | "resourceVersion"
  | "generation"
  | "creationTimestamp"
  | "deletionTimestamp"
  | "deletionGracePeriodSeconds"
  | "managedFields";

type IdentityField = "name" | "generateName" | "namespace";

interface Parts {
  readonly identity: Pick<ObjectMeta, IdentityField>;
  readonly ofServer: Pick<ObjectMeta, ServerField>;
  readonly rest: Omit<ObjectMeta, ServerField | IdentityField>;
}

const serverFields = new Set<string>([
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "managedFields",
] satisfies ServerField[]);

const identityFields = new Set<string>([
  "name",
  "generateName",
  "namespace",
] satisfies IdentityField[]);

/** Whose each field is. An old one that nobody uses any more is nobody's. */
function clientPart(meta: ObjectMeta): Parts {
  const identity: Record<string, unknown> = {};
  const ofServer: Record<string, unknown> = {};
  const rest: [field: string, value: unknown][] = [];
  for (const [field, value] of Object.entries(meta)) {
    if (serverFields.has(field)) ofServer[field] = value;
    else if (identityFields.has(field)) identity[field] = value;
    else if (field !== "selfLink") rest.push([field, value]);
  }
  return { identity, ofServer, rest: Object.fromEntries(rest) };
}
