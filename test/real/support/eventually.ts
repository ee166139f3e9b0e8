import assert from "node:assert/strict";

/** Asks again and again until it holds; fails with the complaint after so long. */
export async function eventually(
  condition: () => Promise<boolean>,
  complaint: () => string,
  { withinMs = 90_000, everyMs = 150 } = {},
): Promise<void> {
  const deadlineMs = Date.now() + withinMs;
  while (!(await condition())) {
    assert.ok(Date.now() < deadlineMs, complaint());
    await pause(everyMs);
  }
}

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
