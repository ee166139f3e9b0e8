import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { orphanKind } from "../../api/index.ts";
import type { Orphan } from "../../api/index.ts";
import type { ProxmoxModel } from "../../sim/index.ts";
import { tokenName, tokenUser } from "../../sim/index.ts";
import { eventsOf } from "../testing/events.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "../testing/world.ts";
import {
  configure,
  decide,
  disks,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  waitForOrphan,
} from "./testing.ts";

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

function orphanText(orphan: Orphan | undefined): string {
  return orphan?.status?.conditions?.find(({ type }) => type === "Ready")?.message ?? "";
}

describe("a dead lock on a machine whose object is gone", () => {
  const adoptAs = { namespace: "default", name: "site" };

  async function openLocked(
    options: Parameters<typeof openProxmox>[1],
  ): Promise<{ stage: SimulatedWorld; id: string; orphan: Orphan }> {
    const stage = await openProxmox("8.4", options);
    const { world, proxmox } = stage;
    const entry = { namespace: "*", adopt: true, externalId: true };
    await configure(world, { allow: [{ ...entry, storages: ["*"], networks: ["*"] }] });
    world.start(slow);
    const id = await ready(stage, "web", { powerState: "Stopped" });
    await strip(world, "web");
    leaveLock(proxmox, id);
    return { stage, id, orphan: await waitForOrphan(world, id) };
  }

  it("that somebody else holds is asked about ever more seldom, and its end is seen", async () => {
    const stage = await openProxmox("8.4");
    const { world, proxmox } = stage;
    world.start(slow);
    const id = await ready(stage, "web", { powerState: "Stopped" });
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    leaveLock(proxmox, id, "root@pam");
    const before = stage.requests.length;
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, () => false, 600_000);
    const asked = stage.requests.slice(before).filter(({ path }) => path.includes(`/qemu/${id}/`));
    assert.ok(asked.length <= 45, `${asked.length} times in ten minutes`);
    assert.match(orphanText(await orphanOf(world, id)), /the lock: migrate/);
    proxmox.setLock(Number(id), undefined);
    const isGone = async (): Promise<boolean> => reasonOf(await orphanOf(world, id)) === "Gone";
    assert.ok(await until(world, isGone, 120_000));
  });

  async function toldUnlocks({ world }: SimulatedWorld): Promise<string[]> {
    const told = (await eventsOf(world.client)).filter(({ reason }) => reason === "UnlockUsed");
    return told.map(({ note }) => note);
  }

  it("is cleared with root's own login before the machine is destroyed, and that is told", async () => {
    const { stage, id, orphan } = await openLocked({ unlock });
    const { world, proxmox } = stage;
    await decide(world, orphan, { decision: "Destroy" });
    const isGone = await until(world, async () => reasonOf(await orphanOf(world, id)) === "Gone");
    assert.ok(isGone, JSON.stringify((await orphanOf(world, id))?.status));
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
    const told = await toldUnlocks(stage);
    assert.equal(told.length, 1);
    assert.match(told[0] ?? "", /^Clear the lock \(migrate\) .*:qmigrate:/);
    assert.equal(logins(stage), 1);
  });

  it("is cleared before the machine is adopted", async () => {
    const { stage, orphan } = await openLocked({ unlock });
    const { world } = stage;
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    const isThere = await until(world, async () => isReady(await getVm(world.client, "site")));
    assert.ok(isThere, JSON.stringify(await orphanOf(world, orphan.spec.externalId)));
    assert.equal((await toldUnlocks(stage)).length, 1);
  });

  it("is shown with the command where no account may, and what was decided goes on after it", async () => {
    for (const said of [{ decision: "Destroy" }, { decision: "Adopt", adoptAs }] as const) {
      const { stage, id, orphan } = await openLocked({});
      const { world, proxmox } = stage;
      await decide(world, orphan, said);
      await until(world, async () => reasonOf(await orphanOf(world, id)) === "LockError");
      const { failure } = (await orphanOf(world, id))?.status ?? {};
      assert.match(failure?.remedy ?? "", new RegExp(`as root: qm unlock ${id}$`));
      assert.equal(logins(stage), 0);
      proxmox.setLock(Number(id), undefined);
      const isOver = async (): Promise<boolean> => {
        const now = await orphanOf(world, id);
        return now === undefined || reasonOf(now) === "Gone";
      };
      assert.ok(await until(world, isOver, longMs), said.decision);
    }
  });

  it("that stands there again each time is not cleared for ever", async () => {
    const again: { setLock?: () => void } = {};
    const { stage, id, orphan } = await openLocked({
      unlock,
      between: async (request, send) => {
        const reply = await send(request);
        if (request.method === "PUT" && request.path.endsWith("/config")) again.setLock?.();
        return reply;
      },
    });
    const { world, proxmox } = stage;
    again.setLock = () => proxmox.setLock(Number(id), "migrate");
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, async () => reasonOf(await orphanOf(world, id)) === "LockError");
    assert.equal(reasonOf(await orphanOf(world, id)), "LockError");
    assert.equal(logins(stage), 3);
    // Each sweep wakes it, and the account is not used again before its time.
    await configure(world, { orphans: { sweepSeconds: 60 } });
    await until(world, () => false, 7 * 60_000);
    assert.equal(reasonOf(await orphanOf(world, id)), "LockError");
    assert.equal(logins(stage), 3);
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
