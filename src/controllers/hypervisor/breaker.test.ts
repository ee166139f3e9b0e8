import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fence, HypervisorDriver, Operation } from "../../hypervisor/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { guarded } from "./breaker.ts";

test("no write passes while another run acts, whatever the lease says", async () => {
  let isActing = true;
  const open: Fence = { mayWrite: () => true };
  const closed: Fence = { mayWrite: () => false };
  // Only what is called here has to be there.
  const driver = {
    begin: async (_operation, fence) => ({ outcome: fence.mayWrite() ? "done" : "fenced" }),
    cancel: async (_task, fence) => ({ outcome: fence.mayWrite() ? "done" : "fenced" }),
  } as Pick<HypervisorDriver, "begin" | "cancel"> as HypervisorDriver;
  const doubt = (): void => undefined;
  const shared = guarded(driver, { clock: new VirtualClock(), doubt, mayAct: () => isActing });
  const operation = { kind: "powerOn" } as unknown as Operation;
  const outcomes = async (fence: Fence): Promise<(string | undefined)[]> => [
    (await shared.begin(operation, fence)).outcome,
    (await shared.cancel?.("task", fence))?.outcome,
  ];
  assert.deepEqual(await outcomes(open), ["done", "done"]);
  assert.deepEqual(await outcomes(closed), ["fenced", "fenced"]);
  isActing = false;
  assert.deepEqual(await outcomes(open), ["fenced", "fenced"]);
});
