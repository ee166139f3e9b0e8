import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Advanced,
  Answer,
  EpochChange,
  EpochView,
  Failure,
  Fence,
  ListedEpoch,
  WrittenEpoch,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { DriverContext } from "./context.ts";
import { causeOf, failureOf, readFailureOf } from "./errors.ts";
import { begunOf } from "./operations/begun.ts";
import type { PveApi, PveResult } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";
import { pathPart } from "./wire/wire.ts";

/**
 * An epoch is an empty pool `berth-epoch-INSTALLATION-NUMBER`; the highest number counts. Pools are
 * in the cluster's own configuration (user.cfg), so no node has to be up for one, `POST /pools` is
 * a create-if-absent under the cluster's lock, and `GET /cluster/resources` lists them: pve-manager
 * PVE/API2/Cluster.pm (`type => 'pool'`, with Pool.Audit, stable-7 to master) and Pool.pm. The
 * comment says who wrote it. Why not the tag of a VM: docs/decisions/0016.
 */
const poolForm = /^berth-epoch-([A-Za-z0-9._-]+)-(\d{1,15})$/;
const commentForm = /\brun=(\S+) at=(\S+) place=(\S*)/;

const rightsRemedy =
  "Grant Pool.Allocate and Pool.Audit on /pool: berth doctor prints the command. " +
  "Berth tries again every minute.";

interface EpochPool extends EpochView {
  readonly pool: string;
}

/** The newest epoch of each installation among the rows of the bulk list. */
export function epochsOf(rows: readonly JsonObject[]): ListedEpoch[] {
  const newest = new Map<string, number>();
  for (const row of rows) {
    const [, installation, digits] = poolForm.exec(textOf(row, "pool")) ?? [];
    if (row["type"] !== "pool" || installation === undefined) continue;
    newest.set(installation, Math.max(newest.get(installation) ?? 0, Number(digits)));
  }
  return [...newest].map(([installation, number]) => ({ installation, number }));
}

export async function readEpoch(
  { api }: DriverContext,
  installation: string,
): Promise<Answer<EpochView | undefined>> {
  const pools = await readPools(api, installation);
  if (!pools.ok) return pools;
  const newest = pools.value.at(-1);
  return answered(newest === undefined ? undefined : viewOf(newest));
}

/**
 * Creates the pool of the next number, and then removes those before it. The pool of the number
 * before is there until the next one exists, so of several runs that advance from the same number
 * one creates the next pool. One that comes later still, when that pool was removed again, finds a
 * higher one when it reads back.
 */
export async function advanceEpoch(
  context: DriverContext,
  change: EpochChange,
  fence: Fence,
): Promise<Advanced> {
  const { api } = context;
  const { installation, from, to } = change;
  const before = await readPools(api, installation);
  if (!before.ok) return { outcome: "refused", failure: before.failure };
  const newest = before.value.at(-1);
  if (newest !== undefined && isWritten(newest, to)) {
    return tidyUp(context, before.value, { to, fence });
  }
  if (!guard("epoch-advances-from", newest?.number === from)) return changed(newest);
  const params = { poolid: poolName(installation, to.number), comment: commentOf(to) };
  // It would be created, and nobody would ever see it as an epoch.
  if (!guard("epoch-name-readable", poolForm.test(params.poolid))) {
    return { outcome: "refused", failure: unreadable(params.poolid, newest) };
  }
  const mayWrite = (): boolean => fence.mayWrite();
  const result = await api.write("POST", { path: "/pools", params }, mayWrite);
  if (result.type === "notSent") return refusedBy(result, params.poolid);
  return readBack(context, { change, fence, result });
}

interface Sent {
  readonly change: EpochChange;
  readonly fence: Fence;
  readonly result: PveResult;
}

async function readBack(
  context: DriverContext,
  { change, fence, result }: Sent,
): Promise<Advanced> {
  const { installation, from, to } = change;
  const after = await readPools(context.api, installation);
  if (!after.ok) return { outcome: "unknown", failure: after.failure };
  const newest = after.value.at(-1);
  if (newest !== undefined && isWritten(newest, to)) {
    return tidyUp(context, after.value, { to, fence });
  }
  if (newest?.number !== from) {
    const own = after.value.filter((pool) => isWritten(pool, to));
    await remove(context, fence, own);
    return changed(newest);
  }
  const pool = poolName(installation, to.number);
  if (result.type === "data") return { outcome: "unknown", failure: notShown(pool) };
  return refusedBy(result, pool);
}

