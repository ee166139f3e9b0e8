import type { Hypervisor } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { givenCredentials, type UsedSecret } from "./given-credentials.ts";
import { mayUnlock, planCredentials, type Trouble } from "./plan.ts";
import { readSecret, type SecretView } from "./steps.ts";

/** The Secrets that may be sent to the endpoints of a Hypervisor. */
export interface UsableSecrets {
  readonly secret: SecretView | undefined;
  /** The account for unlocking, if there is one and it was given for these endpoints. */
  readonly unlock: SecretView | undefined;
}

/** Why none may be sent. */
export interface RefusedSecrets {
  readonly trouble: Trouble;
  /** They were given for other endpoints. */
  readonly isForOthers: boolean;
}

export async function usableSecrets(
  client: Client,
  hypervisor: Hypervisor,
): Promise<UsableSecrets | RefusedSecrets> {
  const secret = await readSecret(client, hypervisor);
  if (secret !== undefined && "failure" in secret) return { trouble: secret, isForOthers: false };
  const given = await givenCredentials(client, hypervisor);
  const trouble = planCredentials(hypervisor, secret, given.credentials);
  if (trouble !== undefined) return { trouble, isForOthers: true };
  return { secret, unlock: await unlockSecret(client, hypervisor, given.unlockCredentials) };
}

async function unlockSecret(
  client: Client,
  hypervisor: Hypervisor,
  used: UsedSecret | undefined,
): Promise<SecretView | undefined> {
  const secret = await readSecret(client, hypervisor, "unlockCredentials");
  if (secret === undefined || "failure" in secret) return undefined;
  return mayUnlock(hypervisor, secret, used) ? secret : undefined;
}

/** A Secret as the status and the installation's ConfigMap have it, once it was sent. */
export function usedSecret(
  { spec }: Hypervisor,
  secret: SecretView | undefined,
): UsedSecret | undefined {
  if (secret === undefined) return undefined;
  const { key, resourceVersion } = secret;
  return { secret: key, resourceVersion, endpoints: [...spec.endpoints] };
}
