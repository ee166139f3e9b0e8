import type { Resource } from "../../api/resource.ts";
import type { Authorizer } from "../authorization/index.ts";
import type { Catalogue, User, Verb } from "../contract.ts";

const objectVerbs: readonly Verb[] = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];
const partVerbs: readonly Verb[] = ["get", "patch", "update"];

/**
 * What a user may do in a namespace, for `kubectl auth can-i --list`. Found by asking the
 * authorizer about every kind that is served, so that it tells the truth whatever authorizes.
 */
export function rulesOf(
  environment: { readonly catalogue: Catalogue; readonly authorizer: Authorizer },
  user: User,
  namespace: string,
): object {
  const resourceRules = environment.catalogue.all().flatMap((resource) => {
    const parts = [undefined, ...Object.keys(resource.subresources)];
    return parts.flatMap((part) =>
      ruleOf(environment.authorizer, user, { resource, part, namespace }),
    );
  });
  const nonResourceRules = [
    { verbs: ["get"], nonResourceURLs: ["/api", "/api/*", "/apis", "/apis/*", "/openapi/*"] },
    { verbs: ["get"], nonResourceURLs: ["/healthz", "/livez", "/readyz", "/version"] },
  ];
  return { resourceRules, nonResourceRules, incomplete: false };
}

function ruleOf(
  authorizer: Authorizer,
  user: User,
  about: { resource: Resource; part: string | undefined; namespace: string },
): object[] {
  const { resource, part, namespace } = about;
  const verbs = part === undefined ? objectVerbs : partVerbs;
  const allowed = verbs.filter((verb) => {
    const attributes = {
      verb,
      group: resource.group,
      resource: resource.plural,
      subresource: part,
      namespace: resource.namespaced ? namespace : undefined,
      name: undefined,
    };
    return authorizer.authorize(user, attributes).allowed;
  });
  if (allowed.length === 0) return [];
  const name = part === undefined ? resource.plural : `${resource.plural}/${part}`;
  return [{ verbs: allowed, apiGroups: [resource.group], resources: [name] }];
}
