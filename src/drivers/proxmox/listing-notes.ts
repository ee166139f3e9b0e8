import type { ClaimedMachine, DriverNotes } from "../../hypervisor/index.ts";
import { isJsonObject } from "../../kernel/json.ts";

/** What preflight listed, as the Claim keeps it for this driver. */
export interface ListingNotes {
  /** The node that listed. Of the local storages of other nodes the list says nothing. */
  readonly listedOn: string;
  /** Storages for disks that were not listed: nothing is concluded from what is found there. */
  readonly unlisted: readonly string[];
}

const version = 1;

export function writeNotes({ listedOn, unlisted }: ListingNotes): DriverNotes {
  return { version, data: JSON.stringify({ listedOn, unlisted }) };
}

/** Undefined: nothing was listed, or in a form that this release does not know. */
export function notesOf({ driver }: ClaimedMachine): ListingNotes | undefined {
  if (driver === undefined || driver.version !== version) return undefined;
  const said = parsed(driver.data);
  const { listedOn, unlisted } = isJsonObject(said) ? said : {};
  if (typeof listedOn !== "string" || !Array.isArray(unlisted)) return undefined;
  const names = unlisted.filter((name) => typeof name === "string");
  return names.length === unlisted.length ? { listedOn, unlisted: names } : undefined;
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
