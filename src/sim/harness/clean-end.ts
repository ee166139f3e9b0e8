import type { Claim } from "../../api/index.ts";
import { Dice } from "./dice.ts";
import type { Hands } from "./hands.ts";
import { isStuck, type Tidiers } from "./tidiers.ts";
import { Violation } from "./violation.ts";
import type { CleanUp, World } from "./world.ts";

/** A kept thing unseen for ten minutes is forgotten, and a Claim that is held for nothing rests. */
const quietMs = 12 * 60_000;
/** One thing goes with each sweep, and what cannot go is tried again some times. */
const cleanMs = 90 * 60_000;
/** Longer than the grace time, a quiet time and some sweeps. */
const clearMs = 10 * 60_000;

/** How time passes in a history. */
export interface Passing {
  /** Until something holds; false if it never does. */
  readonly until: (holds: () => boolean, withinMs: number) => Promise<boolean>;
  /** Whether nothing was written for so long. */
  readonly quietFor: (ms: number) => () => boolean;
}

/** One seed in eight deletes what nothing declares, as soon as may be. */
export function cleanUpOf(seed: number): CleanUp | undefined {
  if (!Dice.of(seed, "clean-up").chance(0.12)) return undefined;
  return { graceSeconds: Dice.of(seed, "grace").pick([60, 150, 150]), sweepSeconds: 60 };
}

/** Law 8: what the policy lets go is gone, and of all else people have heard. */
export async function restOfCleanUp(
  { cleanUp }: World,
  tidiers: Tidiers,
  passing: Passing,
): Promise<void> {
  if (cleanUp === undefined) return;
  const isQuiet = passing.quietFor(quietMs);
  const isOver = (): boolean => {
    tidiers.forgetGone();
    return isQuiet() && tidiers.untold().length === 0;
  };
  if (await passing.until(isOver, cleanMs)) return;
  const found = tidiers.open().map(({ spec, status }) => ({ spec, status }));
  const all = JSON.stringify([...tidiers.untold(), ...found]);
  throw new Violation(8, `the clean-up does not come to rest: ${all}`);
}

/** In the end people decide that everything goes, and it does, or it is said why it cannot. */
export async function clearLeft(
  { cleanUp, records }: World,
  { tidiers, hands }: { readonly tidiers: Tidiers; readonly hands: Hands },
  { until }: Passing,
): Promise<void> {
  if (cleanUp === undefined) return;
  const isOver = (): boolean => {
    const areStuck = tidiers.left().every((one) => tidiers.isStuck(one));
    return areStuck && tidiers.loose().every(isStuck);
  };
  for (let round = 0; round < 4 && !isOver(); round++) {
    tidiers.free();
    await until(isOver, clearMs);
    tidiers.decideAll();
    await until(isOver, clearMs);
  }
  tidiers.clearStuck(hands);
  tidiers.clearStrangers(hands);
  const isAtWork = (): boolean => {
    return [...records.orphans.values()].some(({ status }) => status?.operation !== undefined);
  };
  const isClear = (): boolean => tidiers.stranded().length === 0 && !isAtWork();
  for (let round = 0; round < 4; round++) {
    if (await until(isClear, clearMs)) return;
    // What was taken away by hand shows what else was there.
    tidiers.decideAll();
  }
  await until(isClear, cleanMs);
}

/** Claims that have to have their object: all, save those that Orphans tell of in a clean-up. */
export function claimsOfObjects({ cleanUp, records }: World, tidiers: Tidiers): Claim[] {
  const told = new Set(cleanUp === undefined ? [] : tidiers.stranded());
  for (const claim of tidiers.untold()) told.delete(claim);
  return [...records.claims.values()].filter((claim) => !told.has(claim));
}
