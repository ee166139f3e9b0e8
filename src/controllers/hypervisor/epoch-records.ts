import type { Client } from "../../client/index.ts";
import type { EpochView } from "../../hypervisor/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { othersEpoch, type EpochRecord, type ObservingRecord } from "./epoch-plan.ts";
import {
  changeInstallation,
  membersOf,
  readInstallation,
  type InstallationData,
} from "./installation-data.ts";

/** The epochs of this installation, by the system's own id, and where it was started. */
export interface EpochRecords {
  readonly records: Readonly<Record<string, EpochRecord>>;
  /** By the system's own id: why it is only observed. */
  readonly observing: Readonly<Record<string, ObservingRecord>>;
  readonly home: string | undefined;
}

export async function readEpochRecords(client: Client): Promise<EpochRecords> {
  return recordsOf(await readInstallation(client));
}

/**
 * Keeps the record before the hypervisor hears of the epoch. Only a run writes one that is not
 * superseded or that a person let take over: why the system was only observed ends with it.
 */
export async function writeEpochRecord(
  client: Client,
  systemId: string,
  record: EpochRecord,
): Promise<void> {
  await changeInstallation(client, (data) => {
    const { records, observing } = recordsOf(data);
    const { [systemId]: ended, ...others } = observing;
    return {
      epochs: JSON.stringify({ ...records, [systemId]: record }),
      ...(ended === undefined ? {} : { observing: JSON.stringify(others) }),
    };
  });
}

/** Keeps why a system is only observed, unless another replica has just taken over. */
export async function writeObserving(
  client: Client,
  systemId: string,
  found: ObservingRecord,
): Promise<void> {
  await changeInstallation(client, (data) => {
    const { records, observing } = recordsOf(data);
    const { [systemId]: old = {} } = observing;
    const shown = { record: records[systemId], observing: old, seen: found.newest };
    const { elsewhere = old.elsewhere } = found;
    // As it is read back.
    const newest = epochOf(othersEpoch(shown));
    const next = {
      ...(newest === undefined ? {} : { newest }),
      ...(elsewhere === undefined ? {} : { elsewhere }),
    };
    if (JSON.stringify(next) === JSON.stringify(old)) return undefined;
    return { observing: JSON.stringify({ ...observing, [systemId]: next }) };
  });
}

/** Where the installation is, written at its first start and never again. */
export async function writeHome(client: Client, place: string): Promise<void> {
  await changeInstallation(client, (data) => {
    return recordsOf(data).home === undefined ? { place } : undefined;
  });
}

function recordsOf({ epochs, observing, place }: InstallationData): EpochRecords {
  const home = typeof place === "string" && place !== "" ? place : undefined;
  return { records: parse(epochs, recordOf), observing: parse(observing, observingOf), home };
}

/** What somebody damaged is no record: then the epoch on the hypervisor is another's. */
function parse<T>(text: unknown, read: (value: unknown) => T | undefined): Record<string, T> {
  const entries = Object.entries(membersOf(text)).flatMap(([systemId, value]) => {
    const record = read(value);
    return record === undefined ? [] : [[systemId, record] as const];
  });
  return Object.fromEntries(entries);
}

function observingOf(value: unknown): ObservingRecord | undefined {
  if (!isJsonObject(value)) return undefined;
  const { newest, elsewhere } = value;
  const epoch = epochOf(newest);
  return {
    ...(epoch === undefined ? {} : { newest: epoch }),
    ...(typeof elsewhere === "string" ? { elsewhere } : {}),
  };
}

function epochOf(value: unknown): EpochView | undefined {
  if (!isJsonObject(value)) return undefined;
  const { number, run, at: writtenAt, place } = value;
  if (typeof number !== "number") return undefined;
  return {
    number,
    ...(typeof run === "string" ? { run } : {}),
    ...(typeof writtenAt === "string" ? { at: writtenAt } : {}),
    ...(typeof place === "string" ? { place } : {}),
  };
}

function recordOf(value: unknown): EpochRecord | undefined {
  if (!isJsonObject(value)) return undefined;
  const { number, run, at: writtenAt, place, takeover } = value;
  if (typeof number !== "number" || typeof run !== "string") return undefined;
  return {
    number,
    run,
    at: typeof writtenAt === "string" ? writtenAt : "",
    ...(typeof place === "string" ? { place } : {}),
    ...(typeof takeover === "string" ? { takeover } : {}),
  };
}
