import { setImmediate } from "node:timers/promises";

/** Lets everything happen that can happen without virtual time passing. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}

/** Lets time pass until something that takes time is over. */
export async function passWhile(
  work: Promise<unknown>,
  passUntil: (isOver: () => boolean) => Promise<boolean>,
): Promise<void> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  // Whoever awaits it below hears of it.
  ended.catch(() => undefined);
  await passUntil(() => isOver);
  await ended;
}
