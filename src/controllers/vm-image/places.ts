import type { VirtualMachine, VMImage } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { bringTo, type Bringing } from "./bring.ts";
import { heldStep } from "../operations/index.ts";
import { copyAt, countedCopy } from "./copies.ts";
import { isOtherContent, isOwn } from "./file-claims.ts";
import {
  fileNameOf,
  mayBeNeeded,
  placeKey,
  placeOf,
  placeOfCopy,
  planTargets,
  unmetWishes,
  wantedOn,
  type Copy,
  type ImageHost,
  type Target,
} from "./plan.ts";
import { removeOld } from "./removal.ts";
import { isReplacedCopy } from "./replaced.ts";
import { heldMs, mayBeSilent } from "./silence.ts";
import { forEach, soonest } from "./soonest.ts";
import { copiesOf, type ImageDeps, type ImageTurn } from "./turn.ts";
import { keepWatch } from "./watch.ts";
import { trouble, waitForHypervisor } from "./writing.ts";

/**
 * Brings the file to each place where it is needed, and removes it where it is not meant any more.
 * Every place is by itself: a failure, a wait or a lock at one of them holds up no other.
 */
export async function bringToPlaces(turn: ImageTurn): Promise<Outcome> {
  const { key, deps } = turn;
  const vms = deps.vms.byIndex("image", key);
  const wanted = withoutLeaving(turn.image, deps);
  const hosts = hostsOf(deps);
  // What is wrong with the image as a whole comes first: every later write of this turn tells it.
  const whole = await tellWhole(turn, { wanted, vms, hosts });
  const others = await otherContents(turn);
  const isOld = (copy: Copy): boolean => {
    return others.has(copy.claim ?? "") || isOldCopy(turn, vms, copy);
  };
  const removing = await removeOld(turn, isOld);
  const stuck = new Set(copiesOf(turn).filter(isOld).map(placeOfCopy).map(placeKey));
  const kept = { ...turn.image.status, copies: copiesOf(turn).filter((copy) => !isOld(copy)) };
  const targets = planTargets({ ...wanted, status: kept }, vms, hosts.map(hostOf));
  turn.targets = targets.map(placeOf);
  // A place that the file of another name or content has still to leave takes no other one yet.
  const free = targets.filter((one) => !stuck.has(placeKey(placeOf(one))));
  const missing = free.filter((one) => !isPresent(turn, one));
  const brought = await forEach(missing, async (target) => {
    const connection = hosts.find(({ name }) => name === target.hypervisor);
    return connection && bringTo(turn, { target, connection });
  });
  const unneeded = await seeToOthers(turn, { targets, hosts, stuck, vms });
  const watched = await keepWatch(turn, { placeNow: (copy) => placeNow(copy, hosts), stuck });
  return soonest([...whole, ...removing, ...brought, ...unneeded, ...watched]);
}

/** Why no storage can take the file where a VM is; undefined: one can, or nobody knows. */
export function unmetBy(
  image: VMImage,
  vm: VirtualMachine,
  connection: Connection,
): Failure | undefined {
  const { prefetch: _others, ...spec } = image.spec;
  return unmetWishes({ ...image, spec }, [vm], [hostOf(connection)])[0];
}

interface Wanted {
  readonly wanted: VMImage;
  readonly vms: readonly VirtualMachine[];
  readonly hosts: readonly Connection[];
}

/**
 * Hypervisors that cannot be asked now, and places that cannot take the file. The first of them is
 * told; all others get what they need meanwhile.
 */
async function tellWhole(turn: ImageTurn, { wanted, vms, hosts }: Wanted): Promise<Outcome[]> {
  const { deps } = turn;
  const isAway = (name: string): boolean => deps.connections.of(name).is === "away";
  const away = wantedOn(wanted, vms).filter(isAway);
  turn.silent = away.filter((name) => mayBeSilent(name, deps));
  const waiting = await forEach(away, async (hypervisor) => {
    const reach = deps.connections.of(hypervisor);
    if (turn.silent?.includes(hypervisor) === true) return again("HeldBack", heldMs);
    return reach.is === "away" ? waitForHypervisor(turn, { away: reach, hypervisor }) : undefined;
  });
  const [unmet] = unmetWishes(wanted, vms, hosts.map(hostOf));
  return unmet === undefined ? waiting : [...waiting, await trouble(turn, unmet)];
}

/**
 * The Claims of files with another content than the image asks for. A name that a person chose does
 * not carry the checksum, and that may have been edited.
 */
async function otherContents(turn: ImageTurn): Promise<ReadonlySet<string>> {
  const { fileName } = turn.image.spec;
  const names = fileName === undefined ? [] : copiesOf(turn).map(({ claim }) => claim ?? "");
  const others = new Set<string>();
  for (const name of names.filter((one) => one !== "")) {
    const claim = await turn.deps.files.named(name);
    if (isOwn(turn.image, claim) && isOtherContent(turn.image, claim.spec.file)) others.add(name);
  }
  return others;
}

/** Of a name that the image had before it was edited; or on a Hypervisor that is to go. */
function isOldCopy(
  { image, deps }: ImageTurn,
  vms: readonly VirtualMachine[],
  { fileName, hypervisor }: Copy,
): boolean {
  if (fileName !== undefined && fileName !== fileNameOf(image)) return true;
  if (!isLeaving(hypervisor, deps) || deps.connections.of(hypervisor).is === "away") return false;
  return !wantedOn(withoutLeaving(image, deps), vms).includes(hypervisor);
}

function isLeaving(hypervisor: string, { hypervisors }: ImageDeps): boolean {
  return hypervisors.get(hypervisor)?.metadata.deletionTimestamp !== undefined;
}

