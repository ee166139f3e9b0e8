import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, hypervisorKind, orphanKind } from "../../api/index.ts";
import type { Survey } from "../../hypervisor/index.ts";
import { forgetLease } from "../index.ts";
import { eventsOf } from "../testing/events.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { createVm, listClaims, until, type World } from "../testing/world.ts";
import {
  configure,
  decide,
  disks,
  leaveVolume,
  listOrphans,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

const stopped = { powerState: "Stopped" } as const;
const deleting = { orphans: { policy: "DeleteOwned" } } as const;
const quarterMs = 900_000;

function guests({ proxmox }: SimulatedWorld): string[] {
  return Object.keys(proxmox.cluster.state.guests);
}

async function pass(world: World, ms: number): Promise<void> {
  await until(world, () => false, ms);
}

async function keep(world: World, externalId: string): Promise<void> {
  await decide(world, await waitForOrphan(world, externalId), { decision: "Keep" });
  const isKept = async (): Promise<boolean> => {
    return reasonOf(await orphanOf(world, externalId)) === "Kept";
  };
  assert.ok(await until(world, isKept));
}

async function sweptCondition(world: World): Promise<string> {
  const { status } = await world.client.of(hypervisorKind).get({ name: "model" });
  const swept = status?.conditions?.find(({ type }) => type === "Swept");
  return swept === undefined ? "" : `${swept.reason} ${swept.message}`;
}

/** Machines that others have, so that one of ours is not most of what there is. */
function strangers({ proxmox }: SimulatedWorld, count: number): () => void {
  const ids = Array.from({ length: count }, (_, index) => 500 + index);
  for (const id of ids) proxmox.writeGuestFile("pve1", id, "name: s\n");
  return () => ids.forEach((id) => proxmox.removeGuestFile(id));
}

/** A machine whose object is gone and whose disks are all that is left of it. */
async function leaveDisks(stage: SimulatedWorld): Promise<{ id: string; volume: string }> {
  const id = await ready(stage, "web", stopped);
  for (const name of ["b", "c"]) await ready(stage, name, stopped);
  await strip(stage.world, "web");
  return { id, volume: `local-zfs:vm-${id}-disk-0` };
}

/** The storage answers, and shows nothing of one machine: what gives the volumes back. */
function hideVolumes({ proxmox }: SimulatedWorld, id: string): () => void {
  const { volumes } = proxmox.cluster.state;
  const backing = Object.keys(volumes).find((key) =>
    volumes[key]?.some(({ name }) => name.includes(`vm-${id}-`)),
  );
  assert.ok(backing);
  const all = volumes[backing] ?? [];
  const isIts = ({ name }: { readonly name: string }): boolean => name.includes(`vm-${id}-`);
  const its = all.filter(isIts);
  volumes[backing] = all.filter((volume) => !isIts(volume));
  return () => volumes[backing]?.push(...its);
}

describe("a Claim that was written from a mark", () => {
  it("makes no machine ours: asking to adopt it in vain gives the policy nothing", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    await configure(world, deleting);
    world.start(slow);
    const id = await ready(stage, "web", stopped);
    for (const name of ["b", "c"]) await ready(stage, name, stopped);
    await strip(world, "web");
    const lost = (await listClaims(world.client)).find(({ spec }) => spec.externalId === id);
    await world.client.of(claimKind).delete({ name: lost?.metadata.name ?? "" });
    const orphan = await waitForOrphan(world, id);
    assert.equal(orphan.status?.ownership, "Marked");
    const adoptAs = { namespace: "default", name: "web" };
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    const isRefused = async (): Promise<boolean> => {
      return (await orphanOf(world, id))?.status?.failure?.category === "PermissionDenied";
    };
    assert.ok(await until(world, isRefused), JSON.stringify((await orphanOf(world, id))?.status));
    await world.client.of(orphanKind).delete({ name: orphan.metadata.name ?? "" });
    await pass(world, 2 * longMs);
    const again = await orphanOf(world, id);
    assert.equal(again?.status?.ownership, "Marked");
    assert.equal(reasonOf(again), "DecisionNeeded");
    assert.ok(guests(stage).includes(id), "the machine stands");
  });
});

