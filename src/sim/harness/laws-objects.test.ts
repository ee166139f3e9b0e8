import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { ObjectLaws } from "./laws-objects.ts";
import { Records } from "./records.ts";

interface Stood {
  readonly isRunning: boolean;
  readonly lookedMs: number;
}

/** The laws of a world with one machine, which is running or not, at second 1000. */
function lawsOf({ isRunning, lookedMs }: Stood): ObjectLaws {
  const site = { wasThereWithin: () => true, hadPowerWithin: () => isRunning };
  return new ObjectLaws({
    records: new Records(),
    sites: new Map([["east", site as never]]),
    wires: new Map([["east", { lookedMs: new Map([["100", lookedMs]]) } as never]]),
    nowMs: () => 1_000_000,
  });
}

function ready(more: { readonly node: string; readonly isPaused?: boolean }): VirtualMachine {
  const { node, isPaused = false } = more;
  const annotations = isPaused ? { "berth.dev/paused": "true" } : {};
  return {
    metadata: { uid: "1", name: "web", generation: 1, annotations },
    spec: { powerState: "Running" },
    status: {
      observedGeneration: 1,
      hypervisor: "east",
      externalId: "100",
      node,
      conditions: [{ type: "Ready", status: "True" }],
    },
  } as never;
}

const before = ready({ node: "pve1" });
const after = ready({ node: "pve2" });

describe("the law that a status is observed", () => {
  it("asks of whatever stays Ready after a look whether that was so", () => {
    const laws = lawsOf({ isRunning: false, lookedMs: 999_000 });
    assert.throws(() => laws.atVmChange({ before, after }), /law 7, .*100 was not Running/);
    lawsOf({ isRunning: true, lookedMs: 999_000 }).atVmChange({ before, after });
  });

  it("and of whatever becomes Ready, looked at or not", () => {
    const laws = lawsOf({ isRunning: false, lookedMs: -Infinity });
    assert.throws(() => laws.atVmChange({ before: undefined, after }), /was not Running/);
  });

  it("but not of what nobody looked at, is paused, or says nothing new", () => {
    lawsOf({ isRunning: false, lookedMs: 800_000 }).atVmChange({ before, after });
    const laws = lawsOf({ isRunning: false, lookedMs: 999_000 });
    laws.atVmChange({ before, after: before });
    laws.atVmChange({ before, after: ready({ node: "pve2", isPaused: true }) });
  });

  it("and asks once for each look", () => {
    const isRunning = false;
    const laws = lawsOf({ isRunning, lookedMs: 999_000 });
    assert.throws(() => laws.atVmChange({ before, after }));
    laws.atVmChange({ before: after, after: before });
  });
});
