import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { splitList } from "../schema/formats.ts";
import type { TokenState, UserState } from "../state.ts";

const auditors = { privileges: ["User.Modify", "Sys.Audit"], isAny: true };

/** GET /access/users: those whom the caller may manage or audit, and always itself. */
function listUsers(call: Call): unknown {
  const { cluster, caller, parameters } = call;
  const seesAll = cluster.rights.may(caller, "/access/groups", auditors);
  const isVisible = ({ userid }: UserState): boolean => {
    if (seesAll || userid === caller.id) return true;
    const groups = cluster.rights.groupsOf(userid);
    return groups.some((each) => cluster.rights.may(caller, `/access/groups/${each}`, auditors));
  };
  const { enabled, full } = parameters;
  return cluster.state.users
    .filter(isVisible)
    .filter(({ isEnabled }) => enabled === undefined || isEnabled === isSet(enabled))
    .toSorted((left, right) => (left.userid < right.userid ? -1 : 1))
    .map((user) => ({
      ...userFields(user),
      userid: user.userid,
      "realm-type": user.userid.split("@")[1],
      ...(isSet(full) ? listFields(call, user) : {}),
    }));
}

const texts = ["firstname", "lastname", "email", "comment", "keys"] as const;

function userFields(user: UserState): object {
  const given = texts.filter((name) => user[name] !== undefined);
  // The address stands in the middle of its line: if anything stands behind it, it is there, empty.
  const hasMore = user.comment !== undefined || user.keys !== undefined;
  return {
    enable: user.isEnabled ? 1 : 0,
    expire: user.expire ?? 0,
    ...(hasMore ? { email: "" } : {}),
    ...Object.fromEntries(given.map((name) => [name, user[name]])),
  };
}

function listFields({ cluster }: Call, { userid, tokens }: UserState): object {
  const rows = tokens.map((token) => ({ tokenid: token.tokenid, ...tokenFields(token) }));
  const groups = cluster.rights.groupsOf(userid).toSorted().join(",");
  return { groups, tokens: rows.length === 0 ? null : rows };
}

function readUser(call: Call): unknown {
  const user = userOf(call);
  const tokens = Object.fromEntries(user.tokens.map((each) => [each.tokenid, tokenFields(each)]));
  return {
    ...userFields(user),
    groups: call.cluster.rights.groupsOf(user.userid).toSorted(),
    tokens: user.tokens.length === 0 ? null : tokens,
  };
}

function createUser(call: Call): unknown {
  const { cluster, parameters } = call;
  const { userid = "", password, enable, groups } = parameters;
  const failed = "create user failed: ";
  if (cluster.rights.user(userid) !== undefined) {
    throw new PveError(`${failed}user '${userid}' already exists`);
  }
  const user: UserState = {
    userid,
    isEnabled: enable !== "0",
    tokens: [],
    ...(password === undefined ? {} : { password }),
  };
  demandGroups(call, groups, failed);
  setFields(user, parameters);
  cluster.state.users.push(user);
  joinGroups(call, user, groups);
  return null;
}

function changeUser(call: Call): unknown {
  const { parameters } = call;
  const { enable, groups, append } = parameters;
  const failed = "update user failed: ";
  const user = userOf(call, failed);
  demandGroups(call, groups, failed);
  if (enable !== undefined) user.isEnabled = enable !== "0";
  setFields(user, parameters);
  if (groups !== undefined && !isSet(append)) leaveGroups(call, user);
  joinGroups(call, user, groups);
  return null;
}

function setFields(user: UserState, parameters: Call["parameters"]): void {
  const { expire } = parameters;
  if (expire !== undefined) user.expire = Number(expire);
  for (const name of texts) {
    const value = parameters[name];
    if (value !== undefined) user[name] = value;
    // An empty text is not there when the file is read again.
    if (user[name] === "") delete user[name];
  }
}

function demandGroups({ cluster }: Call, groups: string | undefined, failed: string): void {
  const known = (cluster.state.groups ?? []).map(({ groupid }) => groupid);
  const unknown = splitList(groups ?? "").find((each) => !known.includes(each));
  if (unknown !== undefined) throw new PveError(`${failed}no such group '${unknown}'`);
}

function joinGroups({ cluster }: Call, { userid }: UserState, groups: string | undefined): void {
  const joined = splitList(groups ?? "");
  for (const group of cluster.state.groups ?? []) {
    const isNew = joined.includes(group.groupid) && !group.users.includes(userid);
    if (isNew) group.users.push(userid);
  }
}

function leaveGroups({ cluster }: Call, { userid }: UserState): void {
  for (const group of cluster.state.groups ?? []) {
    group.users = group.users.filter((each) => each !== userid);
  }
}

