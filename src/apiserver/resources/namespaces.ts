import type { Resource } from "../../api/resource.ts";
import { guard } from "../../kernel/guard.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { forbidden, notFound } from "../../kernel/status.ts";
import type { Store } from "../../store/store.ts";
import { bucketOf } from "../contract.ts";
import { decode } from "../objects/index.ts";
import { namespaceTerminating, subjectOf } from "./errors.ts";

/** What holds for namespaces, and for what is in them. */

const namespacesBucket = bucketOf({ group: "", plural: "namespaces" });

/** Without these Berth itself would not work; Kubernetes protects its own in the same way. */
const protectedNamespaces = new Set(["default", "kube-system", "berth-system"]);

const contentFinalizer = "kubernetes";

export function isNamespaces(resource: Resource): boolean {
  return resource.group === "" && resource.plural === "namespaces";
}

/** Refuses a new object in a namespace that does not exist, or is going away. */
export function assertNamespaceTakes(
  store: Store,
  resource: Resource,
  { namespace, name }: { namespace: string | undefined; name: string },
): void {
  if (namespace === undefined) return;
  const entry = store.get({ bucket: namespacesBucket, id: namespace });
  if (!entry) throw notFound({ group: "", resource: "namespaces", name: namespace });
  const { metadata } = decode(entry);
  if (guard("namespace-not-terminating", metadata.deletionTimestamp === undefined)) return;
  throw namespaceTerminating(subjectOf(resource, name), namespace);
}

export function assertNamespaceMayGo(resource: Resource, name: string): void {
  const isProtected = isNamespaces(resource) && protectedNamespaces.has(name);
  if (guard("namespace-unprotected", !isProtected)) return;
  throw forbidden(subjectOf(resource, name), "this namespace may not be deleted");
}

/** A namespace stays until its content is gone: its finalizer says so, and clients cannot. */
export function withContentFinalizer(
  object: KubeObject,
  current: KubeObject | undefined,
): KubeObject {
  const spec = isJsonObject(object["spec"]) ? object["spec"] : {};
  if (!current) {
    const sent = Array.isArray(spec["finalizers"]) ? spec["finalizers"] : [];
    const finalizers = sent.includes(contentFinalizer) ? sent : [...sent, contentFinalizer];
    return { ...object, spec: { ...spec, finalizers } };
  }
  return { ...object, spec: current["spec"] ?? {} };
}
