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
    const users = this.#privilegesAt("user", caller.userid, normal);
    const own = this.#isSeparated(caller) ? this.#privilegesAt("token", caller.id, normal) : users;
    const holds = (each: string): boolean => own.has(each) && users.has(each);
    return isAny ? privileges.some(holds) : privileges.every(holds);
  }

  /**
   * The same question about many guests, at one moment: those without access lists of their own,
   * and in the same pool, have the same answer. Not to be kept for later.
   */
  mayOnGuests(caller: Caller, wanted: Wanted): (vmid: number) => boolean {
    const special = new Set(this.#state.acl.map(({ path }) => path));
    const pools = this.poolsOfGuests();
    const answers = new Map<string | undefined, boolean>();
    return (vmid) => {
      const path = `/vms/${vmid}`;
      if (special.has(path)) return this.may(caller, path, wanted);
      const pool = pools.get(vmid);
      const known = answers.get(pool);
      if (known !== undefined) return known;
      const answer = this.may(caller, path, wanted);
      answers.set(pool, answer);
      return answer;
    };
  }

  /** The pool of each guest that is in one. */
  poolsOfGuests(): Map<number, string> {
    const pools = new Map<number, string>();
    for (const { poolid, vms } of this.#state.pools.toReversed()) {
      for (const vmid of vms) pools.set(vmid, poolid);
    }
    return pools;
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
    if (!this.#isSeparated(caller)) return users;
    const own = this.#privilegesAt("token", caller.id, path);
    return new Set([...own].filter((each) => users.has(each)));
  }

  /** Whether a token has only what it was granted itself. */
  #isSeparated({ userid, token }: Caller): boolean {
    const known = token === undefined ? undefined : this.token(userid, token);
    return known !== undefined && known.privsep !== 0;
  }

  user(userid: string): UserState | undefined {
    return this.#state.users.find((user) => user.userid === userid);
  }

  token(userid: string, tokenid: string): TokenState | undefined {
    return this.user(userid)?.tokens.find((token) => token.tokenid === tokenid);
  }

  /** The groups that a user is a member of. */
  groupsOf(userid: string): string[] {
    const groups = this.#state.groups ?? [];
    return groups.filter(({ users }) => users.includes(userid)).map(({ groupid }) => groupid);
  }

  rolePrivileges(roleid: string): readonly string[] | undefined {
    return this.#state.roles[roleid] ?? builtInRoles(this.#state.release)[roleid];
  }

  #privilegesAt(type: AclEntry["type"], ugid: string, path: string): ReadonlySet<string> {
    if (type === "user" && ugid === "root@pam") return this.#setOf("Administrator");
    const roles = this.#rolesAt(type, ugid, path);
    const pool = this.#poolPathOf(path);
    if (pool !== undefined) roles.push(...this.#rolesAt(type, ugid, pool));
    const [only] = roles;
    if (only !== undefined && roles.length === 1) return this.#setOf(only);
    return new Set(roles.flatMap((role) => this.rolePrivileges(role) ?? []));
  }

  /** The roles of the deepest path that grants any. There, what a user has hides his groups'. */
  #rolesAt(type: AclEntry["type"], ugid: string, path: string): string[] {
    const prefixes = prefixesOf(path);
    const entries = this.#state.acl.filter((entry) => {
      const isReached = entry.propagate === 1 || entry.path === path;
      const isHis = entry.type === type ? entry.ugid === ugid : this.#isOfGroup(entry, type, ugid);
      return isReached && isHis && prefixes.includes(entry.path);
    });
    // All of them are on the way to the path: the longest is the deepest.
    const depth = Math.max(...entries.map((entry) => entry.path.length));
    const here = entries.filter((entry) => entry.path.length === depth);
    const own = here.filter((entry) => entry.type === type);
    const roles = (own.length > 0 ? own : here).map(({ roleid }) => roleid);
    return roles.includes("NoAccess") ? [] : roles;
  }

  #isOfGroup(entry: AclEntry, type: AclEntry["type"], userid: string): boolean {
    if (type !== "user" || entry.type !== "group") return false;
    return this.groupsOf(userid).includes(entry.ugid);
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

/** Of paths that were asked for lately; the same few come again and again. */
const knownPrefixes = new Map<string, readonly string[]>();
const knownNormal = new Map<string, string | undefined>();
const knownMax = 4_096;

function prefixesOf(path: string): readonly string[] {
  return remembered(knownPrefixes, path, (text) => {
    const parts = text.split("/").filter((part) => part !== "");
    return ["/", ...parts.map((_, index) => `/${parts.slice(0, index + 1).join("/")}`)];
  });
}

/** The path in its one form, or undefined if it can be none. */
export function normalPath(path: string): string | undefined {
  return remembered(knownNormal, path, (text) => {
    const parts = text.split("/").filter((part) => part !== "");
    const joined = `/${parts.join("/")}`;
    return /^[A-Za-z0-9.\-_/]+$/.test(joined) ? joined : undefined;
  });
}

function remembered<T>(known: Map<string, T>, path: string, make: (path: string) => T): T {
  const found = known.get(path);
  if (found !== undefined) return found;
  const made = make(path);
  if (known.size >= knownMax) known.clear();
  known.set(path, made);
  return made;
}
