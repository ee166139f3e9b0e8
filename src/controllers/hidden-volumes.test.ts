import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { configure } from "./orphan/testing.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const at = { namespace: "default", name: "web" };
const strangers = "vm-310-rescue-2";
const pool = "pve1:rpool/data";
const declared: Partial<WrittenVirtualMachineSpec> = {
  disks: [{ name: "root", size: "3Gi", storage: "local-zfs" }],
  externalId: "310",
  placement: { node: "pve1" },
};

interface Stage extends SimulatedWorld {
  /** Whether the hypervisor answers. */
  away: boolean;
  /** Whether the pool shows what is on it. */
  mount(isMounted: boolean): void;
  failure(): Promise<string | undefined>;
}

/** A VM that waits, because a stranger's volume exists under the id that it was given. */
async function openBlocked(): Promise<Stage> {
  const wire = { isAway: false };
  const simulated = await openProxmox("8.4", {
    between: async (request, send) => {
      return wire.isAway
        ? { type: "notSent", why: "unreachable", detail: "connection refused" }
        : send(request);
    },
  });
  const { world, proxmox } = simulated;
  const { volumes } = proxmox.cluster.state;
  const volume = { name: strangers, content: "images", format: "raw", vmid: 310 } as const;
  const full = [
    ...(volumes[pool] ?? []),
    { ...volume, sizeBytes: 2 ** 30, usedBytes: 0, createdMs: 0 },
  ];
  const stage: Stage = {
    ...simulated,
    get away() {
      return wire.isAway;
    },
    set away(isAway) {
      wire.isAway = isAway;
    },
    mount: (isMounted) => {
      volumes[pool] = isMounted ? full : [];
    },
    failure: async () => (await getVm(world.client, "web"))?.status?.failure?.category,
  };
  stage.mount(true);
  return stage;
}

async function pause({ world }: Stage, isPaused: boolean): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.paused]: isPaused ? "true" : null } } };
  await world.client.of(virtualMachineKind).patch(at, { merge });
}

/** What comes between, and overwrites or clears what the status says of the volume. */
const interruptions: Record<string, (stage: Stage, isEnding: boolean) => Promise<void>> = {
  "the hypervisor is away": async (stage, isEnding) => {
    stage.away = !isEnding;
    if (!isEnding)
      assert.ok(await until(stage.world, async () => (await stage.failure()) === "NetworkError"));
  },
  "the object is paused": async (stage, isEnding) => {
    await pause(stage, !isEnding);
    if (!isEnding)
      assert.ok(await until(stage.world, async () => (await stage.failure()) === undefined));
  },
  "the whole status is lost": async ({ world }, isEnding) => {
    if (isEnding) return;
    const vm = await getVm(world.client, "web");
    assert.ok(vm);
    const { status: _lost, ...rest } = vm;
    await world.client.of(virtualMachineKind).updateStatus(rest);
  },
};

