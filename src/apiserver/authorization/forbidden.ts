import { ApiError, qualifiedResource } from "../../kernel/status.ts";
import type { User } from "../contract.ts";
import type { Attributes } from "./authorizer.ts";

/** The 403 in kube-apiserver's words, with our own sentence after it where there is one. */
export function refused(user: User, attributes: Attributes, reason: string | undefined): ApiError {
  const { group, resource, name } = attributes;
  const qualified = qualifiedResource({ group, resource });
  const subject = name ? `${qualified} "${name}"` : qualified;
  const why = reason === undefined ? "" : `: ${reason}`;
  const message = `${subject} is forbidden: ${sentence(user, attributes)}${why}`;
  return new ApiError(403, "Forbidden", message, {
    ...(name ? { name } : {}),
    ...(group ? { group } : {}),
    kind: resource,
  });
}

/** The same for a path that is no object's, as kube-apiserver says it. */
export function refusedPath(user: User, verb: string, path: string): ApiError {
  const message = `forbidden: User "${user.name}" cannot ${verb} path "${path}"`;
  return new ApiError(403, "Forbidden", message);
}

function sentence(user: User, attributes: Attributes): string {
  const { verb, group, resource, subresource, namespace } = attributes;
  const what = subresource ? `${resource}/${subresource}` : resource;
  const where = namespace ? `in the namespace "${namespace}"` : "at the cluster scope";
  return `User "${user.name}" cannot ${verb} resource "${what}" in API group "${group}" ${where}`;
}

/**
 * Refuses `kubectl --as`. To overlook these headers would be to do as oneself what was meant to be
 * done with the rights of somebody else.
 */
export function refuseImpersonation(user: User, headers: Readonly<Record<string, string>>): void {
  const name = headers["impersonate-user"];
  const isAsked = [name, headers["impersonate-group"], headers["impersonate-uid"]].some(Boolean);
  if (!isAsked) return;
  const attributes = { verb: "impersonate", group: "", resource: "users", name };
  throw refused(
    user,
    { ...attributes, subresource: undefined, namespace: undefined },
    "this server does not serve impersonation",
  );
}
