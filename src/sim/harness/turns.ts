import { setImmediate } from "node:timers/promises";

/** Lets everything happen that can happen without virtual time passing. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}