describe("what a person keeps", () => {
  it("outlives looks that do not show it, and a restart among them", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    const first = world.start(slow);
    const { id, volume } = await leaveDisks(stage);
    proxmox.removeGuestFile(Number(id));
    await keep(world, volume);
    await configure(world, deleting);
    await pass(world, longMs);
    const show = hideVolumes(stage, id);
    await pass(world, 2 * quarterMs);
    assert.match((await orphanOf(world, volume))?.status?.conditions?.[0]?.message ?? "", /look/);
    first.crash();
    await forgetLease(world.client);
    world.start(slow);
    await pass(world, quarterMs);
    assert.equal(reasonOf(await orphanOf(world, volume)), "Kept");
    show();
    await pass(world, 3 * longMs);
    assert.equal(reasonOf(await orphanOf(world, volume)), "Kept");
    assert.ok(volumeNames(proxmox).some((name) => name.includes(`vm-${id}-`)));
  });

  it("is forgotten when it is gone for the grace time", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start(slow);
    leaveVolume(proxmox, "vm-300-disk-0");
    const volume = "local-zfs:vm-300-disk-0";
    await keep(world, volume);
    proxmox.removeVolume("pve1", volume);
    await pass(world, 3 * quarterMs);
    assert.equal(reasonOf(await orphanOf(world, volume)), "Kept");
    await pass(world, longMs);
    assert.deepEqual(await listOrphans(world), []);
  });

  it("is forgotten no later where Berth is restarted meanwhile", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    let berth = world.start(slow);
    leaveVolume(proxmox, "vm-300-disk-0");
    const volume = "local-zfs:vm-300-disk-0";
    await keep(world, volume);
    proxmox.removeVolume("pve1", volume);
    for (let quarter = 0; quarter < 6; quarter += 1) {
      await pass(world, quarterMs);
      berth.crash();
      await forgetLease(world.client);
      berth = world.start(slow);
    }
    assert.deepEqual(await listOrphans(world), []);
  });

  it("is a machine with its disks, also where somebody takes the machine from them", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start(slow);
    const { id, volume } = await leaveDisks(stage);
    await keep(world, id);
    await configure(world, deleting);
    proxmox.removeGuestFile(Number(id));
    await waitForOrphan(world, volume);
    await pass(world, 3 * longMs);
    assert.equal(reasonOf(await orphanOf(world, id)), "Kept");
    assert.ok(volumeNames(proxmox).some((name) => name.includes(`vm-${id}-`)));
  });
});

