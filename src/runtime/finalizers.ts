import type { ObjectClient, ObjectName } from "../client/index.ts";
import { assert } from "../kernel/assert.ts";
import { precondition } from "../kernel/guard.ts";
import { jsonEqual } from "../kernel/json.ts";
import { objectKey, type KubeObject, type ObjectMeta } from "../kernel/object.ts";
import { ApiError } from "../kernel/status.ts";

/** What the helpers need of a client. */
type Objects<Read extends KubeObject> = Pick<ObjectClient<Read>, "get" | "patch">;

/**
 * Adds our finalizer, and changes nobody else's: the patch holds only for the list that was read.
 * Resolves with the object as it is if ours is there already; rejects with a conflict (409) if the
 * list or the object itself is another by now.
 */
export async function addFinalizer<Read extends KubeObject>(
  objects: Objects<Read>,
  object: Read,
  finalizer: string,
): Promise<Read> {
  if (object.metadata.finalizers?.includes(finalizer)) return object;
  return patchFinalizers(objects, object, finalizerAddition(object.metadata, finalizer));
}

/**
 * Removes our finalizer, and changes nobody else's. Resolves with undefined if the object is gone
 * or another stands in its place; rejects with a conflict (409) if the list is another by now.
 */
export async function removeFinalizer<Read extends KubeObject>(
  objects: Objects<Read>,
  object: Read,
  finalizer: string,
): Promise<Read | undefined> {
  if (!object.metadata.finalizers?.includes(finalizer)) return object;
  try {
    return await patchFinalizers(objects, object, finalizerRemoval(object.metadata, finalizer));
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

/** The JSON patch that adds a finalizer to an object as it was read. Pure. */
function finalizerAddition(metadata: ObjectMeta, finalizer: string): object[] {
  const { finalizers = [] } = metadata;
  // An absent list equals null, and nothing can be appended to it.
  if (finalizers.length === 0) {
    return [
      ...sameObject(metadata),
      ...sameFinalizers(null),
      { op: "add", path: "/metadata/finalizers", value: [finalizer] },
    ];
  }
  return [
    ...sameObject(metadata),
    ...sameFinalizers(finalizers),
    { op: "add", path: "/metadata/finalizers/-", value: finalizer },
  ];
}

/** The JSON patch that removes one. Others may come and go behind it. Pure. */
function finalizerRemoval(metadata: ObjectMeta, finalizer: string): object[] {
  const path = `/metadata/finalizers/${metadata.finalizers?.indexOf(finalizer) ?? -1}`;
  const isOurs = precondition("finalizer-removed-is-ours", [
    { op: "test", path, value: finalizer },
  ]);
  return [...sameObject(metadata), ...isOurs, { op: "remove", path }];
}

/** What somebody else added since stays. */
function sameFinalizers(value: readonly string[] | null): object[] {
  return precondition("finalizer-same-list", [{ op: "test", path: "/metadata/finalizers", value }]);
}

/** Another object of the same name is none of our business. */
function sameObject({ uid }: ObjectMeta): object[] {
  assert(uid !== undefined, "an object that was read has a uid");
  return precondition("finalizer-same-object", [{ op: "test", path: "/metadata/uid", value: uid }]);
}

async function patchFinalizers<Read extends KubeObject>(
  objects: Objects<Read>,
  object: Read,
  operations: readonly object[],
): Promise<Read> {
  const { name = "", namespace } = object.metadata;
  const at: ObjectName = namespace === undefined ? { name } : { namespace, name };
  try {
    return await objects.patch(at, { json: operations });
  } catch (error) {
    // The server says 422 for a test that failed, and for much else: looking tells them apart.
    if (!(error instanceof ApiError) || error.code !== 422) throw error;
    const { metadata } = await objects.get(at);
    if (metadata.uid !== object.metadata.uid) throw gone(object, error);
    if (jsonEqual(metadata.finalizers ?? [], object.metadata.finalizers ?? [])) throw error;
    throw changed(object, error);
  }
}

function gone(object: KubeObject, cause: ApiError): ApiError {
  const message = `${object.kind} "${objectKey(object.metadata)}" is gone; another has its name`;
  return caused(new ApiError(404, "NotFound", message), cause);
}

function changed(object: KubeObject, cause: ApiError): ApiError {
  const message = `the finalizers of ${object.kind} "${objectKey(object.metadata)}" have changed`;
  return caused(new ApiError(409, "Conflict", message), cause);
}

function caused(error: ApiError, cause: ApiError): ApiError {
  error.cause = cause;
  return error;
}
