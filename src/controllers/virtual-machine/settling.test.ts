import assert from "node:assert/strict";
import { it } from "node:test";
import { claim } from "./fixture.ts";
import { recordNoWorker } from "./settling.ts";
import type { ConnectedTurn } from "./turn.ts";

it("that no worker was started is in the Claim: no task will ever tell it to another process", async () => {
  const written: object[] = [];
  const ledger = {
    record: (of: object, change: object) => {
      written.push(change);
      return Promise.resolve(of);
    },
  };
  const turn = { claim: { spec: claim }, deps: { ledger } } as unknown as ConnectedTurn;
  await recordNoWorker(turn, { step: "Create" });
  assert.deepEqual(written, [{ workerNeverStarted: true }]);
});
