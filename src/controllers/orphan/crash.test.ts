import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../../api/index.ts";
import { forgetLease } from "../index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { getVm, isReady, listClaims, until, type Incarnation } from "../testing/world.ts";
import {
  configure,
  decide,
  leaveVolume,
  listOrphans,
  orphanOf,
  ready,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

const disk = "local-zfs:vm-200-disk-0";
/** As many places to die at as there is time for: before one call, after the next. */
const placesMost = 9;

/** A way from a person's word to its end. */
interface Way {
  readonly prepare: (stage: SimulatedWorld) => Promise<string>;
  readonly decide: (stage: SimulatedWorld, id: string) => Promise<void>;
  readonly isOver: (stage: SimulatedWorld, id: string) => Promise<boolean>;
  readonly demand: (stage: SimulatedWorld, id: string) => Promise<void>;
}

/** Decides, dies at that call, starts again, and demands the same end as ever. */
async function live(way: Way, crash?: NonNullable<Incarnation["crashAt"]>): Promise<number> {
  const stage = await openProxmox();
  const { world } = stage;
  await configure(world, { orphans: { graceSeconds: 60, sweepSeconds: 60 } });
  leaveVolume(stage.proxmox, "vm-900-disk-0");
  let current = world.start(slow);
  const first = current;
  const id = await way.prepare(stage);
  await waitForOrphan(world, id);
  const before = first.calls.length;
  if (crash !== undefined) first.crashAt = { ...crash, call: before + crash.call };
  await way.decide(stage, id);
  const isOver = await until(world, async () => {
    if (current.isCrashed) {
      await forgetLease(world.client);
      current = world.start(slow);
    }
    return way.isOver(stage, id);
  });
  const told = JSON.stringify([await orphanOf(world, id), crash, world.log], undefined, 1);
  assert.ok(isOver, told);
  await way.demand(stage, id);
  assert.ok(volumeNames(stage.proxmox).includes("vm-900-disk-0"), "nobody decided about that");
  return first.calls.length - before;
}

/** The same end, wherever it dies. */
async function demandAll(way: Way): Promise<void> {
  const calls = await live(way);
  const stride = Math.ceil(calls / placesMost);
  for (let call = 1; call <= calls; call += stride) {
    await live(way, { call, when: Math.floor(call / stride) % 2 === 0 ? "after" : "before" });
  }
}

function writes({ requests }: SimulatedWorld, method: string, part: string): number {
  return requests.filter((one) => one.method === method && one.path.includes(part)).length;
}

async function decideAs(
  { world }: SimulatedWorld,
  id: string,
  spec: Parameters<typeof decide>[2],
): Promise<void> {
  const orphan = await orphanOf(world, id);
  assert.ok(orphan);
  await decide(world, orphan, spec);
}

async function orphaned(stage: SimulatedWorld): Promise<string> {
  const id = await ready(stage, "web", { powerState: "Stopped" });
  await strip(stage.world, "web");
  return id;
}

describe("what a person decided ends in the same way, wherever Berth dies", () => {
  it("for a volume that is destroyed", async () => {
    await demandAll({
      prepare: async ({ proxmox }) => {
        leaveVolume(proxmox, "vm-200-disk-0");
        return disk;
      },
      decide: (stage, id) => decideAs(stage, id, { decision: "Destroy" }),
      isOver: async ({ proxmox, world }) => {
        const orphan = await orphanOf(world, disk);
        const isTold = orphan === undefined || orphan.status?.reclaimed !== undefined;
        return isTold && !volumeNames(proxmox).includes("vm-200-disk-0");
      },
      demand: async (stage) => {
        assert.ok(writes(stage, "DELETE", "vm-200-disk-0") >= 1);
        assert.equal(writes(stage, "DELETE", "vm-900-disk-0"), 0);
      },
    });
  });

  it("for a volume whose destruction was never answered, or never arrived", async () => {
    for (const kind of ["loseReply", "loseRequest"] as const) {
      const stage = await openProxmox();
      const { world, proxmox } = stage;
      leaveVolume(proxmox, "vm-200-disk-0");
      await configure(world, { orphans: { graceSeconds: 60, sweepSeconds: 60 } });
      world.start(slow);
      await waitForOrphan(world, disk);
      proxmox.faults.onRequest({ matches: ({ method }) => method === "DELETE", kind });
      await decideAs(stage, disk, { decision: "Destroy" });
      const isOver = await until(world, async () => {
        return (await orphanOf(world, disk))?.status?.reclaimed !== undefined;
      });
      assert.ok(isOver, JSON.stringify([kind, (await orphanOf(world, disk))?.status]));
      assert.deepEqual(volumeNames(proxmox), []);
      assert.equal(writes(stage, "DELETE", "vm-200-disk-0"), kind === "loseReply" ? 1 : 2);
    }
  });

  it("for a machine that is destroyed", async () => {
    await demandAll({
      prepare: orphaned,
      decide: (stage, id) => decideAs(stage, id, { decision: "Destroy" }),
      isOver: async ({ proxmox, world }, id) => {
        const orphan = await orphanOf(world, id);
        const isTold = orphan === undefined || orphan.status?.reclaimed !== undefined;
        return isTold && proxmox.cluster.state.guests[id] === undefined;
      },
      demand: async ({ proxmox, world }, id) => {
        const left = volumeNames(proxmox).filter((name) => name.includes(`-${id}-`));
        assert.deepEqual(left, []);
        const claims = await listClaims(world.client);
        assert.deepEqual(
          claims.map(({ spec }) => spec.state),
          ["Quarantined"],
        );
      },
    });
  });

  it("for a machine that is adopted", async () => {
    const adoptAs = { namespace: "default", name: "site" };
    await demandAll({
      prepare: async (stage) => {
        const entry = { namespace: "*", adopt: true, externalId: true };
        await configure(stage.world, { allow: [{ ...entry, storages: ["*"], networks: ["*"] }] });
        return orphaned(stage);
      },
      decide: (stage, id) => decideAs(stage, id, { decision: "Adopt", adoptAs }),
      isOver: async ({ world }) => {
        const isEmpty = (await listOrphans(world)).every(({ spec }) => spec.kind === "Volume");
        return isEmpty && isReady(await getVm(world.client, "site"));
      },
      demand: async ({ proxmox, world }, id) => {
        assert.deepEqual(Object.keys(proxmox.cluster.state.guests), [id]);
        const { items } = await world.client.of(virtualMachineKind).list();
        assert.deepEqual(
          items.map(({ metadata, status }) => [metadata.name, status?.externalId]),
          [["site", id]],
        );
      },
    });
  });
});
