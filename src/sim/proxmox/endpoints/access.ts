import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import type { Process } from "../process.ts";
import { builtInRoles } from "../access/roles.ts";
import { type Caller, normalPath } from "../access/rights.ts";
import { splitList } from "../schema/formats.ts";
import type { AclEntry, TokenState, UserState } from "../state.ts";

const ticketLifeMs = 2 * 60 * 60 * 1000;

/** POST /access/ticket: a login by password. */
function* login({ cluster, parameters }: Call): Process<unknown> {
  const { username = "", password = "" } = parameters;
  const user = cluster.rights.user(username);
  yield* cluster.step("login");
  if (user?.password === undefined || !user.isEnabled || user.password !== password) {
    throw new PveError("authentication failure", 401);
  }
  const nowMs = cluster.clock.nowMs();
  const time = Math.floor(nowMs / 1000)
    .toString(16)
    .toUpperCase();
  const secret = (): string => Buffer.from(cluster.random.bytes(32)).toString("base64");
  const ticket = `PVE:${username}:${time}::${secret()}`;
  const csrf = `${time}:${secret()}`;
  const alive = cluster.state.tickets.filter(({ expiresMs }) => expiresMs > nowMs);
  cluster.state.tickets = [
    ...alive,
    { ticket, csrf, userid: username, expiresMs: nowMs + ticketLifeMs },
  ];
  return { ticket, CSRFPreventionToken: csrf, username };
}

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
  { roleid, type, ugid }: { roleid: string; type: string; ugid: string },
): void {
  const failed = (what: string): PveError => new PveError(`ACL update failed: ${what}`);
  if (cluster.rights.rolePrivileges(roleid) === undefined) {
    throw failed(`role '${roleid}' does not exist`);
  }
  const [userid = "", tokenid = ""] = ugid.split("!");
  if (type === "user" && cluster.rights.user(userid) === undefined) {
    throw failed(`user '${userid}' does not exist`);
  }
  if (type === "token" && cluster.rights.token(userid, tokenid) === undefined) {
    throw failed(`no such token '${tokenid}' for user '${userid}'`);
  }
}

function userOf({ cluster, parameters }: Call): UserState {
  const { userid = "" } = parameters;
  const user = cluster.rights.user(userid);
  if (user === undefined) throw new PveError(`no such user ('${userid}')`);
  return user;
}

function tokenOf(call: Call): TokenState {
  const { userid = "", tokenid = "" } = call.parameters;
  const token = userOf(call).tokens.find((each) => each.tokenid === tokenid);
  if (token === undefined) throw new PveError(`no such token '${tokenid}' for user '${userid}'`);
  return token;
}

function tokenInfo({ comment, expire, privsep }: TokenState): object {
  return { expire, privsep, ...(comment === undefined ? {} : { comment }) };
}

function createToken(call: Call): unknown {
  const { userid = "", tokenid = "", privsep, expire, comment } = call.parameters;
  const user = userOf(call);
  if (user.tokens.some((each) => each.tokenid === tokenid)) {
    throw parameterError({ tokenid: "Token already exists." });
  }
  const token: TokenState = {
    tokenid,
    secret: call.cluster.random.uuid(),
    privsep: privsep === "0" ? 0 : 1,
    expire: Number(expire ?? "0"),
    ...(comment === undefined ? {} : { comment }),
  };
  user.tokens.push(token);
  const info = { privsep: privsep ?? "1", ...(comment === undefined ? {} : { comment }) };
  return { "full-tokenid": `${userid}!${tokenid}`, info, value: token.secret };
}

function deleteToken(call: Call): unknown {
  const token = tokenOf(call);
  const user = userOf(call);
  user.tokens = user.tokens.filter((each) => each !== token);
  return null;
}

function createUser({ cluster, parameters }: Call): unknown {
  const { userid = "", password, comment, enable } = parameters;
  if (cluster.rights.user(userid) !== undefined) {
    throw new PveError(`create user failed: user '${userid}' already exists`);
  }
  cluster.state.users.push({
    userid,
    isEnabled: enable !== "0",
    tokens: [],
    ...(password === undefined ? {} : { password }),
    ...(comment === undefined ? {} : { comment }),
  });
  return null;
}

function deleteUser(call: Call): unknown {
  const user = userOf(call);
  call.cluster.state.users = call.cluster.state.users.filter((each) => each !== user);
  return null;
}

function roles({ cluster }: Call): unknown {
  const own = Object.entries(cluster.state.roles).map(([roleid, privs]) => ({
    roleid,
    privs,
    special: 0,
  }));
  const built = Object.entries(builtInRoles(cluster.state.release)).map(([roleid, privs]) => {
    return { roleid, privs, special: 1 };
  });
  return [...built, ...own].map((role) => ({ ...role, privs: role.privs.join(",") }));
}

function setRole({ cluster, parameters }: Call): unknown {
  const { roleid = "", privs = "" } = parameters;
  cluster.state.roles[roleid] = splitList(privs);
  return null;
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
  "GET /access/users": immediate(({ cluster }) =>
    cluster.state.users.map(({ userid, isEnabled }) => ({
      userid,
      enable: isEnabled ? 1 : 0,
      expire: 0,
    })),
  ),
  "POST /access/users": immediate(createUser),
  "DELETE /access/users/{userid}": immediate(deleteUser),
  "GET /access/users/{userid}": immediate((call) => ({
    enable: userOf(call).isEnabled ? 1 : 0,
    expire: 0,
  })),
  "GET /access/users/{userid}/token": immediate((call) =>
    userOf(call).tokens.map((token) => ({ tokenid: token.tokenid, ...tokenInfo(token) })),
  ),
  "GET /access/users/{userid}/token/{tokenid}": immediate((call) => tokenInfo(tokenOf(call))),
  "POST /access/users/{userid}/token/{tokenid}": immediate(createToken),
  "DELETE /access/users/{userid}/token/{tokenid}": immediate(deleteToken),
  "GET /access/roles": immediate(roles),
  "POST /access/roles": immediate(setRole),
  "PUT /access/roles/{roleid}": immediate(setRole),
  "GET /access/domains": immediate(() => [
    { realm: "pam", type: "pam", comment: "Linux PAM standard authentication" },
    { realm: "pve", type: "pve", comment: "Proxmox VE authentication server" },
  ]),
};
