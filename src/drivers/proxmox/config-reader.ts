import { guard } from "../../kernel/guard.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { Answer, Failure, Power } from "../../hypervisor/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import { classifyError, readFailureOf } from "./errors.ts";
import type { PveConfig } from "./translate/config.ts";
import { present } from "./translate/present.ts";
import { isDrive } from "./translate/slots.ts";
import type { PveApi } from "./wire/api.ts";
import { pathPart } from "./wire/wire.ts";
import { asText, rowsOf, textOf } from "./wire/rows.ts";

/** Where a machine is read and written. */
export interface MachinePlace {
  readonly node: string;
  readonly externalId: string;
}

/** A config as it will be after the next start, and what of it waits for that. */
export interface WholeConfig extends PveConfig {
  readonly pending: PendingView;
}

export type ConfigRead =
  | { readonly type: "config"; readonly config: WholeConfig }
  | { readonly type: "notHere" }
  | { readonly type: "failed"; readonly failure: Failure };

export function machinePath({ node, externalId }: MachinePlace, tail = ""): string {
  return `/nodes/${pathPart(node)}/qemu/${pathPart(externalId)}${tail}`;
}

/**
 * Reads configs, and remembers the last of each machine by its digest. A change that carries the
 * digest may rest on the remembered one, since the server refuses it if the machine has another.
 *
 * It asks for what is pending, because that list has everything: the digest, each value as it is,
 * and what becomes of it (7.4 to 9.2, recorded). GET config would be half of it for the same price.
 */
export class ConfigReader {
  readonly #api: PveApi;
  readonly #last = new Map<string, WholeConfig>();

  constructor(api: PveApi) {
    this.#api = api;
  }

  async read(place: MachinePlace): Promise<ConfigRead> {
    const result = await this.#api.get(machinePath(place, "/pending"));
    if (result.type === "error" && classifyError(result).meaning === "notHere") {
      this.#last.delete(place.externalId);
      return { type: "notHere" };
    }
    const attempted = `read VM ${place.externalId} on ${place.node}`;
    if (result.type !== "data") {
      return { type: "failed", failure: readFailureOf(result, attempted) };
    }
    const config = parseRows(rowsOf(result.data));
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

  /** The last config that was seen: enough for what does not change with it. */
  async lastOf(place: MachinePlace): Promise<ConfigRead> {
    const known = this.#last.get(place.externalId);
    return known === undefined ? await this.read(place) : { type: "config", config: known };
  }

  #remember(externalId: string, config: WholeConfig): void {
    this.#last.delete(externalId);
    this.#last.set(externalId, config);
    const [oldest] = this.#last.keys();
    if (this.#last.size > remembered && oldest !== undefined) this.#last.delete(oldest);
  }
}

/** Configs that are remembered. Each saves one call for a machine that is being worked on. */
const remembered = 256;

/** What a machine is doing now. */
export interface MachineStatus {
  readonly power: Power;
  readonly uptimeSeconds?: number;
  /** What high availability is doing with it, in its own word, where it watches over it. */
  readonly watchedAs?: string;
}

/** Whether it runs, from QEMU itself. The list of the cluster lags by ten seconds. */
export async function readStatus(api: PveApi, place: MachinePlace): Promise<Answer<MachineStatus>> {
  const result = await api.get(machinePath(place, "/status/current"));
  if (result.type !== "data") {
    return failed(readFailureOf(result, `read the state of VM ${place.externalId}`));
  }
  if (!isJsonObject(result.data)) return answered({ power: "Unknown" });
  const { uptime, ha } = result.data;
  const power = powerOf(result.data);
  return answered({
    power,
    ...present({
      uptimeSeconds: power === "Running" && typeof uptime === "number" ? uptime : undefined,
      watchedAs: isJsonObject(ha) && Number(ha["managed"]) === 1 ? textOf(ha, "state") : undefined,
    }),
  });
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
  /** What the VM runs with until then, by key. */
  readonly current: Readonly<Record<string, string>>;
  readonly leavingDrives: readonly (readonly [slot: string, text: string])[];
}

/** Rows of `{key, value, pending, delete}`: without a digest they are no config. */
function parseRows(rows: readonly JsonObject[]): WholeConfig | undefined {
  const digest = rows.find((row) => row["key"] === "digest")?.["value"];
  if (typeof digest !== "string") return undefined;
  const own = rows.filter((row) => row["key"] !== "digest");
  const values = own.flatMap((row) => {
    // A lock holds until it is gone, also one whose removal was cut short.
    const isGoing =
      row["delete"] !== undefined && guard("config-lock-stays", row["key"] !== "lock");
    const text = isGoing ? undefined : asText(row["pending"] ?? row["value"]);
    return text === undefined ? [] : [[textOf(row, "key"), text] as const];
  });
  return { digest, values: Object.fromEntries(values), pending: pendingOf(own) };
}

function pendingOf(rows: readonly JsonObject[]): PendingView {
  const waiting = rows.filter((row) => row["pending"] !== undefined || row["delete"] !== undefined);
  return {
    keys: waiting.map((row) => textOf(row, "key")),
    current: Object.fromEntries(
      waiting.flatMap((row) => {
        const text = asText(row["value"]);
        return text === undefined ? [] : [[textOf(row, "key"), text] as const];
      }),
    ),
    leavingDrives: waiting.flatMap((row) => {
      const key = textOf(row, "key");
      return isDrive(key) && row["value"] !== undefined
        ? [[key, textOf(row, "value")] as const]
        : [];
    }),
  };
}
