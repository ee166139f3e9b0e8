import { readMark, releasedMark, writeMark } from "../../../hypervisor/index.ts";
import type {
  Begun,
  ClaimedMachine,
  Failure,
  Fence,
  Mark,
  Release,
  Stamp,
} from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import { findClone } from "../clones.ts";
import type { DriverContext } from "../context.ts";
import { isUnstampedClone, judge } from "../identity.ts";
import { assignSlots, type Wanted } from "../translate/assign.ts";
import type { PveConfig } from "../translate/config.ts";
import { identityOf } from "../translate/machine.ts";
import type { Slots } from "../translate/shape.ts";
import type { Values } from "../translate/values.ts";
import { bootSlot } from "./config-change.ts";
import { refused } from "./begun.ts";
import { send } from "./change.ts";
import { conflict, markFor, placeOf, standAt, type Standing, type Stood } from "./standing.ts";

/** Gives new names a place in the mark, before anything is made there. */
export async function stamp(
  context: DriverContext,
  operation: Stamp,
  fence: Fence,
): Promise<Begun> {
  const stood = await stand(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const slots = assignSlots(standing.mark, wantedOf(operation, standing.config.values));
  if ("category" in slots) return refused(slots);
  const mark = { ...standing.mark, ...slots };
  return await writeMarkOf(context, standing, { mark, fence, takes: isTaking(operation) });
}

async function stand(context: DriverContext, operation: Stamp): Promise<Stood> {
  const { cloned } = operation;
  if (cloned !== undefined) return await standAsClone(context, operation, cloned.from);
  return operation.adopt === true
    ? await standForAdoption(context, operation)
    : await standAt(context, operation);
}

/** A machine that was not made with our identity gets it with our mark. */
function isTaking({ adopt, cloned }: Stamp): boolean {
  return adopt === true || cloned !== undefined;
}

function wantedOf(operation: Stamp, values: Values): Wanted {
  const { disks, networks, cdroms = [], pci = [], usb = [], cloned } = operation;
  const placed = disks.map(({ boots, ...disk }) => {
    const slot = boots === true ? bootSlot(values) : disk.slot;
    return slot === undefined ? disk : { ...disk, slot };
  });
  const cards = cloned === undefined ? networks : onCards(networks, values);
  const taken = Object.keys(values);
  return { disks: placed, networks: cards, cdroms, pci, usb, taken };
}

/** A clone has the cards of its source: the names of the spec go to them in order. */
function onCards(networks: Stamp["networks"], values: Values): Stamp["networks"] {
  const named = new Set(networks.map(({ slot }) => slot));
  const cards = Object.keys(values)
    .filter((key) => /^net\d+$/.test(key) && !named.has(key))
    .toSorted((a, b) => Number(a.slice(3)) - Number(b.slice(3)));
  return networks.map((card) => {
    const slot = card.slot ?? cards.shift();
    return slot === undefined ? card : { ...card, slot };
  });
}

export async function release(
  context: DriverContext,
  operation: Release,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  return await writeMarkOf(context, standing, { mark: releasedMark(standing.mark), fence });
}

/** A machine that is nobody's, or was let go by us, and has the identity that the Claim took. */
const adoptable = new Set(["Stranger", "MarkLost", "Released"]);

async function standForAdoption(context: DriverContext, operation: Stamp): Promise<Stood> {
  const { claim, at } = operation;
  const place = placeOf(operation);
  const read = await context.configs.readAt(place, at.version);
  const config = read.type === "config" && isAt(read.config, at) && read.config;
  const verdict = config && judge(config, claim);
  // Ours already, changed, gone or empty: the same as for any other operation.
  if (!config || !verdict || verdict.is !== "foreign") return await standAt(context, operation);
  const identity = identityOf(config.values);
  // A very old machine has no UUID at all: then the Claim's becomes it.
  const isSame = identity === undefined || identity === claim.identity;
  const mayAdopt = guard("adopt-adoptable", adoptable.has(verdict.reason));
  if (!mayAdopt || !guard("adopt-same-identity", isSame)) {
    return { ok: false, begun: refused(conflict(claim, verdict.detail)) };
  }
  const mark = markFor(claim, slotsOf(config.values));
  return { ok: true, standing: { place, config, mark } };
}

/** Without a marker of ours only the digest says that it is what was decided about. */
function isAt({ digest }: PveConfig, { version }: Stamp["at"]): boolean {
  return guard("adopt-as-decided", digest === version);
}

/** A copy under the Claim's own id, which a task of ours made. */
async function standAsClone(
  context: DriverContext,
  operation: Stamp,
  source: string,
): Promise<Stood> {
  const { claim, at } = operation;
  const place = placeOf(operation);
  const read = await context.configs.readAt(place, at.version);
  const config = read.type === "config" && isAt(read.config, at) && read.config;
  const verdict = config && judge(config, claim);
  if (!config || !verdict || verdict.is !== "foreign") return await standAt(context, operation);
  const refusal = guard("stamp-clone-marker-agrees", isUnstampedClone(config, claim))
    ? await notCloned(context, claim, source)
    : conflict(claim, verdict.detail);
  if (refusal !== undefined) return { ok: false, begun: refused(refusal) };
  return { ok: true, standing: { place, config, mark: markFor(claim, noSlots) } };
}

async function notCloned(
  context: DriverContext,
  claim: ClaimedMachine,
  source: string,
): Promise<Failure | undefined> {
  const found = await findClone(context, claim, source);
  if (!found.ok) return found.failure;
  const isCloned = guard("stamp-clone-by-own-task", found.value !== undefined);
  return isCloned ? undefined : conflict(claim, "no task of ours cloned it");
}

const noSlots: Slots = { disks: {}, networks: {} };

/** The places that an earlier mark gave. */
function slotsOf(values: Values): Slots {
  return readMark(values["description"] ?? "").mark ?? noSlots;
}

interface Marking {
  readonly mark: Mark;
  readonly fence: Fence;
  /** The identity is written too. */
  readonly takes?: boolean;
}

async function writeMarkOf(
  context: DriverContext,
  standing: Standing,
  { mark, fence, takes = false }: Marking,
): Promise<Begun> {
  const { values } = standing.config;
  const isNamed = identityOf(values) === mark.identity;
  const set = {
    description: writeMark(values["description"] ?? "", mark),
    ...(takes && !isNamed ? { smbios1: `uuid=${mark.identity}` } : {}),
  };
  return await send(context, { standing, change: { set, remove: [] } }, fence);
}
