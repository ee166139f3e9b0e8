import type { Resource } from "../../api/resource.ts";
import { assert } from "../../kernel/assert.ts";
import { guard } from "../../kernel/guard.ts";
import type { KubeObject, ObjectMeta } from "../../kernel/object.ts";
import { conflict, notFound } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { bucketOf, idOf, type ResourceRequest, type ServerEnvironment } from "../contract.ts";
import { deletionOf } from "../objects/index.ts";
import { answerObject } from "./answer.ts";
import { parseDeleteOptions, type DeleteOptions } from "./delete-options.ts";
import { subjectOf } from "./errors.ts";
import { assertNamespaceMayGo } from "./namespaces.ts";
import { negotiate, type Output } from "./negotiate.ts";
import { respond } from "./respond.ts";
import { writeObject, type Verdict, type Written } from "./write.ts";

/** DELETE: the object goes, or is marked if somebody still has to finish with it. */
export async function deleteObject(
  environment: ServerEnvironment,
  request: ResourceRequest,
): Promise<WireResponse> {
  const { resource, namespace, name } = request;
  assert(name !== undefined, "a deletion names its object");
  const output = negotiate(request, "one");
  const options = parseDeleteOptions(request);
  assertNamespaceMayGo(resource, name);
  const written = await deleteOne(environment, resource, { namespace, name, options });
  const isGone = written.do === "delete";
  if (isGone && !returnsObject(resource)) return success(resource, written, output);
  // Kubernetes says "accepted" only to those who asked for dependents to go, in the oldest way.
  const isAccepted = !isGone && options.deletion.orphanDependents === false;
  const status = isAccepted ? 202 : 200;
  return answerObject(written.item, { environment, request, output, status });
}

/** Deletes one object by the rules of its finalizers. Throws 404 where there is none. */
export function deleteOne(
  environment: ServerEnvironment,
  resource: Resource,
  wanted: { namespace: string | undefined; name: string; options: DeleteOptions },
): Promise<Written> {
  const { namespace, name, options } = wanted;
  const key = { bucket: bucketOf(resource), id: idOf(namespace, name) };
  const target = { store: environment.store, key, dryRun: options.dryRun };
  return writeObject(target, (current): Verdict => {
    if (!current) throw notFound(subjectOf(resource, name));
    assertPreconditions(resource, current.metadata, options);
    return verdictOf(current, options, environment.clock.nowMs());
  });
}

function verdictOf(current: KubeObject, options: DeleteOptions, nowMs: number): Verdict {
  const deletion = deletionOf(current, options.deletion, nowMs);
  switch (deletion.do) {
    case "mark":
      return { do: "put", object: deletion.object };
    case "remove":
      return { do: "delete", object: current };
    case "keep":
      return { do: "keep", object: current };
  }
}

function assertPreconditions(resource: Resource, meta: ObjectMeta, options: DeleteOptions): void {
  const { uid, resourceVersion } = options.preconditions;
  // Kubernetes names the kind here where it names the plural elsewhere.
  const subject = { group: resource.group, resource: resource.kind, name: meta.name ?? "" };
  if (!guard("delete-same-uid", uid === undefined || uid === meta.uid)) {
    const differs = `does not match the UID in record (${meta.uid})`;
    const why = "The object might have been deleted and then recreated";
    throw conflict(subject, `the UID in the precondition (${uid}) ${differs}. ${why}`);
  }
  const isSame = resourceVersion === undefined || resourceVersion === meta.resourceVersion;
  if (guard("delete-same-version", isSame)) return;
  const why =
    `the ResourceVersion in the precondition (${resourceVersion}) does not match the ` +
    `ResourceVersion in record (${meta.resourceVersion})`;
  throw conflict(subject, `${why}. The object might have been modified`);
}

/** Two of Kubernetes' kinds are returned as they were; the others only by name. */
function returnsObject({ group, plural }: Resource): boolean {
  return group === "" && (plural === "namespaces" || plural === "serviceaccounts");
}

function success(resource: Resource, written: Written, output: Output): WireResponse {
  const { name = "", uid = "" } = written.item.object().metadata;
  const { group, plural } = resource;
  const details = { name, ...(group ? { group } : {}), kind: plural, uid };
  const status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details,
  };
  return respond({ status: 200, output }, [JSON.stringify(status)]);
}
