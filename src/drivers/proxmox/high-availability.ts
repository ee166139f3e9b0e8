import { isJsonObject } from "../../kernel/json.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Answer,
  HighAvailabilityShape,
  SeenHighAvailability,
} from "../../hypervisor/index.ts";
import { readFailureOf } from "./errors.ts";
import { present } from "./translate/present.ts";
import type { PveApi } from "./wire/api.ts";
import { pathPart } from "./wire/wire.ts";

export function haPath(externalId: string): string {
  return `/cluster/ha/resources/${pathPart(`vm:${externalId}`)}`;
}

/** How high availability watches over a machine, and the power that was asked of it. */
export interface Guarded {
  readonly shape: HighAvailabilityShape;
  readonly requested: SeenHighAvailability["requested"];
}

/** Requested states of pve-ha-manager: in `stopped` it is still moved when its node fails. */
const requests: Readonly<Record<string, SeenHighAvailability["requested"]>> = {
  started: "Running",
  enabled: "Running",
  stopped: "Stopped",
  disabled: "Stopped",
};

/** Undefined where nothing watches over it. */
export async function readGuard(
  api: PveApi,
  externalId: string,
): Promise<Answer<Guarded | undefined>> {
  const result = await api.get(haPath(externalId));
  // Of what it does not know the server says so with a 500 and these words (PVE::HA::Config).
  if (result.type === "error" && /no such resource/.test(result.text)) return answered(undefined);
  if (result.type !== "data") {
    return failed(readFailureOf(result, `ask how VM ${externalId} is watched over`));
  }
  if (!isJsonObject(result.data)) return answered(undefined);
  const { group, state, max_restart: restarts, max_relocate: relocations } = result.data;
  const shape = {
    enabled: true,
    ...present({ group: typeof group === "string" ? group : undefined }),
    // What is not said is 1 of each, and `started`.
    maxRestarts: Number(restarts ?? 1),
    maxRelocations: Number(relocations ?? 1),
  };
  const wish = typeof state === "string" ? state : "started";
  return answered({ shape, requested: requests[wish] ?? "Ignored" });
}

/** In the state `error` it follows no request any more, until a person has disabled it once. */
export function seenGuard(
  externalId: string,
  requested: SeenHighAvailability["requested"],
  detail = "",
): SeenHighAvailability {
  if (detail !== "error") return { requested, detail };
  const set = `ha-manager set vm:${externalId} --state`;
  const remedy =
    `Find out from the node's log why, then on any node, as root: ${set} disabled, and when it is ` +
    `disabled: ${set} started.`;
  return { requested, detail, remedy };
}