describe("a stranger's volume under the id that was chosen for a VM", () => {
  for (const [what, interrupt] of Object.entries(interruptions)) {
    it(`outlives that ${what}, a restart, and a pool that is mounted late`, async () => {
      const stage = await openBlocked();
      const { world, proxmox } = stage;
      const first = world.start();
      await createVm(world.client, "web", declared);
      assert.ok(await until(world, async () => (await stage.failure()) === "OrphanedVolumes"));
      await interrupt(stage, false);
      first.crash();
      stage.mount(false);
      world.start();
      await interrupt(stage, true);
      await until(world, () => false, 8 * 60_000);
      assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
      stage.mount(true);
      await until(world, () => false, 30 * 60_000);
      assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
      assert.equal(await stage.failure(), "OrphanedVolumes");
      await world.client.of(virtualMachineKind).delete(at);
      assert.ok(await until(world, async () => (await getVm(world.client, "web")) === undefined));
      const left = proxmox.cluster.state.volumes[pool]?.map(({ name }) => name);
      assert.deepEqual(left, [strangers]);
      assert.deepEqual(await listClaims(world.client), [], "nothing was ever sent for it");
    });
  }

  it("is believed to be gone after ten minutes of complete lists, and not by an outage", async () => {
    const stage = await openBlocked();
    const { world, proxmox } = stage;
    world.start();
    await createVm(world.client, "web", declared);
    assert.ok(await until(world, async () => (await stage.failure()) === "OrphanedVolumes"));
    stage.mount(false);
    await until(world, () => false, 2 * 60_000);
    stage.away = true;
    await until(world, () => false, 60 * 60_000);
    stage.away = false;
    await until(world, () => false, 9 * 60_000);
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), [], "nobody looked for an hour");
    const isMade = await until(
      world,
      async () => isReady(await getVm(world.client, "web")),
      3_600_000,
    );
    assert.ok(isMade, JSON.stringify((await getVm(world.client, "web"))?.status));
  });

  it("counts on a storage that the VM does not use, and while that is not mounted", async () => {
    const stage = await openBlocked();
    const { world, proxmox } = stage;
    world.start();
    await createVm(world.client, "web", {
      ...declared,
      disks: [{ name: "root", size: "3Gi", storage: "local" }],
    });
    assert.ok(await until(world, async () => (await stage.failure()) === "OrphanedVolumes"));
    proxmox.cluster.faults.offline.add(pool);
    // An hour of looks, and somebody asks for another try: the pool is away, so it says nothing.
    await until(world, () => false, 60 * 60_000);
    const merge = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
    await world.client.of(virtualMachineKind).patch(at, { merge });
    await until(world, () => false, 60 * 60_000);
    assert.deepEqual(Object.keys(proxmox.cluster.state.guests), []);
    assert.equal(await stage.failure(), "NodeUnhealthy");
    const [claim] = await listClaims(world.client);
    assert.deepEqual(
      claim?.spec.otherVolumes?.map(({ id }) => id),
      [`local-zfs:${strangers}`],
    );
    proxmox.cluster.faults.offline.delete(pool);
    assert.ok(
      await until(world, async () => (await stage.failure()) === "OrphanedVolumes", 3_600_000),
    );
  });
});

const gib = 2 ** 30;
const directory = "pve1:/var/lib/vz";
const dayMs = 24 * 3_600_000;

interface Mounts extends SimulatedWorld {
  /** Whether the stranger's file system is mounted: it hides what was written below it. */
  mount(isMounted: boolean): void;
  /** The sizes of the stranger's volumes, under whatever names. */
  strangers(): number[];
  failure(): Promise<{ category: string; message: string } | undefined>;
}

/** A stranger's disk of a VM 310, on a file system that is mounted into a storage. */
async function openMounts(backing: string, name: string, sizeBytes: number): Promise<Mounts> {
  const simulated = await openProxmox("9.2");
  const { world, proxmox } = simulated;
  const allow = [{ namespace: "*", externalId: true, storages: ["*"], networks: ["*"] }];
  await configure(world, { allow });
  const { volumes } = proxmox.cluster.state;
  const createdMs = world.clock.nowMs() - 90 * dayMs;
  const other = { name, content: "images", format: "raw", vmid: 310 } as const;
  const strange = { ...other, sizeBytes, usedBytes: 0, createdMs };
  const isStrange = (volume: object): boolean => volume === strange;
  return {
    ...simulated,
    mount: (isMounted) => {
      const rest = (volumes[backing] ?? []).filter(({ vmid }) => vmid !== 310 || !isMounted);
      volumes[backing] = isMounted ? [...rest, strange] : rest.filter((one) => !isStrange(one));
    },
    strangers: () => {
      const all = Object.values(volumes).flatMap((list) => list ?? []);
      return all.filter((one) => one.createdMs === createdMs).map((one) => one.sizeBytes);
    },
    failure: async () => (await getVm(world.client, "web"))?.status?.failure,
  };
}

const onDirectory: Partial<WrittenVirtualMachineSpec> = {
  ...declared,
  disks: [{ name: "root", size: "10Gi", storage: "local", format: "raw" }],
  networks: [],
  powerState: "Stopped",
};

