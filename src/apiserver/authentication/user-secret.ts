import type { JsonObject } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
import { badRequest } from "../../kernel/status.ts";
import type { RoleName } from "../authorization/index.ts";
import { isRoleName, roleGroup, systemNamespace } from "../authorization/index.ts";
import type { User } from "../contract.ts";
import { createToken, isTokenHash, tokenHash } from "./token.ts";

export const userSecretType = "berth.dev/user";

/** On the Secret of every user, with the user's name: to find them by `kubectl get -l`. */
export const userLabel = "berth.dev/user";

export interface NewUser {
  readonly name: string;
  readonly role: RoleName;
  /** The role holds in these namespaces only. Absent or empty: everywhere. */
  readonly namespaces?: readonly string[];
  /** Beside the role's own. Names of Berth and Kubernetes themselves are refused. */
  readonly groups?: readonly string[];
}

/**
 * A user as a Secret to create, and their token, which is nowhere else: only its hash is kept.
 * Throws a bad request in one sentence for a name or a restriction that makes no sense.
 */
export function createUserSecret(
  user: NewUser,
  environment: { readonly random: Random },
): { secret: KubeObject; token: string } {
  checkNewUser(user);
  const token = createToken(environment.random);
  const namespaces = user.namespaces ?? [];
  const groups = user.groups ?? [];
  const secret: KubeObject = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: userSecretName(user.name),
      namespace: systemNamespace,
      labels: { [userLabel]: user.name },
    },
    type: userSecretType,
    data: {
      name: encode(user.name),
      role: encode(user.role),
      tokenSha256: encode(tokenHash(token)),
      ...(namespaces.length > 0 ? { namespaces: encode(namespaces.join(",")) } : {}),
      ...(groups.length > 0 ? { groups: encode(groups.join(",")) } : {}),
    },
  };
  return { secret, token };
}

/** The name of a user's Secret in the system namespace. */
export function userSecretName(userName: string): string {
  return `user-${userName}`;
}

/** A user as their Secret describes them. `tokenSha256` is in lower-case hexadecimal. */
export interface StoredUser {
  readonly user: User;
  readonly role: RoleName;
  readonly namespaces: readonly string[];
  readonly tokenSha256: string;
}

/** Reads a user's Secret. Undefined for every other Secret, and for one that is not whole. */
export function readUserSecret(secret: unknown): StoredUser | undefined {
  if (!isJsonObject(secret) || secret["type"] !== userSecretType) return undefined;
  const { data, metadata } = secret;
  if (!isJsonObject(data) || !isJsonObject(metadata)) return undefined;
  // A Secret that waits for finalizers is revoked already: that is what deleting it meant.
  if (metadata["deletionTimestamp"] !== undefined) return undefined;
  const { uid } = metadata;
  return readUserData(data, typeof uid === "string" ? uid : "");
}

function readUserData(data: JsonObject, uid: string): StoredUser | undefined {
  const name = decode(data["name"]);
  const role = decode(data["role"]);
  const tokenSha256 = decode(data["tokenSha256"]);
  if (!isUserName(name) || !isRoleName(role) || !isTokenHash(tokenSha256)) return undefined;
  const namespaces = listOf(decode(data["namespaces"]));
  // A restriction that names nothing must not turn into none at all.
  if (namespaces.length === 0 && Object.hasOwn(data, "namespaces")) return undefined;
  const own = listOf(decode(data["groups"])).filter((group) => !isReservedGroup(group));
  const groups = [...roleGroups(role, namespaces), ...own, "system:authenticated"];
  return { user: { name, uid, groups }, role, namespaces, tokenSha256 };
}

function roleGroups(role: RoleName, namespaces: readonly string[]): string[] {
  if (namespaces.length === 0) return [roleGroup(role)];
  return namespaces.map((namespace) => roleGroup(role, namespace));
}

function checkNewUser(user: NewUser): void {
  if (!isUserName(user.name)) {
    throw badRequest(
      `"${user.name}" cannot be a user's name: use up to 63 lower-case letters, digits, "-" and "."`,
    );
  }
  for (const namespace of user.namespaces ?? []) {
    // Whoever may write there can make themselves an admin: that is no restriction.
    if (namespace === systemNamespace) throw badRequest(`${systemNamespace} is for admins only`);
    if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) {
      throw badRequest(`"${namespace}" cannot be the name of a namespace`);
    }
  }
  for (const group of user.groups ?? []) {
    if (isReservedGroup(group) || !/^[\w:.@/-]{1,128}$/.test(group)) {
      throw badRequest(`"${group}" cannot be a group of a user`);
    }
  }
}

function isUserName(name: string): boolean {
  return /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/.test(name);
}

/** Groups that grant rights come from the role alone. */
function isReservedGroup(group: string): boolean {
  return group.startsWith("berth:") || group.startsWith("system:");
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decode(value: unknown): string {
  return typeof value === "string" ? Buffer.from(value, "base64").toString() : "";
}

function listOf(text: string): string[] {
  return text.split(",").filter((item) => item !== "");
}