describe("a sweep that shows suddenly less than the tick", () => {
  it("forgets nothing and deletes nothing, for as long as it does", async () => {
    let isShort = false;
    let id = "";
    const shorten = (survey: Survey): Survey => {
      if (!isShort) return survey;
      const machines = survey.machines.slice(0, 1).filter(({ externalId }) => externalId !== id);
      return { ...survey, machines };
    };
    const stage = await openProxmox("8.4", {
      around: (driver) => {
        const survey: typeof driver.survey = async (known) => {
          const answer = await driver.survey(known);
          return answer.ok ? { ...answer, value: shorten(answer.value) } : answer;
        };
        return new Proxy(driver, {
          get: (target, key) => {
            if (key === "survey") return survey;
            const value: unknown = Reflect.get(target, key, target);
            return typeof value === "function" ? value.bind(target) : value;
          },
        });
      },
    });
    const { world } = stage;
    strangers(stage, 12);
    world.start(slow);
    id = (await leaveDisks(stage)).id;
    const orphan = await waitForOrphan(world, id);
    isShort = true;
    await pass(world, 2 * longMs);
    assert.equal((await orphanOf(world, id))?.metadata.uid, orphan.metadata.uid, "as it was");
    assert.match(await sweptCondition(world), /SuspiciousSweep.* of 15 machines/);
    const told = (await eventsOf(world.client)).filter(
      ({ reason }) => reason === "SuspiciousSweep",
    );
    assert.equal(told.length, 1, "once");
    isShort = false;
    assert.ok(await until(world, async () => (await sweptCondition(world)) === "", 600_000));
  });

  it("is one that shows an empty storage, which is believed after a while", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start(slow);
    const names = ["vm-301-disk-0", "vm-302-disk-0", "vm-303-disk-0"];
    for (const name of names) leaveVolume(proxmox, name);
    const [first = ""] = names;
    await waitForOrphan(world, `local-zfs:${first}`);
    for (const name of names) proxmox.removeVolume("pve1", `local-zfs:${name}`);
    assert.ok(await until(world, async () => (await sweptCondition(world)) !== "", longMs));
    const text = "SuspiciousSweep Suddenly not there any more: 3 of 3 orphans on the storage ";
    assert.ok((await sweptCondition(world)).startsWith(`${text}local-zfs on pve1.`));
    assert.equal((await listOrphans(world)).length, 3);
    await pass(world, quarterMs);
    assert.deepEqual([await sweptCondition(world), await listOrphans(world)], ["", []]);
  });
});

describe("deleting by policy", () => {
  it("begins no sooner than the grace time after a suspicion, whatever a restart forgets", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    const removeStrangers = strangers(stage, 12);
    const before = world.start(slow);
    const { id } = await leaveDisks(stage);
    await waitForOrphan(world, id);
    await configure(world, deleting);
    removeStrangers();
    await pass(world, 120_000);
    before.crash();
    await forgetLease(world.client);
    world.start(slow);
    await pass(world, 3_600_000 - 60_000);
    assert.ok(guests(stage).includes(id));
    await until(world, () => !guests(stage).includes(id), longMs);
    assert.ok(!guests(stage).includes(id), "it goes, later");
  });

  it("goes on with the others where one cannot go", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    await configure(world, { orphans: { policy: "DeleteOwned", graceSeconds: 60 } });
    world.start(slow);
    const ids: string[] = [];
    for (const name of ["a", "b", "c", "d", "e"]) ids.push(await ready(stage, name, stopped));
    const [a = "", b = ""] = ids;
    const { node, text } = proxmox.cluster.state.guests[a] ?? { node: "", text: "" };
    leaveVolume(proxmox, `vm-${a}-disk-9`, { backing: `${node}:rpool/data` });
    const attached = `${text}scsi5: local-zfs:vm-${a}-disk-9,size=1G\n`;
    proxmox.writeGuestFile(node, Number(a), attached);
    await strip(world, "a");
    await waitForOrphan(world, a);
    await strip(world, "b");
    await waitForOrphan(world, b);
    await until(world, () => !guests(stage).includes(b), longMs);
    assert.ok(!guests(stage).includes(b));
    assert.ok(guests(stage).includes(a), "a person's disk is on it");
  });
});

describe("more orphans than are told", () => {
  it("are said on the Hypervisor, and hide none that a declared machine waits for", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    await configure(world, { orphans: { graceSeconds: 60, sweepSeconds: 60 } });
    for (let id = 20_000; id < 20_510; id += 1) leaveVolume(proxmox, `vm-${id}-disk-0`);
    world.start(slow);
    assert.ok(await until(world, async () => (await sweptCondition(world)) !== "", longMs));
    assert.match(await sweptCondition(world), /^TooManyOrphans 500 Orphans .* 10 more/);
    leaveVolume(proxmox, "vm-200-disk-0");
    await createVm(world.client, "web", { disks, externalId: "200", placement: { node: "pve1" } });
    const blocking = await waitForOrphan(world, "local-zfs:vm-200-disk-0");
    assert.deepEqual(blocking.status?.blocks, ["default/web"]);
  });
});
