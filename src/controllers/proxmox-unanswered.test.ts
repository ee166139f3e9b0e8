import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, until } from "./testing/world.ts";

const minuteMs = 60_000;
/** A request without a reply may take effect for so long. */
const windowMs = minuteMs;
/** The wait after each failure at the soonest: the table, less its jitter. */
const leastMs = [0, 30_000, minuteMs, 2 * minuteMs, 5 * minuteMs].map((ms) => 0.8 * ms);

const root = { name: "root", size: "5Gi", storage: "local-zfs" };
/** What a blank disk left is removed before it is made again; an image disk leaves nothing. */
const disks: Record<string, Partial<WrittenVirtualMachineSpec>> = {
  "a blank disk": { source: { blank: {} }, disks: [root] },
  "an image disk": { disks: [root] },
};

interface Unanswered extends SimulatedWorld {
  /** When each request that adds the disk was sent. */
  readonly sentMs: number[];
  readonly allocations: () => number;
}

/** No request that changes a configuration arrives. */
async function open(): Promise<Unanswered> {
  const sentMs: number[] = [];
  let allocations = 0;
  const stage: SimulatedWorld = await openProxmox("8.4", {
    between: (request, send) => {
      const { method, path } = request;
      if (method === "POST" && path.endsWith("/content")) allocations += 1;
      if (method !== "POST" || !path.endsWith("/config")) return send(request);
      sentMs.push(stage.world.clock.monotonicMs());
      return Promise.resolve({ type: "lost", detail: "connection reset" });
    },
  });
  return { ...stage, sentMs, allocations: () => allocations };
}

describe("a VM whose disk is added by a request that never arrives", () => {
  for (const [what, spec] of Object.entries(disks)) {
    for (const isRestarted of [false, true]) {
      const how = isRestarted ? ", with a restart every three minutes" : "";
      it(`is tried again as seldom as the table says: ${what}${how}`, async () => {
        const { world, sentMs, allocations } = await open();
        await runHalfAnHour(world, { spec, isRestarted });
        assert.ok(sentMs.length >= 5 && sentMs.length <= 8, `sent at ${sentMs.join(", ")}`);
        assert.ok(allocations() <= sentMs.length, `${allocations()} volumes were allocated`);
        assertPace(sentMs);
        const vm = await getVm(world.client, "web");
        const { category, step, attempts } = vm?.status?.failure ?? {};
        const counted = sentMs.length - 1;
        assert.deepEqual([category, step, attempts], ["UnknownOutcome", "AddDisk", counted]);
      });
    }
  }
});

describe("an operation of which nobody knows how it ended", () => {
  it("holds no slots while its VM waits for something else", async () => {
    const stage = await open();
    const { world, sentMs } = stage;
    world.start();
    const placement = { placement: { node: "pve1" }, powerState: "Stopped" } as const;
    await createVm(world.client, "web", { ...disks["an image disk"], ...placement });
    assert.ok(await until(world, () => sentMs.length > 0));
    lockAll(stage);
    await until(world, () => false, 3 * minuteMs);
    const { operation, waitingFor } = (await getVm(world.client, "web"))?.status ?? {};
    const { step, slots } = operation ?? {};
    assert.deepEqual([step, slots, waitingFor?.kind], ["AddDisk", [], "Lock"]);
  });
});

/** Somebody backs up every VM. */
function lockAll({ proxmox }: SimulatedWorld): void {
  for (const [id, { node, text }] of Object.entries(proxmox.cluster.state.guests)) {
    proxmox.writeGuestFile(node, Number(id), `${text}lock: backup\n`);
  }
}

interface Story {
  readonly spec: Partial<WrittenVirtualMachineSpec>;
  readonly isRestarted: boolean;
}

async function runHalfAnHour(
  world: SimulatedWorld["world"],
  { spec, isRestarted }: Story,
): Promise<void> {
  let running = world.start();
  const placement = { placement: { node: "pve1" }, powerState: "Stopped" } as const;
  await createVm(world.client, "web", { ...spec, ...placement });
  for (let minute = 0; minute < 30; minute += 3) {
    await until(world, () => false, 3 * minuteMs);
    if (!isRestarted) continue;
    running.crash();
    running = world.start();
  }
}

function assertPace(sentMs: readonly number[]): void {
  for (const [index, atMs] of sentMs.slice(1).entries()) {
    const pauseMs = atMs - (sentMs[index] ?? 0);
    const dueMs = windowMs + (leastMs[index] ?? 0);
    assert.ok(pauseMs >= dueMs - 1_000, `request ${index + 2} after ${pauseMs} ms`);
  }
}
