import { forbidden, PveError } from "../errors.ts";
import type { Method } from "../schema/schema.ts";
import type { Parameters } from "../schema/check.ts";
import type { Caller, Rights } from "./rights.ts";

export interface PermissionCall {
  readonly rights: Rights;
  readonly caller: Caller;
  readonly parameters: Parameters;
}

/** Applies the check that the schema of an endpoint states; throws 403. */
export function checkPermission(call: PermissionCall, method: Method): void {
  if (method.c !== undefined) {
    if (!holds(call, method.c)) throw forbidden("Permission check failed");
    return;
  }
  // A method without any permission entry is for root alone.
  if (method.u === undefined && call.caller.id !== "root@pam") {
    throw forbidden("Permission check failed");
  }
}

/** Whether a check holds; single privileges throw with their path, as Proxmox does. */
function holds(call: PermissionCall, check: readonly unknown[]): boolean {
  const [kind, ...rest] = check;
  switch (kind) {
    case "and":
      return rest.every((each) => holds(call, listOf(each)));
    case "or":
      return rest.some((each) => isGranted(call, listOf(each)));
    case "perm":
      demandPrivileges(call, rest);
      return true;
    case "perm-modify":
      demandModify(call, filled(String(rest[0]), call.parameters));
      return true;
    case "userid-param":
      return userParameter(call, String(rest[0]));
    case "userid-group":
      return userGroup(call, listOf(rest[0]).map(String), rest.includes("create"));
    default:
      return false;
  }
}

function isGranted(call: PermissionCall, check: readonly unknown[]): boolean {
  // The most frequent answer is no; it need not be worded for nobody to read.
  const [kind, ...rest] = check;
  if (kind === "perm") return hasPrivileges(call, rest);
  try {
    return holds(call, check);
  } catch (error) {
    if (error instanceof PveError && error.status === 403) return false;
    throw error;
  }
}

function demandPrivileges(call: PermissionCall, rest: readonly unknown[]): void {
  if (!isParameterThere(call, rest)) throw forbidden("Permission check failed");
  const [path, privileges, ...options] = rest;
  call.rights.demand(call.caller, filled(String(path), call.parameters), {
    privileges: listOf(privileges).map(String),
    isAny: options.includes("any"),
  });
}

function hasPrivileges(call: PermissionCall, rest: readonly unknown[]): boolean {
  if (!isParameterThere(call, rest)) return false;
  const [path, privileges, ...options] = rest;
  return call.rights.may(call.caller, filled(String(path), call.parameters), {
    privileges: listOf(privileges).map(String),
    isAny: options.includes("any"),
  });
}

/** Some checks are only about calls that say a certain parameter. */
function isParameterThere(
  { parameters }: PermissionCall,
  [, , ...options]: readonly unknown[],
): boolean {
  const needed = options.indexOf("require_param");
  return needed < 0 || parameters[String(options[needed + 1])] !== undefined;
}

const modifiers: readonly { prefix: string; privilege: string }[] = [
  { prefix: "/storage", privilege: "Datastore.Allocate" },
  { prefix: "/vms", privilege: "VM.Allocate" },
  { prefix: "/pool", privilege: "Pool.Allocate" },
];

/** Who may allocate things somewhere may also say who may use them there. */
function demandModify(call: PermissionCall, path: string): void {
  const full = path.startsWith("/") ? path : `/${path}`;
  const found = modifiers.find(({ prefix }) => full === prefix || full.startsWith(`${prefix}/`));
  const privileges = ["Permissions.Modify", ...(found === undefined ? [] : [found.privilege])];
  call.rights.demand(call.caller, full, { privileges, isAny: true });
}

function userParameter({ rights, caller, parameters }: PermissionCall, what: string): boolean {
  const userid = parameters["userid"] ?? "";
  if (what === "self") return userid === caller.id;
  const realm = userid.split("@")[1] ?? "";
  return rights.may(caller, `/access/realm/${realm}`, { privileges: [what] });
}

function userGroup(
  call: PermissionCall,
  privileges: readonly string[],
  isCreation: boolean,
): boolean {
  const { rights, caller, parameters } = call;
  const isThere = isCreation || rights.user(parameters["userid"] ?? "") !== undefined;
  return isThere && rights.may(caller, "/access/groups", { privileges, isAny: true });
}

/** "/vms/{vmid}" with the call's own values in it. */
function filled(path: string, parameters: Parameters): string {
  if (!path.includes("{")) return path;
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameters[name] ?? "");
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