/** What was sent had no effect that can be seen. */
function refusedBy(result: PveResult, pool: string): Advanced {
  const attempted = `create the pool ${pool}`;
  if (result.type === "lost") return { outcome: "unknown", failure: failureOf(result, attempted) };
  // It is there, and the token does not see it: nobody could tell whose it is.
  const isHidden = result.type === "error" && result.text.endsWith(`pool '${pool}' already exists`);
  if (isHidden) return { outcome: "refused", failure: hidden(pool, causeOf(result)) };
  const begun = begunOf(result, attempted);
  if (begun.outcome === "task" || begun.outcome === "progressed") return { outcome: "done" };
  if (begun.outcome !== "refused" || begun.failure.category !== "PermissionDenied") return begun;
  return { outcome: "refused", failure: { ...begun.failure, remedy: rightsRemedy } };
}

async function tidyUp(
  context: DriverContext,
  pools: readonly EpochPool[],
  { to, fence }: { readonly to: EpochView; readonly fence: Fence },
): Promise<Advanced> {
  const older = pools.filter(({ number }) => guard("epoch-tidy-older", number < to.number));
  await remove(context, fence, older);
  return { outcome: "done" };
}

/** One that stays, because somebody put VMs into it, is older than the newest and says nothing. */
async function remove(
  { api }: DriverContext,
  fence: Fence,
  pools: readonly EpochPool[],
): Promise<void> {
  for (const { pool } of pools) {
    await api.write("DELETE", { path: `/pools/${pathPart(pool)}` }, () => fence.mayWrite());
  }
}

/** The epochs of an installation, the newest last. */
async function readPools(api: PveApi, installation: string): Promise<Answer<EpochPool[]>> {
  const result = await api.get("/pools");
  if (result.type !== "data") return failed(readFailureOf(result, "list the pools"));
  const pools = rowsOf(result.data).flatMap((row) => {
    const pool = textOf(row, "poolid");
    const [, owner, digits] = poolForm.exec(pool) ?? [];
    if (!guard("epoch-of-installation", owner === installation)) return [];
    return [{ pool, number: Number(digits), ...writerOf(textOf(row, "comment")) }];
  });
  return answered(pools.toSorted((left, right) => left.number - right.number));
}

function writerOf(comment: string): Omit<EpochView, "number"> {
  const [, run, at, place] = commentForm.exec(comment) ?? [];
  if (run === undefined || at === undefined || place === undefined) return {};
  return { run: decode(run), at, place: decode(place) };
}

/** People edit comments. */
function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function commentOf({ run, at, place }: WrittenEpoch): string {
  const words = "Berth: which run of this installation may act. Do not delete.";
  return `${words} run=${encodeURIComponent(run)} at=${at} place=${encodeURIComponent(place)}`;
}

function poolName(installation: string, number: number): string {
  return `berth-epoch-${installation}-${number}`;
}

function isWritten(pool: EpochPool, to: WrittenEpoch): boolean {
  return pool.number === to.number && guard("epoch-written-by-run", pool.run === to.run);
}

function changed(newest: EpochPool | undefined): Advanced {
  if (newest === undefined) return { outcome: "changed", detail: "there is no epoch" };
  const seen = viewOf(newest);
  return { outcome: "changed", detail: `the epoch is ${seen.number}`, seen };
}

function viewOf({ pool, ...view }: EpochPool): EpochView {
  return { ...view, shownBy: `the pool ${pool}` };
}

function notShown(pool: string): Failure {
  return { category: "UnknownOutcome", message: `the pool ${pool} is not shown yet` };
}

function unreadable(pool: string, newest: EpochPool | undefined): Failure {
  const present = newest === undefined ? "of this installation" : newest.pool;
  return {
    category: "ConflictingController",
    message: `no epoch is higher than the present one: ${pool} is no name of an epoch`,
    remedy: `Remove the pool ${present} on the hypervisor. Berth tries again by itself.`,
  };
}

function hidden(pool: string, cause: string): Failure {
  return {
    category: "PermissionDenied",
    message: `the pool ${pool} exists, and the token cannot see it`,
    cause,
    remedy: rightsRemedy,
  };
}

/** Whether a pool is the epoch of some installation of Berth. */
export function isEpochPool(name: string): boolean {
  return poolForm.test(name);
}
