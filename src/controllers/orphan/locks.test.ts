import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { orphanKind } from "../../api/index.ts";
import type { ProxmoxModel } from "../../sim/index.ts";
import { tokenName, tokenUser } from "../../sim/index.ts";
import { eventsOf } from "../testing/events.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "../testing/world.ts";
import { disks, longMs, orphanOf, ready, slow, waitForOrphan } from "./testing.ts";

const unlock = { username: "root@pam", password: "secret" };
const own = `${tokenUser}!${tokenName}`;

/** The power went in the middle of a move: its task is over without a word, its lock is not. */
function leaveLock(model: ProxmoxModel, id: string, user = own): string {
  const { state, clock } = model.cluster;
  const node = state.guests[id]?.node ?? "";
  const startMs = clock.nowMs();
  const start = Math.floor(startMs / 1000)
    .toString(16)
    .toUpperCase()
    .padStart(8, "0");
  const upid = `UPID:${node}:0000BEEF:00ABCDEF:${start}:qmigrate:${id}:${user}:`;
  const task = { upid, node, pid: 0xbeef, pstart: 1, startMs, type: "qmigrate", id, user };
  const end = { endMs: startMs + 5_000, exitStatus: "unexpected status" };
  state.nodes
    .find(({ name }) => name === node)
    ?.tasks.push({ ...task, log: [], warnings: 0, ...end });
  model.setLock(Number(id), "migrate");
  return upid;
}

function lockOf({ proxmox }: SimulatedWorld, id: string): string | undefined {
  return /^lock: (\S+)$/m.exec(proxmox.cluster.state.guests[id]?.text ?? "")?.[1];
}

function logins({ requests }: SimulatedWorld): number {
  return requests.filter(({ path }) => path === "/access/ticket").length;
}

describe("a lock that outlived its task", () => {
  it("is reported with its age, its task, how that ended, and the command", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start(slow);
    const id = await ready(stage, "web");
    const upid = leaveLock(proxmox, id);
    const orphan = await waitForOrphan(world, id);
    assert.equal(orphan.spec.kind, "Lock");
    const evidence = (orphan.status?.evidence ?? []).join(" ");
    assert.match(evidence, /locked \(migrate\) since 2026-\S+, by work of ours that is over/);
    assert.ok(evidence.includes(upid), evidence);
    assert.match(evidence, /it ended at 2026-\S+: unexpected status/);
    assert.match(orphan.status?.command ?? "", new RegExp(`On pve\\d, as root: qm unlock ${id}$`));
    assert.equal(lockOf(stage, id), "migrate");
    assert.equal(logins(stage), 0);
    proxmox.setLock(Number(id), undefined);
    const isOver = await until(
      world,
      async () => (await orphanOf(world, id)) === undefined,
      longMs,
    );
    assert.ok(isOver, "it goes with the lock");
  });

  it("is cleared with root's own login where there is one, and that is told", async () => {
    const stage = await openProxmox("8.4", { unlock });
    const { world, proxmox } = stage;
    world.start(slow);
    const id = await ready(stage, "web");
    leaveLock(proxmox, id);
    const isOpen = await until(world, () => lockOf(stage, id) === undefined, 600_000);
    assert.ok(isOpen, JSON.stringify((await getVm(world.client, "web"))?.status));
    await until(world, async () => isReady(await getVm(world.client, "web")));
    const told = (await eventsOf(world.client)).filter(({ reason }) => reason === "UnlockUsed");
    assert.equal(told.length, 1);
    assert.match(told[0]?.note ?? "", /Clear the lock \(migrate\) .*:qmigrate:/);
    assert.equal(logins(stage), 1);
    assert.deepEqual((await world.client.of(orphanKind).list()).items, []);
  });

  it("is nobody's to break while another holds it, or where nothing proves whose it is", async () => {
    const stage = await openProxmox("8.4", { unlock });
    const { world, proxmox } = stage;
    world.start(slow);
    const id = await ready(stage, "web");
    leaveLock(proxmox, id, "root@pam");
    await until(world, () => false, longMs);
    assert.equal(lockOf(stage, id), "migrate");
    assert.equal(logins(stage), 0);
    assert.equal(await orphanOf(world, id), undefined);
  });
});

describe("an empty reservation that outlived its task", () => {
  const chosen = { disks, externalId: "200", placement: { node: "pve1" } };

  /** The worker that creates the machine dies after it has reserved the id. */
  function killCreate(stage: SimulatedWorld): void {
    const { proxmox, world } = stage;
    let isKilled = false;
    const look = (): void => {
      const tasks = proxmox.cluster.state.nodes.flatMap((node) => node.tasks);
      const task = tasks.find(({ type, endMs }) => type === "qmcreate" && endMs === undefined);
      if (task !== undefined && lockOf(stage, task.id) === "create") {
        isKilled = proxmox.killWorker(task.upid);
      }
      if (!isKilled) world.clock.after(5, look);
    };
    look();
  }

  it("stalls an id that a person chose, with the command that removes it", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start(slow);
    killCreate(stage);
    await createVm(world.client, "web", chosen);
    await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
    const vm = await getVm(world.client, "web");
    assert.equal(condition(vm, "Stalled"), "True LockError");
    assert.match(vm?.status?.failure?.remedy ?? "", /qm unlock 200 && qm destroy 200 --purge/);
  });

  it("is cleared where root's login is there, and the machine is made under its id", async () => {
    const stage = await openProxmox("8.4", { unlock });
    const { world } = stage;
    world.start(slow);
    killCreate(stage);
    await createVm(world.client, "web", chosen);
    const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
    const vm = await getVm(world.client, "web");
    assert.ok(isThere, JSON.stringify(vm?.status));
    assert.equal(vm?.status?.externalId, "200");
    const told = (await eventsOf(world.client)).filter(({ reason }) => reason === "UnlockUsed");
    assert.equal(told.length, 1);
  });

  it("is an Orphan of ours with the command, where Berth went on under another id", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    world.start(slow);
    killCreate(stage);
    const id = await ready(stage, "web");
    const husk = Object.keys(proxmox.cluster.state.guests).find((other) => other !== id) ?? "";
    const orphan = await waitForOrphan(world, husk);
    assert.equal(orphan.spec.kind, "Husk");
    assert.equal(orphan.status?.ownership, "Ours");
    assert.deepEqual(orphan.status?.allowedDecisions, ["Keep"]);
    assert.match(orphan.status?.command ?? "", new RegExp(`qm destroy ${husk} --purge`));
  });
});
