import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Orphan } from "../../api/index.ts";
import type { PveReply, PveRequest } from "../../drivers/proxmox/index.ts";
import { forgetLease } from "../index.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "../testing/simulated-proxmox.ts";
import { until, type Incarnation } from "../testing/world.ts";
import {
  configure,
  decide,
  leaveVolume,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

const minuteMs = 60_000;
const disk = "local-zfs:vm-200-disk-0";
const sweeps = { orphans: { graceSeconds: 60, sweepSeconds: 60 } };

interface Stage extends SimulatedWorld {
  readonly id: string;
  readonly first: Incarnation;
  readonly now: () => Promise<Orphan | undefined>;
}

type Between = NonNullable<StageOptions["between"]>;

/** A volume that nothing refers to, reported, with a sweep each minute. */
async function openVolume(between: Between): Promise<Stage> {
  const stage = await openProxmox("8.4", { between });
  leaveVolume(stage.proxmox, "vm-200-disk-0");
  await configure(stage.world, sweeps);
  const first = stage.world.start(slow);
  await waitForOrphan(stage.world, disk);
  return { ...stage, id: disk, first, now: () => orphanOf(stage.world, disk) };
}

/** A VM that runs no more and that nothing declares, reported. */
async function openVm(between: Between): Promise<Stage> {
  const stage = await openProxmox("8.4", { between });
  await configure(stage.world, sweeps);
  const first = stage.world.start(slow);
  const id = await ready(stage, "web", { powerState: "Stopped" });
  await ready(stage, "b", { powerState: "Stopped" });
  await strip(stage.world, "web");
  await waitForOrphan(stage.world, id);
  return { ...stage, id, first, now: () => orphanOf(stage.world, id) };
}

async function destroy({ world, now }: Stage): Promise<void> {
  const orphan = await now();
  assert.ok(orphan);
  await decide(world, orphan, { decision: "Destroy" });
}

function pass({ world }: SimulatedWorld, ms: number): Promise<boolean> {
  return until(world, () => false, ms);
}

function deletes({ requests }: SimulatedWorld): PveRequest[] {
  return requests.filter(isDestruction);
}

/** Of a VM or of a volume. Others are deleted too: the pool of an earlier epoch, for one. */
function isDestruction({ method, path }: PveRequest): boolean {
  return method === "DELETE" && /^\/nodes\/[^/]+\/(?:qemu|storage\/[^/]+\/content)\//.test(path);
}

async function restart({ world }: SimulatedWorld, running: Incarnation): Promise<Incarnation> {
  running.crash();
  await forgetLease(world.client);
  return world.start(slow);
}

async function isGone({ now }: Stage): Promise<boolean> {
  return reasonOf(await now()) === "Gone";
}

/** What the simulated hypervisor was really asked to destroy. */
interface Arrived {
  readonly atMs: number[];
  times: number;
}

/** The reply to the first destruction is lost: it is begun, or its request never arrives. */
function losing(isBegun: boolean, arrived: Arrived, nowMs: () => number): Between {
  let isLost = false;
  return async (request, send) => {
    if (!isDestruction(request)) return send(request);
    arrived.atMs.push(nowMs());
    const isFirst = !isLost;
    isLost = true;
    if (isFirst && !isBegun) return { type: "lost", detail: "no reply" };
    arrived.times += 1;
    const reply = await send(request);
    return isFirst ? { type: "lost", detail: "no reply" } : reply;
  };
}

describe("a destruction whose reply is lost, with a restart in between", () => {
  for (const [what, open] of Object.entries({ volume: openVolume, VM: openVm })) {
    for (const isBegun of [true, false]) {
      const how = isBegun ? "was begun" : "never arrived";
      it(`of a ${what} destroys it once where it ${how}`, async () => {
        const arrived: Arrived = { atMs: [], times: 0 };
        const clock = { nowMs: (): number => 0 };
        const stage = await open(losing(isBegun, arrived, () => clock.nowMs()));
        const { world, proxmox, id } = stage;
        clock.nowMs = () => world.clock.nowMs();
        await destroy(stage);
        assert.ok(await until(world, () => arrived.atMs.length > 0));
        await restart(stage, stage.first);
        assert.ok(
          await until(world, () => isGone(stage)),
          JSON.stringify((await stage.now())?.status),
        );
        assert.equal(arrived.times, 1);
        assert.ok(!volumeNames(proxmox).includes("vm-200-disk-0"));
        assert.equal(proxmox.cluster.state.guests[id], undefined);
        const [firstMs = 0, secondMs = Infinity] = arrived.atMs;
        assert.ok(secondMs - firstMs >= minuteMs, "not repeated while it may still take effect");
      });
    }
  }
});

function refusing(status: number, reason: string): Between {
  const reply: PveReply = { type: "answered", status, reason, body: "", from: "pve1" };
  return async (request, send) => (isDestruction(request) ? reply : send(request));
}

/** How often at most in ten minutes, by the table of categories. */
const troubles: Readonly<Record<string, { between: Between; most: number; category?: string }>> = {
  "is full": {
    between: refusing(500, "cannot write: No space left on device"),
    most: 5,
    category: "QuotaExceeded",
  },
  "is locked": {
    between: refusing(500, "can't lock file '/var/lock/pve-manager/x' - got timeout"),
    most: 15,
  },
  "may not be asked": {
    between: refusing(403, "Permission check failed (/storage/local-zfs, Datastore.Allocate)"),
    most: 2,
    category: "PermissionDenied",
  },
  "fails each time": {
    between: refusing(500, "some error"),
    most: 5,
    category: "CreationFailed",
  },
  "says that something changed": {
    between: refusing(500, "checksum mismatch (file change by other user?)"),
    most: 16,
  },
};

function writesOf({ world }: SimulatedWorld): number {
  return world.statusWrites.filter((path) => path.includes("/orphans/")).length;
}

describe("a hypervisor that does not destroy, for ten minutes", () => {
  for (const [what, { between, most, category }] of Object.entries(troubles)) {
    it(`because it ${what}, is asked as often as the table says`, async () => {
      const stage = await openVolume(between);
      const before = { writes: writesOf(stage), requests: stage.requests.length };
      await destroy(stage);
      await pass(stage, 10 * minuteMs);
      const times = deletes(stage).length;
      const told = JSON.stringify((await stage.now())?.status);
      assert.ok(times >= 1 && times <= most, `${times} times in ten minutes: ${told}`);
      const writes = writesOf(stage) - before.writes;
      assert.ok(writes <= 2 * times + 2, `${writes} status writes for ${times} requests`);
      assert.equal((await stage.now())?.status?.failure?.category, category, told);
      assert.deepEqual(volumeNames(stage.proxmox), ["vm-200-disk-0"]);
    });
  }

  it("is not asked any more after the last attempt, however often it is swept", async () => {
    const stage = await openVolume(refusing(500, "some error"));
    await destroy(stage);
    await pass(stage, 60 * minuteMs);
    assert.equal(deletes(stage).length, 5);
    const { conditions = [], failure } = (await stage.now())?.status ?? {};
    assert.equal(failure?.attempts, 5);
    assert.equal(conditions.find(({ type }) => type === "Stalled")?.status, "True");
  });

  it("is seen to have lost the thing meanwhile: then nothing waits for the retry", async () => {
    const stage = await openVolume(refusing(500, "some error"));
    await destroy(stage);
    await pass(stage, 20 * minuteMs);
    stage.proxmox.cluster.state.volumes["pve1:rpool/data"] = [];
    const isOver = async (): Promise<boolean> => (await stage.now()) === undefined;
    assert.ok(await until(stage.world, isOver, 5 * minuteMs));
  });
});

describe("a restart", () => {
  for (const what of ["is full", "fails each time", "may not be asked"]) {
    it(`brings no retry forward where the hypervisor ${what}`, async () => {
      const { between } = troubles[what] ?? {};
      assert.ok(between);
      const stage = await openVolume(between);
      const { world } = stage;
      await destroy(stage);
      const failureOf = async () => (await stage.now())?.status?.failure;
      const least = what === "may not be asked" ? 1 : 3;
      assert.ok(await until(world, async () => ((await failureOf())?.attempts ?? 0) >= least));
      const before = deletes(stage).length;
      const retryMs = Date.parse((await failureOf())?.nextRetryAt ?? "");
      let running = stage.first;
      while (world.clock.nowMs() + 20_000 < retryMs) {
        running = await restart(stage, running);
        await pass(stage, 20_000);
      }
      assert.equal(deletes(stage).length, before);
      await pass(stage, 3 * minuteMs);
      assert.equal(deletes(stage).length, before + 1, "and it is tried when its time has come");
      assert.ok(((await failureOf())?.attempts ?? 0) > least, "counted on");
    });
  }

  it("sends nothing before its time where a lock is in the way, and counts no failure", async () => {
    const { between } = troubles["is locked"] ?? {};
    assert.ok(between);
    const stage = await openVolume(between);
    const { world } = stage;
    await destroy(stage);
    // From then on a minute passes between two requests.
    assert.ok(await until(world, () => deletes(stage).length === 7));
    let running = stage.first;
    for (let times = 0; times < 3; times += 1) {
      running = await restart(stage, running);
      await pass(stage, 15_000);
      assert.equal(deletes(stage).length, 7);
    }
    await pass(stage, minuteMs);
    assert.equal(deletes(stage).length, 8);
    assert.equal((await stage.now())?.status?.failure, undefined);
  });

  it("does not prolong the time for which a destroyed thing is reported", async () => {
    const stage = await openVolume(async (request, send) => send(request));
    const { world } = stage;
    await destroy(stage);
    assert.ok(await until(world, () => isGone(stage)));
    let running = stage.first;
    for (let times = 0; times < 3; times += 1) {
      await pass(stage, 20 * minuteMs - 5_000);
      running = await restart(stage, running);
    }
    await pass(stage, minuteMs);
    assert.equal(await stage.now(), undefined);
  });
});
