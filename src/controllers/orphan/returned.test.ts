import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../../api/index.ts";
import type { Orphan } from "../../api/index.ts";
import type { PveReply } from "../../drivers/proxmox/index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { getVm, isReady, listClaims, until } from "../testing/world.ts";
import {
  configure,
  decide,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  waitForOrphan,
} from "./testing.ts";

const stopped = { powerState: "Stopped" } as const;
/** Law 6 allows a hypervisor half as much again as this in a minute. */
const callsMax = 400;

interface Counted extends SimulatedWorld {
  /** While true, the pool of every node is not mounted. */
  isUnmounted: boolean;
  /** The most calls within one of so many minutes. */
  readonly busiestMinute: (minutes: number) => Promise<number>;
}

/** Calls take no time here, so a loop would never end: beyond the limit none is answered. */
async function open(): Promise<Counted> {
  const calls = new Map<number, number>();
  const watched = { isUnmounted: false };
  const stage: SimulatedWorld = await openProxmox("8.4", {
    between: (request, send) => {
      const minute = Math.floor(stage.world.clock.monotonicMs() / 60_000);
      const times = (calls.get(minute) ?? 0) + 1;
      calls.set(minute, times);
      if (times > 2 * callsMax) return new Promise(() => undefined);
      const isLost = watched.isUnmounted && request.path.endsWith("/local-zfs/content");
      return isLost ? Promise.resolve(unmounted) : send(request);
    },
  });
  const busiestMinute = async (minutes: number): Promise<number> => {
    calls.clear();
    await until(stage.world, () => false, minutes * 60_000);
    return Math.max(...calls.values());
  };
  stage.world.start(slow);
  return Object.assign(watched, stage, { busiestMinute });
}

const unmounted: PveReply = {
  type: "answered",
  status: 500,
  reason: "storage 'local-zfs' is not mounted",
  from: "pve1",
  body: JSON.stringify({ data: null }),
};

/** A request that created the VM arrives once more after the VM was deleted: its id is resting. */
async function returned(stage: SimulatedWorld): Promise<Orphan> {
  const { world, proxmox } = stage;
  await ready(stage, "other", stopped);
  const id = await ready(stage, "web", stopped);
  const { node = "", text = "" } = proxmox.cluster.state.guests[id] ?? {};
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
  assert.ok(await until(world, async () => (await getVm(world.client, "web")) === undefined));
  assert.equal(await stateOf(stage, id), "Quarantined");
  const late = text.split("\n").filter((line) => !/^(scsi\d+|ide\d+|boot):/.test(line));
  proxmox.writeGuestFile(node, Number(id), late.join("\n"));
  return waitForOrphan(world, id);
}

async function stateOf({ world }: SimulatedWorld, id: string): Promise<string | undefined> {
  const claims = await listClaims(world.client);
  return claims.find(({ spec }) => spec.externalId === id)?.spec.state;
}

describe("a VM that is back under an id that rests", () => {
  it("is destroyed when a person decides so, and the hypervisor is not called in a loop", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    const orphan = await returned(stage);
    const { externalId } = orphan.spec;
    await decide(world, orphan, { decision: "Destroy" });
    const calls = await stage.busiestMinute(2);
    assert.ok(calls <= callsMax, `${calls} calls in a minute`);
    assert.equal(proxmox.cluster.state.guests[externalId], undefined, "it is still there");
    assert.equal(reasonOf(await orphanOf(world, externalId)), "Gone");
    assert.equal(await stateOf(stage, externalId), "Quarantined");
  });

  it("is adopted when a person decides so", async () => {
    const stage = await open();
    const { world } = stage;
    const entry = { namespace: "*", adopt: true, externalId: true };
    await configure(world, { allow: [{ ...entry, storages: ["*"], networks: ["*"] }] });
    const orphan = await returned(stage);
    const adoptAs = { namespace: "default", name: "site" };
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    const isThere = async (): Promise<boolean> => isReady(await getVm(world.client, "site"));
    assert.ok(
      await until(world, isThere, longMs),
      JSON.stringify(await getVm(world.client, "site")),
    );
    assert.equal(await stateOf(stage, orphan.spec.externalId), "Bound");
  });
});

describe("an Orphan that asks for another sweep", () => {
  it("waits as long as the sweep that is not complete does", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    await ready(stage, "other", stopped);
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, () => proxmox.cluster.state.guests[id] === undefined);
    stage.isUnmounted = true;
    const calls = await stage.busiestMinute(2);
    assert.ok(calls <= callsMax, `${calls} calls in a minute`);
    stage.isUnmounted = false;
    const isGone = async (): Promise<boolean> => reasonOf(await orphanOf(world, id)) === "Gone";
    assert.ok(await until(world, isGone, longMs));
  });
});
