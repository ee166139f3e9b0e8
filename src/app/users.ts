import { secretResource } from "../api/builtin/index.ts";
import {
  createUserSecret,
  type NewUser,
  readUserSecret,
  type StoredUser,
  systemNamespace,
  userLabel,
  userSecretName,
} from "../apiserver/index.ts";
import type { Client } from "../client/index.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";

/** Users are Secrets in Berth's own namespace; these are the ways to handle them. */

/** Makes a user and returns their token, which is nowhere else. Throws 409 if the name is taken. */
export async function addUser(client: Client, user: NewUser, random: Random): Promise<string> {
  const { secret, token } = createUserSecret(user, { random });
  await client.of(secretResource).create(secret);
  return token;
}

/** Makes a user, or gives the one of that name a new token: the old one is void from then on. */
export async function renewUser(client: Client, user: NewUser, random: Random): Promise<string> {
  const { secret, token } = createUserSecret(user, { random });
  const secrets = client.of(secretResource);
  try {
    await secrets.create(secret);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "AlreadyExists") throw error;
    await secrets.update(secret);
  }
  return token;
}

export async function listUsers(client: Client): Promise<StoredUser[]> {
  const options = { namespace: systemNamespace, labelSelector: userLabel };
  const list = await client.of(secretResource).list(options);
  return list.items.flatMap((secret) => readUserSecret(secret) ?? []);
}

/** Their token is worth nothing as soon as this resolves. Throws 404 if there is no such user. */
export async function removeUser(client: Client, name: string): Promise<void> {
  const secret = { namespace: systemNamespace, name: userSecretName(name) };
  await client.of(secretResource).delete(secret);
}
