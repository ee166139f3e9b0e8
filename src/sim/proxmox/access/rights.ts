import { forbidden } from "../errors.ts";
import type { AclEntry, ClusterState, TokenState, UserState } from "../state.ts";
import { builtInRoles } from "./roles.ts";

/** Who calls. An API token is a user of its own: "root@pam!t" is not "root@pam". */
export interface Caller {
  /** "root@pam", or "root@pam!t". */
  readonly id: string;
  /** The user without the token. */
  readonly userid: string;
  readonly token?: string;
}

/** The rights of a cluster: users, tokens, roles and access lists, as they are right now. */
export class Rights {
  readonly #state: ClusterState;
  readonly #sets = new WeakMap<readonly string[], ReadonlySet<string>>();

  constructor(state: ClusterState) {
    this.#state = state;
  }

  /** Whether the caller holds all (or any) of the privileges there. */
  may(caller: Caller, path: string, { privileges, isAny = false }: Wanted): boolean {
    if (caller.id === "root@pam") return true;
    const normal = normalPath(path);
    if (normal === undefined) return false;
    const held = this.privilegesOf(caller, normal);
    return isAny ? privileges.some((each) => held.has(each)) : privileges.every((p) => held.has(p));
  }

  /** Throws 403 in Proxmox' words. */
  demand(caller: Caller, path: string, wanted: Wanted): void {
    if (this.may(caller, path, wanted)) return;
    const joined = wanted.privileges.join(wanted.isAny === true ? "|" : ", ");
    throw forbidden(`Permission check failed (${normalPath(path) ?? ""}, ${joined})`);
  }

  /** Effective privileges: for a separated token, what both it and its user hold. */
  privilegesOf(caller: Caller, path: string): ReadonlySet<string> {
    const users = this.#privilegesAt("user", caller.userid, path);
    const token = caller.token === undefined ? undefined : this.token(caller.userid, caller.token);
    if (token === undefined || token.privsep === 0) return users;
    const own = this.#privilegesAt("token", caller.id, path);
    return new Set([...own].filter((each) => users.has(each)));
  }

  user(userid: string): UserState | undefined {
    return this.#state.users.find((user) => user.userid === userid);
  }

  token(userid: string, tokenid: string): TokenState | undefined {
    return this.user(userid)?.tokens.find((token) => token.tokenid === tokenid);
  }

  rolePrivileges(roleid: string): readonly string[] | undefined {
    return this.#state.roles[roleid] ?? builtInRoles(this.#state.release)[roleid];
  }

  #privilegesAt(type: AclEntry["type"], ugid: string, path: string): ReadonlySet<string> {
    if (type === "user" && ugid === "root@pam") return this.#setOf("Administrator");
    const entries = this.#state.acl.filter((entry) => entry.type === type && entry.ugid === ugid);
    const roles = rolesAt(entries, path);
    const pool = this.#poolPathOf(path);
    if (pool !== undefined) roles.push(...rolesAt(entries, pool));
    const [only] = roles;
    if (only !== undefined && roles.length === 1) return this.#setOf(only);
    return new Set(roles.flatMap((role) => this.rolePrivileges(role) ?? []));
  }

  /** The privileges of one role, as a set that is made once for as long as the role is the same. */
  #setOf(roleid: string): ReadonlySet<string> {
    const privileges = this.rolePrivileges(roleid) ?? [];
    const known = this.#sets.get(privileges);
    if (known !== undefined) return known;
    const made = new Set(privileges);
    this.#sets.set(privileges, made);
    return made;
  }

  /** Members of a pool inherit what is granted on it. */
  #poolPathOf(path: string): string | undefined {
    const [, kind = "", id = ""] = path.split("/");
    const pool = this.#state.pools.find(({ vms, storages }) => {
      return kind === "vms"
        ? vms.includes(Number(id))
        : kind === "storage" && storages.includes(id);
    });
    return pool && `/pool/${pool.poolid}`;
  }
}

export interface Wanted {
  readonly privileges: readonly string[];
  readonly isAny?: boolean;
}

/** The roles of the deepest path that grants any. */
function rolesAt(entries: readonly AclEntry[], path: string): string[] {
  let roles: string[] = [];
  for (const prefix of prefixesOf(path)) {
    const here = entries.filter((entry) => {
      return entry.path === prefix && (entry.propagate === 1 || prefix === path);
    });
    if (here.length > 0) roles = here.map((entry) => entry.roleid);
  }
  return roles.includes("NoAccess") ? [] : roles;
}

function prefixesOf(path: string): string[] {
  const parts = path.split("/").filter((part) => part !== "");
  return ["/", ...parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`)];
}

/** The path in its one form, or undefined if it can be none. */
export function normalPath(path: string): string | undefined {
  const joined = `/${path
    .split("/")
    .filter((part) => part !== "")
    .join("/")}`;
  return /^[A-Za-z0-9.\-_/]+$/.test(joined) ? joined : undefined;
}
