import type { Hypervisor, HypervisorStatus } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { isJsonObject, jsonEqual, type JsonObject } from "../../kernel/json.ts";
import { defined } from "../failures/index.ts";
import { changeInstallation, membersOf, readInstallation } from "./installation-data.ts";

/** A version of a Secret, and the endpoints that it was sent to. */
export type UsedSecret = NonNullable<HypervisorStatus["credentials"]>;

/** For which endpoints the credentials of a Hypervisor were given. */
export interface GivenCredentials {
  readonly credentials?: UsedSecret | undefined;
  readonly unlockCredentials?: UsedSecret | undefined;
}

/**
 * For which endpoints credentials were given. The status tells it to people and may be lost; then
 * the ConfigMap of the installation is read. It is not kept in the Hypervisor itself: whoever may
 * change the endpoints there could change that as well.
 */
export async function givenCredentials(
  client: Client,
  { metadata, spec, status }: Hypervisor,
): Promise<GivenCredentials> {
  const { credentials, unlockCredentials } = status ?? {};
  const isWhole =
    (credentials !== undefined || spec.credentials === undefined) &&
    (unlockCredentials !== undefined || spec.unlockCredentials === undefined);
  if (isWhole) return { credentials, unlockCredentials };
  const { credentials: text } = await readInstallation(client);
  const recorded = recordedIn(membersOf(text), metadata.uid ?? "");
  return {
    credentials: credentials ?? recorded.credentials,
    unlockCredentials: unlockCredentials ?? recorded.unlockCredentials,
  };
}

/** Keeps what was given where a lost status does not take it away. `uids`: all Hypervisors. */
export async function recordCredentials(
  client: Client,
  { metadata: { uid = "" } }: Hypervisor,
  { given, uids }: { readonly given: GivenCredentials; readonly uids: ReadonlySet<string> },
): Promise<void> {
  await changeInstallation(client, ({ credentials: text }) => {
    const before = membersOf(text);
    const others = Object.entries(before).filter(([other]) => other !== uid && uids.has(other));
    // One that is not used now is still the one that was given for those endpoints.
    const mine = { ...recordedIn(before, uid), ...defined<GivenCredentials>(given) };
    if (jsonEqual(recordedIn(before, uid), mine)) return undefined;
    return { credentials: JSON.stringify({ ...Object.fromEntries(others), [uid]: mine }) };
  });
}

function recordedIn(all: JsonObject, uid: string): GivenCredentials {
  const mine = all[uid];
  if (!isJsonObject(mine)) return {};
  const { credentials, unlockCredentials } = mine;
  return defined<GivenCredentials>({
    credentials: usedOf(credentials),
    unlockCredentials: usedOf(unlockCredentials),
  });
}

function usedOf(value: unknown): UsedSecret | undefined {
  if (!isJsonObject(value)) return undefined;
  const { secret, resourceVersion, endpoints } = value;
  if (typeof secret !== "string" || typeof resourceVersion !== "string") return undefined;
  if (!Array.isArray(endpoints)) return undefined;
  const texts = endpoints.filter((endpoint) => typeof endpoint === "string");
  return { secret, resourceVersion, endpoints: texts };
}