/** Its groups and what access lists grant to it and its tokens go with it. */
function deleteUser(call: Call): unknown {
  const { state } = call.cluster;
  const user = userOf(call);
  leaveGroups(call, user);
  state.users = state.users.filter((each) => each !== user);
  const gone = [user.userid, ...user.tokens.map((each) => `${user.userid}!${each.tokenid}`)];
  state.acl = state.acl.filter(({ type, ugid }) => type === "group" || !gone.includes(ugid));
  return null;
}

function userOf({ cluster, parameters }: Call, failed = ""): UserState {
  const { userid = "" } = parameters;
  const user = cluster.rights.user(userid);
  if (user === undefined) throw new PveError(`${failed}no such user ('${userid}')`);
  return user;
}

// Tokens.

function tokenOf(call: Call): TokenState {
  const { userid = "", tokenid = "" } = call.parameters;
  const token = userOf(call).tokens.find((each) => each.tokenid === tokenid);
  if (token === undefined) throw new PveError(`no such token '${tokenid}' for user '${userid}'`);
  return token;
}

function tokenFields({ comment, expire, privsep }: TokenState): object {
  return { expire, privsep, ...(comment === undefined ? {} : { comment }) };
}

function createToken(call: Call): unknown {
  const { userid = "", tokenid = "" } = call.parameters;
  const user = userOf(call);
  if (user.tokens.some((each) => each.tokenid === tokenid)) {
    throw parameterError({ tokenid: "Token already exists." });
  }
  const secret = call.cluster.random.uuid();
  const token: TokenState = { tokenid, secret, privsep: 1, expire: 0 };
  setTokenFields(token, call.parameters);
  user.tokens.push(token);
  const { comment } = token;
  const given = comment === undefined ? {} : { comment };
  const info = { privsep: 1, ...given, ...sentFields(call.parameters) };
  return { "full-tokenid": `${userid}!${tokenid}`, info, value: secret };
}

function changeToken(call: Call): unknown {
  const { userid = "", tokenid = "", regenerate } = call.parameters;
  const token = tokenOf(call);
  setTokenFields(token, call.parameters);
  const told = { ...tokenFields(token), ...sentFields(call.parameters) };
  if (!isSet(regenerate)) return told;
  token.secret = call.cluster.random.uuid();
  return { ...told, value: token.secret, "full-tokenid": `${userid}!${tokenid}` };
}

/** What the reply gives back as it was sent, as text. */
function sentFields({ privsep, expire }: Call["parameters"]): object {
  return {
    ...(privsep === undefined ? {} : { privsep }),
    ...(expire === undefined ? {} : { expire }),
  };
}

function setTokenFields(token: TokenState, parameters: Call["parameters"]): void {
  const { privsep, expire, comment } = parameters;
  const removed = splitList(parameters["delete"] ?? "");
  const unknown = removed.find((each) => each !== "comment");
  if (unknown !== undefined) throw parameterError({ delete: `unknown option '${unknown}'` });
  if (privsep !== undefined) token.privsep = privsep === "0" ? 0 : 1;
  if (expire !== undefined) token.expire = Number(expire);
  if (comment !== undefined) token.comment = comment;
  if (removed.includes("comment") || token.comment === "") delete token.comment;
}

/** Entries of access lists that name it are not read again. */
function deleteToken(call: Call): unknown {
  const { state } = call.cluster;
  const token = tokenOf(call);
  const user = userOf(call);
  user.tokens = user.tokens.filter((each) => each !== token);
  const id = `${user.userid}!${token.tokenid}`;
  state.acl = state.acl.filter(({ type, ugid }) => type !== "token" || ugid !== id);
  return null;
}

const tokens = "/access/users/{userid}/token";

export const userEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /access/users": immediate(listUsers),
  "POST /access/users": immediate(createUser),
  "GET /access/users/{userid}": immediate(readUser),
  "PUT /access/users/{userid}": immediate(changeUser),
  "DELETE /access/users/{userid}": immediate(deleteUser),
  [`GET ${tokens}`]: immediate((call) =>
    userOf(call).tokens.map((token) => ({ tokenid: token.tokenid, ...tokenFields(token) })),
  ),
  [`GET ${tokens}/{tokenid}`]: immediate((call) => tokenFields(tokenOf(call))),
  [`POST ${tokens}/{tokenid}`]: immediate(createToken),
  [`PUT ${tokens}/{tokenid}`]: immediate(changeToken),
  [`DELETE ${tokens}/{tokenid}`]: immediate(deleteToken),
};
