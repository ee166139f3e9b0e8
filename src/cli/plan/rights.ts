import { isJsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ObjectAt } from "../objects/paths.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";

const reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/**
 * Whether somebody lacks the right to apply this object. A server says 403 for that, and also where
 * a quota or a check of its own refuses the object, which is another matter.
 */
export async function lacksRight(server: Server, at: ObjectAt): Promise<boolean> {
  if (!(await mayDo(server, "get", at))) return true;
  const isThere = (await findObject(server, at)) !== undefined;
  return !(await mayDo(server, isThere ? "patch" : "create", at));
}

async function mayDo(
  server: Server,
  verb: string,
  { kind, namespace, name }: ObjectAt,
): Promise<boolean> {
  const resourceAttributes = {
    verb,
    group: kind.group,
    resource: kind.plural,
    ...(kind.namespaced ? { namespace } : {}),
    // Who makes an object is asked before it has a name.
    ...(verb === "create" ? {} : { name }),
  };
  const body = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectAccessReview",
    spec: { resourceAttributes },
  };
  try {
    const review = await server.ask({ method: "POST", path: reviews, body });
    const status = isJsonObject(review) ? review["status"] : undefined;
    return isJsonObject(status) && status["allowed"] === true;
  } catch (error) {
    // Who may not even ask has no right that could be told.
    if (error instanceof ApiError) return false;
    throw error;
  }
}
