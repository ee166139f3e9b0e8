import assert from "node:assert/strict";
import { it } from "node:test";
import type { Hypervisor } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { settleEpoch, type EpochDeps, type EpochLook, type SettledEpoch } from "./epoch.ts";
import { hypervisorStatusOf, type HypervisorView } from "./status.ts";

const at = "2026-11-16T12:00:00Z";
const installation = "in";
const hypervisor = { metadata: { name: "lab" } } as Hypervisor;
const acting: SettledEpoch = {
  standing: { is: "acting", number: 5 },
  listed: 5,
  takeover: undefined,
};

/** What a run that acts under the epoch 5 does when the bulk list has this number. */
async function standingWhenListed(number: number): Promise<string> {
  const epochs = JSON.stringify({ sys: { number: 5, run: "own", at } });
  const update = (object: unknown): Promise<unknown> => Promise.resolve(object);
  const deps = {
    client: { of: () => ({ get: () => Promise.resolve({ data: { epochs } }), update }) },
    clock: new VirtualClock(),
    events: { event: () => undefined },
    run: { installation, id: "own", fence: { mayWrite: () => true } },
  } as unknown as EpochDeps;
  const look = {
    driver: { epoch: () => Promise.resolve({ ok: true, value: { number, run: "other" } }) },
    inventory: { epochs: [{ installation, number }] },
    systemId: "sys",
    old: acting,
  } as unknown as EpochLook;
  return (await settleEpoch(hypervisor, deps, look)).standing.is;
}

it("a run does not go on acting when the hypervisor lists a newer epoch", async () => {
  assert.equal(await standingWhenListed(5), "acting");
  assert.equal(await standingWhenListed(6), "observing");
});

it("the time of the next try is told by the clock on the wall", async () => {
  const clock = new VirtualClock();
  const failure = { category: "NetworkError", message: "away" } as const;
  const deps = { clock, run: { installation, id: "own" } } as unknown as EpochDeps;
  const look = {
    driver: { epoch: () => Promise.resolve({ ok: false, failure }) },
    inventory: { nodes: [], storages: [], machines: [], isComplete: true, missing: [] },
    systemId: "sys",
    old: undefined,
  } as unknown as EpochLook;
  const { standing } = await settleEpoch(hypervisor, deps, look);
  assert.ok(standing.is === "observing");
  const waitMs = (standing.retryAtMs ?? 0) - clock.monotonicMs();
  const system = { version: "1", systemId: "sys", capabilities: [], findings: [] };
  const told = { metadata: { name: "lab" }, spec: { endpoints: [] } } as unknown as Hypervisor;
  const view = { is: "connected", system, inventory: look.inventory, standing } as unknown;
  // cast: what a status is made of.
  const status = hypervisorStatusOf(told, view as HypervisorView, clock.nowMs());
  assert.equal(status.failure?.nextRetryAt, formatTime(clock.nowMs() + waitMs));
});