describe("a stranger's volume that was not mounted when the VM was created", () => {
  for (const size of [7, 10, 50]) {
    it(`is not destroyed with the VM that has its name now, with ${size} GiB`, async () => {
      const mounts = await openMounts(directory, "310/vm-310-disk-0.raw", size * gib);
      const { world } = mounts;
      world.start();
      await createVm(world.client, "web", onDirectory);
      assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
      mounts.mount(true);
      await world.client.of(virtualMachineKind).delete(at);
      const isTold = await until(
        world,
        async () => (await mounts.failure())?.category === "IdentityConflict",
      );
      assert.ok(isTold, JSON.stringify(await mounts.failure()));
      const told = (await mounts.failure())?.message ?? "";
      assert.match(told, /local:310\/vm-310-disk-0\.raw of the disk root is not the one/);
      await until(world, () => false, 600_000);
      assert.deepEqual(mounts.strangers(), [size * gib]);
      assert.ok(await getVm(world.client, "web"), "the deletion stalls");
    });
  }

  it("is transferred to a disk-holder VM where the person has it kept", async () => {
    const mounts = await openMounts(directory, "310/vm-310-disk-0.raw", 10 * gib);
    const { world, proxmox } = mounts;
    world.start();
    await createVm(world.client, "web", onDirectory);
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    mounts.mount(true);
    await world.client.of(virtualMachineKind).delete(at);
    assert.ok(await until(world, async () => (await mounts.failure()) !== undefined));
    const disks =
      onDirectory.disks?.map((disk) => ({ ...disk, onDelete: "Retain" as const })) ?? [];
    await world.client.of(virtualMachineKind).patch(at, { merge: { spec: { disks } } });
    const isGone = async (): Promise<boolean> => (await getVm(world.client, "web")) === undefined;
    assert.ok(await until(world, isGone, 3_600_000), JSON.stringify(await mounts.failure()));
    assert.deepEqual(mounts.strangers(), [10 * gib]);
    assert.equal(Object.keys(proxmox.cluster.state.guests).length, 1);
  });
});

const places = {
  "a directory": { backing: directory, name: "310/vm-310-disk-0.raw", spec: onDirectory },
  "a pool that tells no times": {
    backing: pool,
    name: "vm-310-disk-0",
    spec: {
      ...onDirectory,
      disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
    },
  },
};

describe("a stranger's volume whose name a volume of ours got while it was not mounted", () => {
  for (const [place, { backing, name, spec }] of Object.entries(places)) {
    it(`is transferred with the VM's deletion and never destroyed, on ${place}`, async () => {
      const mounts = await openMounts(backing, name, 10 * gib);
      const { world } = mounts;
      mounts.mount(true);
      world.start();
      await createVm(world.client, "web", spec);
      const isBlocked = async (): Promise<boolean> => {
        return (await mounts.failure())?.category === "OrphanedVolumes";
      };
      assert.ok(await until(world, isBlocked), JSON.stringify(await mounts.failure()));
      mounts.mount(false);
      const isMade = async (): Promise<boolean> => isReady(await getVm(world.client, "web"));
      assert.ok(await until(world, isMade, 3_600_000), JSON.stringify(await mounts.failure()));
      const [claim] = await listClaims(world.client);
      assert.deepEqual(
        claim?.spec.volumes?.map(({ id, proof }) => [id.endsWith(name), proof]),
        [[true, "Followed"]],
      );
      assert.deepEqual(claim?.spec.otherVolumes?.length, 1, "the name is remembered");
      mounts.mount(true);
      await until(world, () => false, 600_000);
      await world.client.of(virtualMachineKind).delete(at);
      const isGone = async (): Promise<boolean> => (await getVm(world.client, "web")) === undefined;
      assert.ok(await until(world, isGone, 3_600_000), JSON.stringify(await mounts.failure()));
      assert.deepEqual(mounts.strangers(), [10 * gib]);
    });
  }
});
