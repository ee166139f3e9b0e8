import type { Resource } from "../../api/resource.ts";
import { guard } from "../../kernel/guard.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type { KubeObject, ObjectMeta } from "../../kernel/object.ts";
import { conflict, invalid, modified } from "../../kernel/status.ts";
import type { SchemaRunner } from "../contract.ts";
import { afterUpdate } from "../objects/index.ts";
import { assertValid } from "./admit.ts";
import { invalidValue, subjectOf } from "./errors.ts";
import { carriedMetadata } from "./metadata.ts";
import { isNamespaces, withContentFinalizer } from "./namespaces.ts";
import type { Verdict } from "./write.ts";

/** Through which door an object is changed, and by which rules. */
export interface Replacing {
  readonly resource: Resource;
  readonly runner: SchemaRunner;
  /** Scale changes the main object, so it counts as none. */
  readonly subresource: "status" | undefined;
}

/**
 * Puts one object in the place of another: PUT, PATCH and scale all end here. It takes from the
 * sent object what its door lets through, refuses what is stale or breaks a rule, and finds out
 * whether anything changed at all.
 */
export function replaceObject(
  sent: KubeObject,
  current: KubeObject,
  replacing: Replacing,
): Verdict {
  const { resource } = replacing;
  assertFresh(sent.metadata, current.metadata, resource);
  const merged = throughDoor(sent, current, replacing);
  const prepared = resource.native?.prepare?.(merged, current) ?? merged;
  const object = withGeneration(prepared, current, replacing);
  assertValid(object, current, replacing);
  if (afterUpdate(object) === "remove") return { do: "delete", object };
  return { do: jsonEqual(object, current) ? "keep" : "put", object };
}

/** The precondition that an object's own uid is: it must still be the same object. */
export function assertSameUid(
  resource: Resource,
  sent: ObjectMeta,
  current: KubeObject | undefined,
): void {
  const uid = current?.metadata.uid ?? "";
  if (guard("replace-same-uid", sent.uid === undefined || sent.uid === uid)) return;
  const why = `Precondition failed: UID in precondition: ${sent.uid}, UID in object meta: ${uid}`;
  throw conflict(subjectOf(resource, sent.name ?? ""), why);
}

function assertFresh(sent: ObjectMeta, current: ObjectMeta, resource: Resource): void {
  const name = current.name ?? "";
  const version = sent.resourceVersion ?? "0";
  if (version === current.resourceVersion) return;
  if (!guard("replace-same-version", version === "0")) throw modified(subjectOf(resource, name));
  // Without a version the newest is replaced: only kinds of Kubernetes' own allow it.
  if (guard("replace-names-version", resource.native !== undefined)) return;
  // Kubernetes names the plural here where it names the kind elsewhere.
  throw invalid({ group: resource.group, kind: resource.plural, name }, [
    invalidValue("metadata.resourceVersion", "0x0", "must be specified for an update"),
  ]);
}

function throughDoor(sent: KubeObject, current: KubeObject, replacing: Replacing): KubeObject {
  const { resource, subresource } = replacing;
  const metadata = carriedMetadata(sent.metadata, current.metadata);
  if (subresource === "status") {
    // Through this door a custom resource's metadata stays as it is; Kubernetes' own may change.
    const kept = resource.native ? { ...current, metadata } : current;
    return withStatus(kept, sent);
  }
  const object: KubeObject = { ...sent, metadata };
  const observed = resource.subresources.status ? withStatus(object, current) : object;
  return isNamespaces(resource) ? withContentFinalizer(observed, current) : observed;
}

function withStatus(object: KubeObject, source: KubeObject): KubeObject {
  const { status: _status, ...rest } = object;
  const { apiVersion, kind, metadata } = object;
  const others = { ...rest, apiVersion, kind, metadata };
  return source["status"] === undefined ? others : { ...others, status: source["status"] };
}

/** A change of what is declared is a new generation; of metadata or a separate status, none. */
function withGeneration(
  object: KubeObject,
  current: KubeObject,
  { subresource }: Replacing,
): KubeObject {
  const { generation } = current.metadata;
  if (generation === undefined || subresource === "status") return object;
  const { metadata: next, ...declared } = object;
  const { metadata: _before, ...before } = current;
  if (jsonEqual(declared, before)) return object;
  return { ...object, metadata: { ...next, generation: generation + 1 } };
}
