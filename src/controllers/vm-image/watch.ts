import { isSameFile } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import { bringTo, type Bringing } from "./bring.ts";
import { withCopy } from "./copies.ts";
import { claimOf } from "./file-claims.ts";
import { missingReports, placeKey, placeOfCopy, type Copy } from "./plan.ts";
import { isReplaced, noteFile } from "./replaced.ts";
import { forEach } from "./soonest.ts";
import { fileOf, findFile } from "./steps.ts";
import { copiesOf, writeImage, type ImageTurn } from "./turn.ts";
import { rest } from "./writing.ts";

/** A file that was found is not looked for again so soon, however many VMs come from it. */
const foundMs = 15 * 60_000;
/** Unless a VM reports that it is missing. Many VMs that do so together cost one more list. */
const reportedMs = 3_000;
/** The file is there and the VM still reports it: its report may be about another file. */
const disputedMs = 60_000;
/** A storage that could not be listed is asked again. */
const unlistedMs = 60_000;

/**
 * How long what was last observed of a file counts, by what VMs report of it now and what they had
 * reported by then. Level-triggered: it is enough that a report is there at any later turn.
 */
export function validFor(reports: string, checked: string | undefined): number {
  if (reports === "") return foundMs;
  return reports === checked ? disputedMs : reportedMs;
}

/**
 * A person asked: all is observed anew. That it was asked is recorded by the first write of the
 * turn, maybe before anything is listed; a process that ends then has no memory of looks either.
 */
export function forgetLooks({ cache }: ImageTurn): void {
  delete cache.looked;
  cache.seen.clear();
}

interface Watching {
  /** Where a copy is, if it can be looked at now. */
  readonly placeNow: (copy: Copy) => Bringing | undefined;
  /** Places of copies that are being removed. */
  readonly stuck: ReadonlySet<string>;
}

/**
 * What is present was observed, and is observed again from time to time: somebody may have removed
 * or replaced the file. One that is gone is brought again where it is needed.
 */
export async function keepWatch(
  turn: ImageTurn,
  { placeNow, stuck }: Watching,
): Promise<Outcome[]> {
  const nowMs = turn.deps.clock.monotonicMs();
  const dueMs = (copy: Copy): number => {
    const seenMs = turn.cache.seen.get(placeKey(placeOfCopy(copy))) ?? -Infinity;
    return seenMs + validAt(turn, copy) - nowMs;
  };
  const present = copiesOf(turn).filter((copy) => {
    return copy.state === "Present" && !stuck.has(placeKey(placeOfCopy(copy)));
  });
  const due = present.filter((copy) => dueMs(copy) <= 0);
  const changed = await forEach(due, async (copy) => {
    const now = placeNow(copy);
    // Of a storage that cannot be read nothing is concluded.
    return now && lookAgain(turn, now, copy);
  });
  const copies = copiesOf(turn);
  if (!isAllSaid(turn)) await rest(turn, copies, { isWanted: (turn.targets ?? []).length > 0 });
  // Whoever woke it in between does not put off the next look.
  const waits = present.map(dueMs).filter((ms) => ms > 0);
  const watch = copies.length === 0 ? settled : again("Watch", Math.min(foundMs, ...waits));
  return [...changed, watch];
}

/**
 * Whether the status stays as it is: nobody knows yet whether a hypervisor answers, or the file has
 * still to come and the status does not say anything else.
 */
function isAllSaid(turn: ImageTurn): boolean {
  if (turn.trouble !== undefined) return false;
  if ((turn.silent ?? []).length > 0) return true;
  const isComing = copiesOf(turn).length === 0 && (turn.targets ?? []).length > 0;
  const { conditions = [], failure } = turn.image.status ?? {};
  const isReady = conditions.some(({ type, status }) => type === "Ready" && status === "True");
  return isComing && failure === undefined && !isReady;
}

function reportsAt({ deps, key }: ImageTurn, copy: Copy): string {
  return missingReports(deps.vms.byIndex("image", key), placeOfCopy(copy));
}

function validAt(turn: ImageTurn, copy: Copy): number {
  const checked = turn.cache.checked.get(placeKey(placeOfCopy(copy)));
  return validFor(reportsAt(turn, copy), checked);
}

/** An outcome where the file of a copy is not there any more, or is another one. */
async function lookAgain(turn: ImageTurn, now: Bringing, copy: Copy): Promise<Outcome | undefined> {
  const key = placeKey(placeOfCopy(copy));
  const { seen, checked } = turn.cache;
  const nowMs = turn.deps.clock.monotonicMs();
  // Whatever a VM reports while the storage is listed was perhaps observed after that.
  const reports = reportsAt(turn, copy);
  const there = await findFile(now.connection, turn.image, now.target);
  if (!there.ok) {
    seen.set(key, nowMs - validAt(turn, copy) + unlistedMs);
    return undefined;
  }
  seen.set(key, nowMs);
  checked.set(key, reports);
  if (there.value !== undefined) return compare(turn, now, { copy, there: there.value });
  // Whoever brings it again reserves it again: what comes meanwhile is not Berth's.
  const claim = await claimOf(turn, copy);
  if (claim !== undefined) await turn.deps.files.remove(claim);
  const { claim: _gone, ...known } = copy;
  const message = "The file is not there any more.";
  const missing: Copy = { ...known, brought: false, state: "Missing", message };
  await writeImage(turn, { copies: withCopy(copiesOf(turn), missing) });
  return again("Missing");
}

/** An outcome where it is another file than before: whose it is now is judged from the start. */
async function compare(
  turn: ImageTurn,
  place: Bringing,
  { copy, there }: { readonly copy: Copy; readonly there: Copy },
): Promise<Outcome | undefined> {
  const { storage, node } = placeOfCopy(copy);
  const file = { ...fileOf(turn.image), storage, node };
  const claim = await turn.deps.files.at(place.connection.systemId, file);
  const isOther = claim !== undefined && isReplaced(claim, there);
  const isSame = !isOther && isSameFile(copy, there);
  if (!guard("watched-file-unchanged", isSame)) return bringTo(turn, { ...place, isWanted: false });
  if (claim?.spec.state === "Bound") await noteFile(turn, claim, there);
  const { size, createdAt } = there;
  const seen = { ...copy, ...(size && { size }), ...(createdAt && { createdAt }) };
  await writeImage(turn, { copies: withCopy(copiesOf(turn), seen) });
  return undefined;
}
