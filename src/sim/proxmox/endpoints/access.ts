import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import type { Process } from "../process.ts";
import { type Caller, normalPath } from "../access/rights.ts";
import { splitList } from "../schema/formats.ts";
import type { AclEntry } from "../state.ts";
import { groupEndpoints } from "./groups.ts";
import { login } from "./login.ts";
import { roleEndpoints } from "./roles.ts";
import { userEndpoints } from "./users.ts";

/** GET /access/permissions: by default of the caller itself, on everything it has rights to. */
function permissions({ cluster, caller, parameters }: Call): unknown {
  const { userid, path } = parameters;
  if (userid !== undefined && userid !== caller.id) {
    cluster.rights.demand(caller, "/access", { privileges: ["Sys.Audit"] });
  }
  const subject = userid === undefined ? caller : callerOf(userid);
  const paths = path === undefined ? knownPaths(cluster.state.acl) : [path];
  const held = paths.map((each): [string, Record<string, number>] => {
    const privileges = each.startsWith("/") ? cluster.rights.privilegesOf(subject, each) : [];
    return [each, Object.fromEntries([...privileges].sort().map((name) => [name, 1]))];
  });
  const isAsked = path !== undefined;
  return Object.fromEntries(held.filter(([, rights]) => isAsked || Object.keys(rights).length > 0));
}

function callerOf(id: string): Caller {
  const [userid = "", token] = id.split("!");
  return { id, userid, ...(token === undefined ? {} : { token }) };
}

/** The paths that the API itself always names, and those that access lists add. */
function knownPaths(acl: readonly AclEntry[]): string[] {
  const always = [
    "/",
    "/access",
    "/access/groups",
    "/access/realm",
    "/nodes",
    "/pool",
    "/sdn",
    "/storage",
    "/vms",
  ];
  return [...new Set([...always, ...acl.map(({ path }) => path)])].sort();
}

/** PUT /access/acl */
function* changeAcl({ cluster, parameters }: Call): Process<unknown> {
  const subjects = subjectsOf(parameters);
  if (subjects.length === 0) {
    const text = "either 'users', 'groups' or 'tokens' is required.";
    throw parameterError({ users: text, groups: text, tokens: text });
  }
  const path = normalPath(parameters["path"] ?? "");
  if (path === undefined)
    throw parameterError({ path: `invalid ACL path '${parameters["path"]}'` });
  yield* cluster.step("change ACL");
  cluster.demandQuorum();
  for (const roleid of splitList(parameters["roles"] ?? "")) {
    for (const { type, ugid } of subjects) {
      demandKnown(cluster, { roleid, type, ugid });
      const isSame = (entry: AclEntry): boolean => {
        return (
          entry.path === path &&
          entry.type === type &&
          entry.ugid === ugid &&
          entry.roleid === roleid
        );
      };
      const propagate = parameters["propagate"] === "0" ? 0 : 1;
      const others = cluster.state.acl.filter((entry) => !isSame(entry));
      const entry = { path, type, ugid, roleid, propagate };
      cluster.state.acl = isSet(parameters["delete"]) ? others : [...others, entry];
    }
  }
  return null;
}

function subjectsOf(parameters: Call["parameters"]): { type: AclEntry["type"]; ugid: string }[] {
  const lists: readonly [string, AclEntry["type"]][] = [
    ["users", "user"],
    ["groups", "group"],
    ["tokens", "token"],
  ];
  return lists.flatMap(([name, type]) => {
    return splitList(parameters[name] ?? "").map((ugid) => ({ type, ugid }));
  });
}

function demandKnown(
  cluster: Call["cluster"],
  { roleid, type, ugid }: { roleid: string; type: AclEntry["type"]; ugid: string },
): void {
  const isKnown = cluster.rights.rolePrivileges(roleid) !== undefined;
  const unknown = isKnown ? unknownSubject(cluster, type, ugid) : `role '${roleid}' does not exist`;
  if (unknown !== undefined) throw new PveError(`ACL update failed: ${unknown}`);
}

/** Whom a list is to name and nobody knows, in Proxmox' words. */
function unknownSubject(
  { rights, state }: Call["cluster"],
  type: AclEntry["type"],
  ugid: string,
): string | undefined {
  const [userid = "", tokenid = ""] = ugid.split("!");
  switch (type) {
    case "group": {
      const isKnown = state.groups?.some(({ groupid }) => groupid === ugid) ?? false;
      return isKnown ? undefined : `group '${ugid}' does not exist`;
    }
    case "user":
      return rights.user(userid) === undefined ? `user '${userid}' does not exist` : undefined;
    case "token": {
      const text = `no such token '${tokenid}' for user '${userid}'`;
      return rights.token(userid, tokenid) === undefined ? text : undefined;
    }
  }
}

export const accessEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /access": immediate(() =>
    ["users", "groups", "domains", "ticket", "acl", "roles", "permissions"].map((subdir) => ({
      subdir,
    })),
  ),
  "POST /access/ticket": login,
  "GET /access/ticket": immediate(() => null),
  "GET /access/permissions": immediate(permissions),
  "GET /access/acl": immediate(({ cluster }) => cluster.state.acl),
  "PUT /access/acl": changeAcl,
  "GET /access/domains": immediate(() => [
    { realm: "pam", type: "pam", comment: "Linux PAM standard authentication" },
    { realm: "pve", type: "pve", comment: "Proxmox VE authentication server" },
  ]),
  ...userEndpoints,
  ...groupEndpoints,
  ...roleEndpoints,
};
