import { isJsonObject } from "../../kernel/json.ts";
import type { Answer, Failure, Power } from "../../hypervisor/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import { classifyError, readFailureOf } from "./errors.ts";
import { parseConfig, type PveConfig } from "./translate/config.ts";
import { isDrive } from "./translate/slots.ts";
import type { PveApi } from "./wire/api.ts";
import { pathPart } from "./wire/wire.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/** Where a machine is read and written. */
export interface MachinePlace {
  readonly node: string;
  readonly externalId: string;
}

export type ConfigRead =
  | { readonly type: "config"; readonly config: PveConfig }
  | { readonly type: "notHere" }
  | { readonly type: "failed"; readonly failure: Failure };

export function machinePath({ node, externalId }: MachinePlace, tail = ""): string {
  return `/nodes/${pathPart(node)}/qemu/${pathPart(externalId)}${tail}`;
}

/**
 * Reads configs, and remembers the last of each machine by its digest. A change that carries the
 * digest may rest on the remembered one, since the server refuses it if the machine has another.
 */
export class ConfigReader {
  readonly #api: PveApi;
  readonly #last = new Map<string, PveConfig>();

  constructor(api: PveApi) {
    this.#api = api;
  }

  async read(place: MachinePlace): Promise<ConfigRead> {
    const result = await this.#api.get(machinePath(place, "/config"));
    if (result.type === "error" && classifyError(result).meaning === "notHere") {
      this.#last.delete(place.externalId);
      return { type: "notHere" };
    }
    const attempted = `read VM ${place.externalId} on ${place.node}`;
    if (result.type !== "data") {
      return { type: "failed", failure: readFailureOf(result, attempted) };
    }
    const config = parseConfig(result.data);
    if (config === undefined) {
      const failure: Failure = { category: "NetworkError", message: `${attempted}: no config` };
      return { type: "failed", failure };
    }
    this.#remember(place.externalId, config);
    return { type: "config", config };
  }

  /** The config of that digest: remembered, or read now, whatever digest it has by now. */
  async readAt(place: MachinePlace, digest: string): Promise<ConfigRead> {
    const known = this.#last.get(place.externalId);
    return known?.digest === digest ? { type: "config", config: known } : await this.read(place);
  }

  #remember(externalId: string, config: PveConfig): void {
    this.#last.delete(externalId);
    this.#last.set(externalId, config);
    const [oldest] = this.#last.keys();
    if (this.#last.size > remembered && oldest !== undefined) this.#last.delete(oldest);
  }
}

/** Configs that are remembered. Each saves one call for a machine that is being worked on. */
const remembered = 256;

/** Whether it runs, from QEMU itself. The list of the cluster lags by ten seconds. */
export async function readPower(api: PveApi, place: MachinePlace): Promise<Answer<Power>> {
  const result = await api.get(machinePath(place, "/status/current"));
  if (result.type !== "data") {
    return failed(readFailureOf(result, `read the state of VM ${place.externalId}`));
  }
  return answered(isJsonObject(result.data) ? powerOf(result.data) : "Unknown");
}

const halted = new Set(["paused", "prelaunch", "suspended", "io-error", "internal-error"]);

/** From a row of a list or from the status of one machine. */
export function powerOf(row: Readonly<Record<string, unknown>>): Power {
  const { status, qmpstatus, lock } = row;
  if (status === "stopped") return lock === "suspended" ? "Suspended" : "Stopped";
  if (status !== "running") return "Unknown";
  return typeof qmpstatus === "string" && halted.has(qmpstatus) ? "Paused" : "Running";
}

export interface PendingView {
  readonly keys: readonly string[];
  readonly leavingDrives: readonly (readonly [slot: string, text: string])[];
}

export const nothingPending: PendingView = { keys: [], leavingDrives: [] };

/** What waits for the next start. GET config shows it as if it were done already. */
export async function readPending(api: PveApi, place: MachinePlace): Promise<Answer<PendingView>> {
  const result = await api.get(machinePath(place, "/pending"));
  if (result.type !== "data") {
    return failed(readFailureOf(result, `read what is pending on VM ${place.externalId}`));
  }
  const rows = rowsOf(result.data);
  const waiting = rows.filter((row) => row["pending"] !== undefined || row["delete"] !== undefined);
  return answered({
    keys: waiting.map((row) => textOf(row, "key")),
    leavingDrives: waiting.flatMap((row) => {
      const key = textOf(row, "key");
      return isDrive(key) && row["value"] !== undefined
        ? [[key, textOf(row, "value")] as const]
        : [];
    }),
  });
}