/** Only for VMs is something still brought to a Hypervisor that is being deleted. */
function withoutLeaving(image: VMImage, deps: ImageDeps): VMImage {
  const { prefetch } = image.spec;
  const isStaying = ({ hypervisor }: { readonly hypervisor: string }): boolean => {
    return !isLeaving(hypervisor, deps);
  };
  if (prefetch === undefined || prefetch.every(isStaying)) return image;
  return { ...image, spec: { ...image.spec, prefetch: prefetch.filter(isStaying) } };
}

interface Unneeded {
  readonly targets: readonly Target[];
  readonly hosts: readonly Connection[];
  /** Places of copies that are being removed already. */
  readonly stuck: ReadonlySet<string>;
  readonly vms: readonly VirtualMachine[];
}

/**
 * Copies at places that do not need the file any more. What is on its way is followed to its end,
 * and what the ledger says was brought is looked for. What failed is left.
 */
async function seeToOthers(
  turn: ImageTurn,
  { targets, hosts, stuck, vms }: Unneeded,
): Promise<Outcome[]> {
  const needed = new Set(targets.map((one) => placeKey(placeOf(one))));
  const others = copiesOf(turn).filter((copy) => {
    const key = placeKey(placeOfCopy(copy));
    return copy.state !== "Present" && !needed.has(key) && !stuck.has(key);
  });
  const removing: Outcome[] = [];
  const followed = await forEach(others, async (copy) => {
    const pacedMs = pacedFor(turn, copy);
    if (pacedMs !== undefined) return pacedMs === Infinity ? undefined : again("Paced", pacedMs);
    const found = placeNow(copy, hosts);
    const outcome =
      isLeft(copy) || found === undefined
        ? undefined
        : await bringTo(turn, { ...found, isWanted: false });
    if (outcome !== undefined) return outcome;
    const key = placeKey(placeOfCopy(copy));
    const isIt = (one: Copy): boolean => placeKey(placeOfCopy(one)) === key;
    if (mayDrop(turn, copy, { found, hosts, vms })) removing.push(...(await removeOld(turn, isIt)));
    return undefined;
  });
  return [...followed, ...removing];
}

function isLeft(copy: Copy): boolean {
  return copy.state === "Failed" && !isReplacedCopy(copy);
}

interface Observable extends Pick<Unneeded, "hosts" | "vms"> {
  /** The place, where it can be looked at now. */
  readonly found: Bringing | undefined;
}

/**
 * Whether the entry of a copy that is not needed at its place may go. It is the only record of the
 * attempts there. While a hypervisor or a node is away, its places are no targets; and where any
 * place will do, another one is the target in the meantime. That does not mean that the file is not
 * needed there.
 */
function mayDrop(turn: ImageTurn, copy: Copy, { found, hosts, vms }: Observable): boolean {
  const { image, deps } = turn;
  if (found === undefined && copy.claim !== undefined) return false;
  if (deps.hypervisors.get(copy.hypervisor) === undefined) return true;
  const host = hosts.find(({ name }) => name === copy.hypervisor);
  if (!guard("drop-copy-of-reached-hypervisor", host !== undefined)) return false;
  const isKnown = found === undefined ? isListed(copy, host) : isLeft(copy);
  const isNeeded = isKnown && mayBeNeeded(image, vms, placeOfCopy(copy));
  return guard("drop-copy-not-needed", !isNeeded);
}

/** Whether a storage that cannot be used now is known all the same, or may be. */
function isListed(copy: Copy, host: Connection | undefined): boolean {
  if (host === undefined) return false;
  const { storages, isComplete } = host.inventory;
  return !isComplete || storages.some((row) => isRowOf(copy, row));
}

/**
 * How long a copy that failed keeps the next attempt at its place waiting. Its entry is the only
 * record of that: a place that is needed again a moment later is not tried at once. Infinity: its
 * attempts are used up.
 */
function pacedFor({ image, deps }: ImageTurn, copy: Copy): number | undefined {
  if (copy.state !== "Failed") return undefined;
  const counted = countedCopy(image, placeOfCopy(copy));
  const nowMs = deps.clock.nowMs();
  const held = ["Download", "Upload"].map((step) => heldStep(counted, { step }, nowMs)?.waitMs);
  const waits = held.filter((ms) => ms !== undefined);
  return waits.length === 0 ? undefined : Math.max(...waits);
}

function isPresent(turn: ImageTurn, target: Target): boolean {
  return copyAt(copiesOf(turn), placeOf(target))?.state === "Present";
}

/** The place of a copy, where it can be looked at now. */
function placeNow(copy: Copy, hosts: readonly Connection[]): Bringing | undefined {
  const { hypervisor } = copy;
  const connection = hosts.find(({ name }) => name === hypervisor);
  const row = connection?.inventory.storages.find((one) => one.isUsable && isRowOf(copy, one));
  if (connection === undefined || row === undefined) return undefined;
  const { node, name: storage, isShared } = row;
  return { connection, target: { hypervisor, storage, node, isShared } };
}

/** Whether a storage of the inventory, on a node, is the place of a copy. */
function isRowOf(
  copy: Copy,
  { name, node }: { readonly name: string; readonly node: string },
): boolean {
  return name === copy.storage && (copy.node === undefined || copy.node === node);
}

function hostsOf({ connections, hypervisors }: ImageDeps): Connection[] {
  return hypervisors.list().flatMap(({ metadata }) => {
    const reach = connections.of(metadata.name ?? "");
    return reach.is === "ready" ? [reach.connection] : [];
  });
}

function hostOf({ name, spec, inventory }: Connection): ImageHost {
  return { name, imageStorage: spec.defaults?.imageStorage, inventory };
}
