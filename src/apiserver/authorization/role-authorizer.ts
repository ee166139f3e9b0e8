import type { User } from "../contract.ts";
import type { Attributes, Authorizer, Verdict } from "./authorizer.ts";
import type { RoleName, Rule } from "./roles.ts";
import { adminRules, roles, tenantClusterRules } from "./roles.ts";

/** The group of Berth's own controllers. Authentication gives it to nobody. */
export const controllersGroup = "berth:system";

/** The controllers inside this process. They write status, Claims and Orphans: all of it. */
export const controllersUser: User = {
  name: "system:berth",
  uid: "system:berth",
  groups: [controllersGroup, "system:authenticated"],
};

/**
 * The group that grants a role: `berth:edit` everywhere, `berth:edit:team-a` in that namespace.
 * The groups of a user are all that authorization reads of them.
 */
export function roleGroup(role: RoleName, namespace?: string): string {
  return namespace === undefined ? `berth:${role}` : `berth:${role}:${namespace}`;
}

/** Judges by the roles that a user's groups grant. */
export function createRoleAuthorizer(): Authorizer {
  // A user's groups never change: a changed user is a new object.
  const known = new WeakMap<User, readonly Grant[]>();
  return {
    authorize: (user, attributes) => {
      const grants = known.get(user) ?? user.groups.flatMap(grantOf);
      known.set(user, grants);
      const grant = grants.find((candidate) => allows(candidate, attributes));
      return grant ? { allowed: true, reason: grant.why } : refusal(grants, attributes);
    },
  };
}

interface Grant {
  readonly rules: readonly Rule[];
  /** Absent: everywhere. */
  readonly namespace: string | undefined;
  readonly why: string;
}

function grantOf(group: string): Grant[] {
  const why = `allowed by the group ${group}`;
  if (group === controllersGroup) return [{ rules: adminRules, namespace: undefined, why }];
  const [prefix, role, ...rest] = group.split(":");
  if (prefix !== "berth" || role === undefined || !isRoleName(role) || rest.length > 1) return [];
  return [{ rules: roles[role], namespace: rest[0], why }];
}

export function isRoleName(name: string): name is RoleName {
  return Object.hasOwn(roles, name);
}

function allows(grant: Grant, attributes: Attributes): boolean {
  if (grant.namespace === undefined) {
    return grant.rules.some((rule) => matches(rule, attributes));
  }
  if (attributes.namespace === undefined) return allowsTenant(grant.namespace, attributes);
  if (attributes.namespace !== grant.namespace) return false;
  return grant.rules.some((rule) => matches(rule, attributes));
}

/** Outside of namespaces, a user of one namespace sees that namespace and what VMs refer to. */
function allowsTenant(namespace: string, attributes: Attributes): boolean {
  const { verb, group, resource, subresource, name } = attributes;
  const isOwn = group === "" && resource === "namespaces" && name === namespace;
  if (isOwn && verb === "get" && subresource === undefined) return true;
  return tenantClusterRules.some((rule) => matches(rule, attributes));
}

function matches(rule: Rule, attributes: Attributes): boolean {
  const { namespace } = attributes;
  if ((rule.where === "namespace") !== (namespace !== undefined)) return false;
  if (namespace !== undefined && rule.exceptNamespaces?.includes(namespace)) return false;
  return (
    includesOrAll(rule.verbs, attributes.verb) &&
    includesOrAll(rule.groups, attributes.group) &&
    matchesResource(rule, attributes)
  );
}

function includesOrAll(list: readonly string[], value: string): boolean {
  return list.includes("*") || list.includes(value);
}

function matchesResource(rule: Rule, attributes: Attributes): boolean {
  const { resource, subresource } = attributes;
  // Who asks for every kind at once asks for the excepted ones too.
  const except = rule.exceptResources;
  if (except !== undefined && (resource === "*" || except.includes(resource))) return false;
  if (subresource === undefined) return includesOrAll(rule.resources, resource);
  return (
    rule.resources.includes(`${resource}/${subresource}`) ||
    rule.resources.includes(`*/${subresource}`) ||
    rule.resources.includes("*/*")
  );
}

/** Where asking for one namespace instead of all would have been allowed, the refusal says so. */
function refusal(grants: readonly Grant[], attributes: Attributes): Verdict {
  if (!attributes.allNamespaces) return { allowed: false };
  const isOpenSomewhere = grants.some((grant) => {
    // Any ordinary namespace stands for those that a grant without restriction reaches.
    return allows(grant, { ...attributes, namespace: grant.namespace ?? "default" });
  });
  if (!isOpenSomewhere) return { allowed: false };
  return { allowed: false, reason: "not every namespace is open to this user, so name one (-n)" };
}
