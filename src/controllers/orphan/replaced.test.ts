import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { apiVersion, orphanKind } from "../../api/index.ts";
import type { Orphan } from "../../api/index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { until, type Incarnation } from "../testing/world.ts";
import {
  configure,
  decide,
  gib,
  leaveVolume,
  longMs,
  orphanOf,
  ready,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

// A decision is about the thing that the person saw, and not about whatever has its id by now.

const name = "vm-777-disk-0";
const volume = `local-zfs:${name}`;
const hourMs = 3600_000;

interface Found extends SimulatedWorld {
  readonly orphan: Orphan;
  readonly program: Incarnation;
}

async function openFound(): Promise<Found> {
  const stage = await openProxmox();
  leaveVolume(stage.proxmox, name, { sizeBytes: 2 * gib });
  const program = stage.world.start(slow);
  return { ...stage, program, orphan: await waitForOrphan(stage.world, volume) };
}

/** Somebody destroys the volume by hand and makes another one of the same name. */
function replace({ proxmox }: SimulatedWorld, other: { sizeBytes?: number; id?: string }): void {
  const { volumes } = proxmox.cluster.state;
  const wanted = other.id ?? name;
  for (const kept of Object.values(volumes)) {
    for (const one of kept.filter((each) => each.name === wanted)) {
      one.sizeBytes = other.sizeBytes ?? one.sizeBytes;
      one.createdMs += 77_000;
    }
  }
}

function condition(orphan: Orphan | undefined, type: string): string {
  const found = orphan?.status?.conditions?.find((one) => one.type === type);
  return found === undefined ? "" : `${found.status} ${found.reason}`;
}

async function pass({ world }: SimulatedWorld, ms = hourMs): Promise<Orphan | undefined> {
  await until(world, () => false, ms);
  return orphanOf(world, volume);
}

/** The decision is taken back, and written again as it was. */
async function applyAgain({ world }: SimulatedWorld, orphan: Orphan): Promise<void> {
  const merge = { spec: { decision: null, confirm: null } };
  await world.client.of(orphanKind).patch({ name: orphan.metadata.name ?? "" }, { merge });
  await until(world, () => false, 60_000);
  await decide(world, orphan, { decision: "Destroy" });
}

describe("a volume that was replaced after a person saw it", () => {
  for (const isDown of [false, true]) {
    it(`is not destroyed, with Berth ${isDown ? "down" : "running"} meanwhile`, async () => {
      const stage = await openFound();
      if (isDown) await stage.program.stop();
      replace(stage, { sizeBytes: 50 * gib });
      await decide(stage.world, stage.orphan, { decision: "Destroy" });
      if (isDown) stage.world.start(slow);
      const orphan = await pass(stage);
      assert.deepEqual(volumeNames(stage.proxmox), [name]);
      assert.equal(condition(orphan, "Stalled"), "True ChangedSinceDecision");
      assert.equal(orphan?.status?.size, String(50 * gib));
    });
  }

  it("is not destroyed because the same decision is applied once more", async () => {
    const stage = await openFound();
    replace(stage, { sizeBytes: 50 * gib });
    await decide(stage.world, stage.orphan, { decision: "Destroy" });
    await pass(stage);
    await applyAgain(stage, stage.orphan);
    const orphan = await pass(stage);
    assert.deepEqual(volumeNames(stage.proxmox), [name]);
    assert.equal(condition(orphan, "Stalled"), "True ChangedSinceDecision");
  });

  it("is destroyed once the decision names what is there now", async () => {
    const stage = await openFound();
    replace(stage, { sizeBytes: 50 * gib });
    await decide(stage.world, stage.orphan, { decision: "Destroy" });
    const changed = await pass(stage);
    assert.ok(changed?.status?.observation);
    assert.notEqual(changed.status.observation, stage.orphan.status?.observation);
    await decide(stage.world, changed, {
      decision: "Destroy",
      observation: changed.status.observation,
    });
    const orphan = await pass(stage, 600_000);
    assert.deepEqual(volumeNames(stage.proxmox), []);
    assert.equal(orphan?.status?.reclaimed, String(50 * gib));
  });

  it("is not destroyed where the decision names what was there before", async () => {
    const stage = await openFound();
    const { observation = "" } = stage.orphan.status ?? {};
    replace(stage, { sizeBytes: 50 * gib });
    await pass(stage);
    await decide(stage.world, stage.orphan, { decision: "Destroy", observation });
    assert.equal(condition(await pass(stage), "Stalled"), "True ChangedSinceDecision");
    assert.deepEqual(volumeNames(stage.proxmox), [name]);
  });

  it("stays kept: a decision to leave it destroys nothing", async () => {
    const stage = await openFound();
    await decide(stage.world, stage.orphan, { decision: "Keep" });
    replace(stage, { sizeBytes: 50 * gib });
    assert.equal(condition(await pass(stage), "Ready"), "True Kept");
  });
});

describe("an Orphan that somebody wrote together with its decision", () => {
  it("destroys nothing: nobody had seen what is there", async () => {
    const stage = await openFound();
    const { name: object = "" } = stage.orphan.metadata;
    const orphans = stage.world.client.of(orphanKind);
    await orphans.delete({ name: object });
    await orphans.create({
      apiVersion,
      kind: "Orphan",
      metadata: { name: object },
      spec: { ...stage.orphan.spec, decision: "Destroy", confirm: volume },
    });
    assert.equal(condition(await pass(stage), "Stalled"), "True ChangedSinceDecision");
    assert.deepEqual(volumeNames(stage.proxmox), [name]);
  });

  it("destroys nothing by what an earlier Orphan of the same id reported", async () => {
    const stage = await openFound();
    const { name: object = "" } = stage.orphan.metadata;
    const { observation = "" } = stage.orphan.status ?? {};
    const orphans = stage.world.client.of(orphanKind);
    await orphans.delete({ name: object });
    await orphans.create({
      apiVersion,
      kind: "Orphan",
      metadata: { name: object },
      spec: { ...stage.orphan.spec, decision: "Destroy", confirm: volume, observation },
    });
    assert.equal(condition(await pass(stage), "Stalled"), "True ChangedSinceDecision");
    assert.deepEqual(volumeNames(stage.proxmox), [name]);
  });
});

/** A disk of ours whose VM is gone, where the policy deletes what is ours. */
async function openLeft(stage: SimulatedWorld): Promise<string> {
  const { world, proxmox } = stage;
  world.start(slow);
  const id = await ready(stage, "web", { powerState: "Stopped" });
  for (const other of ["b", "c"]) await ready(stage, other, { powerState: "Stopped" });
  await strip(world, "web");
  proxmox.removeGuestFile(Number(id));
  await waitForOrphan(world, `local-zfs:vm-${id}-disk-0`);
  return `vm-${id}-disk-0`;
}

describe("what the policy deletes", () => {
  for (const isReplaced of [false, true]) {
    const what = isReplaced ? "not a larger volume that took its name" : "a disk of ours";
    it(`is ${what}`, async () => {
      const stage = await openProxmox();
      const id = await openLeft(stage);
      if (isReplaced) replace(stage, { sizeBytes: 50 * gib, id });
      await configure(stage.world, { orphans: { policy: "DeleteOwned" } });
      await until(stage.world, () => false, longMs);
      assert.equal(volumeNames(stage.proxmox).includes(id), isReplaced);
      const orphan = await orphanOf(stage.world, `local-zfs:${id}`);
      assert.equal(orphan?.status?.ownership, isReplaced ? "Unattributed" : undefined);
    });
  }
});

describe("a VM whose size changed after a person saw it", () => {
  it("is not destroyed", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    const program = world.start(slow);
    const id = await ready(stage, "web", { powerState: "Stopped" });
    for (const other of ["b", "c"]) await ready(stage, other, { powerState: "Stopped" });
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    const guest = proxmox.cluster.state.guests[id];
    assert.ok(guest);
    // So little that it might be a rounded size: the driver alone would not notice.
    const text = guest.text.replaceAll("size=10G", "size=10272M");
    proxmox.cluster.state.guests[id] = { ...guest, text };
    replace(stage, { sizeBytes: 10_272 * 1024 ** 2, id: `vm-${id}-disk-0` });
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, () => false, hourMs);
    const now = await orphanOf(world, id);
    assert.equal(condition(now, "Stalled"), "True ChangedSinceDecision");
    assert.ok(volumeNames(proxmox).includes(`vm-${id}-disk-0`));
    await program.stop();
  });
});
