import assert from "node:assert/strict";
import { it } from "node:test";
import type { DriverContext } from "./context.ts";
import { advanceEpoch } from "./epoch.ts";

const installation = "7f3f3b52-90b4-4b6b-9d39-0c9f5a4be001";
const poolid = `berth-epoch-${installation}-999999999999999`;

it("an epoch is not written under a name that is not read as one, and the pool is named", async () => {
  const written: unknown[] = [];
  const api = {
    get: () => Promise.resolve({ type: "data", data: [{ poolid, comment: "" }], from: "pve1" }),
    write: (...request: unknown[]) => {
      written.push(request);
      return Promise.resolve({ type: "data", data: null, from: "pve1" });
    },
  };
  const to = { number: 1e15, run: "r", at: "2026-11-16T12:00:00Z", place: "host" };
  const change = { installation, from: 999_999_999_999_999, to };
  // cast: an epoch needs nothing else.
  const context = { api } as unknown as DriverContext;
  const advanced = await advanceEpoch(context, change, { mayWrite: () => true });
  assert.deepEqual(written, []);
  assert.ok(advanced.outcome === "refused");
  assert.match(advanced.failure.remedy ?? "", new RegExp(`Remove the pool ${poolid} `));
});
