import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { ApiError } from "../kernel/status.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until, type Incarnation } from "./testing/world.ts";

const at = { namespace: "default", name: "web" };
const strangers = "vm-999-disk-0";
const root = { name: "root", size: "4Gi", storage: "local-zfs" };
const kept = { name: "data", size: "2Gi", storage: "local-zfs", onDelete: "Retain" } as const;
const added = { name: "more", size: "1Gi", storage: "local-zfs" };
const declared: Partial<WrittenVirtualMachineSpec> = {
  disks: [root, kept],
  networks: [],
  placement: { node: "pve1" },
  guestAgent: { enabled: false },
  updatePolicy: "PowerOff",
  shutdown: { graceSeconds: 5, force: true },
};
const edit = { cpu: { cores: 3 }, disks: [{ ...root, size: "6Gi" }, kept, added] };

/** What happens to a VM from its creation to its end. */
const phases = ["created", "changed", "deleted"] as const;
type Phase = (typeof phases)[number];

interface Stage extends SimulatedWorld {
  program: Incarnation;
}

async function open(options: StageOptions = {}): Promise<Stage> {
  const simulated = await openProxmox("8.4", options);
  const { volumes } = simulated.proxmox.cluster.state;
  const volume = { name: strangers, content: "images", format: "raw", vmid: 999 } as const;
  volumes["pve1:rpool/data"] = [{ ...volume, sizeBytes: 2 ** 30, usedBytes: 0, createdMs: 0 }];
  return { ...simulated, program: simulated.world.start() };
}

/** Somebody, or a restored backup, takes the whole status away. */
async function loseStatus({ world }: Stage): Promise<void> {
  for (let tries = 0; tries < 5; tries += 1) {
    const vm = await getVm(world.client, "web");
    if (vm === undefined) return;
    const { status: _lost, ...rest } = vm;
    try {
      await world.client.of(virtualMachineKind).updateStatus(rest);
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409) throw error;
    }
  }
}

async function begin({ world }: Stage, phase: Phase): Promise<void> {
  const vms = world.client.of(virtualMachineKind);
  if (phase === "created") await createVm(world.client, "web", declared);
  else if (phase === "changed") await vms.patch(at, { merge: { spec: edit } });
  else await vms.delete(at);
}

/** It is as declared; or gone. */
async function end(stage: Stage, phase: Phase): Promise<void> {
  const { world } = stage;
  const isEnded = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    if (phase === "deleted") return vm === undefined;
    const isApplied = vm?.status?.appliedGeneration === vm?.metadata.generation;
    return isReady(vm) && isApplied && vm?.status?.operation === undefined;
  });
  const { status } = (await getVm(world.client, "web")) ?? {};
  assert.ok(isEnded, JSON.stringify([phase, status, world.log.slice(-8)], undefined, 1));
}

/** Runs the phases up to one, in which the status is lost after so many writes of it. */
async function run(
  phase: Phase,
  after: number,
  isRestarted: boolean,
): Promise<{ readonly stage: Stage; readonly writes: number }> {
  const stage = await open();
  const { world } = stage;
  for (const earlier of phases.slice(0, phases.indexOf(phase))) {
    await begin(stage, earlier);
    await end(stage, earlier);
  }
  const before = world.statusWrites.length;
  await begin(stage, phase);
  const isDue = (): boolean => world.statusWrites.length - before >= after;
  if (after > 0 && (await until(world, isDue, 60_000))) {
    if (isRestarted) stage.program.crash();
    await loseStatus(stage);
    if (isRestarted) stage.program = world.start();
  }
  await end(stage, phase);
  return { stage, writes: world.statusWrites.length - before };
}

/** Laws 1 to 4, by what is there. */
async function check({ world, proxmox, requests }: Stage, phase: Phase): Promise<void> {
  await until(world, () => false, 2 * 60_000);
  const { guests, volumes } = proxmox.cluster.state;
  const claims = (await listClaims(world.client)).map(({ spec }) => spec);
  const made = Object.values(guests).filter(({ text }) => !text.includes('"role":"Keeper"'));
  const names = Object.values(volumes)
    .flatMap((list) => list.filter(({ vmid }) => vmid !== undefined))
    .map(({ name }) => name);
  assert.ok(names.includes(strangers), "a stranger's volume is gone");
  const told = JSON.stringify([Object.keys(guests), names, claims], undefined, 1);
  const held = claims.filter(({ state }) => state === "Bound" || state === "Reserved");
  if (phase === "deleted") {
    assert.deepEqual(held, [], told);
    const holders = claims.filter(
      ({ role, state }) => role === "DiskHolder" && state === "Released",
    );
    assert.deepEqual(
      holders.flatMap(({ volumes: own = [] }) => own.map(({ disk }) => disk)),
      ["data"],
      told,
    );
    assert.equal(names.length, 2, told);
    return;
  }
  assert.equal(made.length, 1, told);
  assert.equal(held.length, 1, told);
  assert.equal(names.length, phase === "created" ? 3 : 4, told);
  const destroyed = requests.filter(({ method }) => method === "DELETE");
  assert.deepEqual(
    destroyed.map(({ path }) => path),
    [],
  );
}

describe("a VM that loses its whole status", () => {
  for (const phase of phases) {
    for (const isRestarted of [false, true]) {
      const when = isRestarted ? "with the process" : "alone";
      it(`while it is being ${phase}, ${when}, at any write of it, is one VM and loses nothing`, async () => {
        const { writes } = await run(phase, 0, false);
        assert.ok(writes >= 3, `${writes}`);
        for (let after = 1; after <= writes; after += 1) {
          const { stage } = await run(phase, after, isRestarted);
          await check(stage, phase);
          stage.program.crash();
        }
      });
    }
  }
});

describe("a VM that loses its status while the request that creates it is on its way", () => {
  it("is not created by a second request, and its id is not given up before the first arrived", async () => {
    const late: (() => Promise<unknown>)[] = [];
    const stage = await open({
      between: async (request, send) => {
        const isCreation = request.method === "POST" && request.path.endsWith("/qemu");
        if (!isCreation) return send(request);
        late.push(() => send(request));
        return { type: "lost", detail: "the connection was reset" };
      },
    });
    const { world, proxmox } = stage;
    await createVm(world.client, "web", { ...declared, externalId: "300" });
    assert.ok(await until(world, () => late.length > 0));
    await loseStatus(stage);
    await until(world, () => false, 10_000);
    const { status } = (await getVm(world.client, "web")) ?? {};
    assert.equal(status?.operation?.step, "Recover", JSON.stringify(status));
    assert.equal(late.length, 1, "the creation was sent a second time");
    await begin(stage, "deleted");
    await until(world, () => false, 20_000);
    for (const arrive of late) void arrive();
    await end(stage, "deleted");
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
    const held = (await listClaims(world.client)).filter(({ spec }) => spec.state !== "Released");
    assert.deepEqual(held, []);
    stage.program.crash();
  });
});
