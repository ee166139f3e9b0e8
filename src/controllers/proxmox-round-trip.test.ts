import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { virtualMachineKind, type WrittenVirtualMachineSpec } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until, type World } from "./testing/world.ts";

type Spec = Partial<WrittenVirtualMachineSpec>;

const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => {
  return fc.option(arbitrary, { nil: undefined });
};

const firmware = fc.oneof(
  fc.constant({ type: "BIOS" as const }),
  fc.record({
    type: fc.constant("UEFI" as const),
    secureBoot: fc.boolean(),
    tpm: fc.constantFrom("None" as const, "V2.0" as const),
  }),
);

const disk = fc.record(
  {
    bus: fc.constantFrom("scsi" as const, "virtio" as const, "sata" as const),
    cache: fc.constantFrom("None" as const, "WriteBack" as const),
    discard: fc.boolean(),
    backup: fc.boolean(),
    ssd: fc.constant(false),
  },
  { requiredKeys: [] },
);

const card = fc.record(
  {
    vlan: fc.integer({ min: 1, max: 4000 }),
    firewall: fc.boolean(),
    connected: fc.boolean(),
    macAddress: fc.constantFrom("bc:24:11:0a:0b:0c", "BC:24:11:0A:0B:0D"),
  },
  { requiredKeys: [] },
);

/** What people may declare, in ways that mean the same and ways that do not. */
const anySpec: fc.Arbitrary<Spec> = fc
  .record({
    cores: fc.integer({ min: 1, max: 8 }),
    memory: fc.constantFrom("512Mi", "1Gi", "1000M"),
    firmware: maybe(firmware),
    root: disk,
    data: maybe(disk),
    card,
    isReversed: fc.boolean(),
    display: maybe(fc.constantFrom("Standard" as const, "Serial" as const, "Virtio" as const)),
    user: maybe(fc.constant({ name: "ada" })),
    tags: maybe(fc.subarray(["b", "a", "c"])),
    hasDrive: fc.boolean(),
    limit: maybe(fc.constantFrom("1", "1500m", "0.5")),
    weight: maybe(fc.integer({ min: 100, max: 5000 })),
    numa: maybe(fc.boolean()),
    minimum: maybe(fc.constantFrom("256Mi", "300M")),
    startup: maybe(fc.record({ order: fc.integer({ min: 0, max: 9 }) })),
    other: maybe(card.filter(({ macAddress }) => macAddress === undefined)),
    bootsFromDrive: fc.boolean(),
    powerState: fc.constantFrom("Running" as const, "Stopped" as const, "Suspended" as const),
    notes: maybe(fc.constantFrom("ours", "two\nlines")),
  })
  .map((said) => {
    const disks = [
      { ...said.root, name: "root", size: "10Gi", storage: "local-zfs" },
      ...(said.data ? [{ ...said.data, name: "data", size: "2048Mi", storage: "local-zfs" }] : []),
    ];
    const spec = {
      cpu: given({ cores: said.cores, limit: said.limit, weight: said.weight, numa: said.numa }),
      memory: given({ size: said.memory, minimum: said.minimum }),
      startup: said.startup,
      bootOrder: said.hasDrive && said.bootsFromDrive ? bootOrder : undefined,
      firmware: said.firmware,
      disks: said.isReversed ? disks.toReversed() : disks,
      networks: [
        { ...said.card, name: "lan", bridge: "vmbr0" },
        ...(said.other ? [{ ...said.other, name: "dmz", bridge: "vmbr0" }] : []),
      ],
      cdroms: said.hasDrive ? [{ name: "cd" }] : undefined,
      devices: said.display ? { display: { type: said.display } } : undefined,
      cloudInit: said.user ? { user: said.user } : undefined,
      tags: said.tags,
      description: said.notes,
      powerState: said.powerState,
    };
    return given(spec);
  });

const bootOrder = [{ cdrom: "cd" }, { disk: "root" }, { network: "lan" }];

/** What is said of it. */
function given(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** The same, said otherwise: order, case, units, and defaults written out. */
function respelled({ disks = [], networks = [], tags, memory, cpu }: Spec): object {
  const sizes: Readonly<Record<string, string>> = { "10Gi": "10240Mi", "2048Mi": "2Gi" };
  return {
    disks: disks.toReversed().map((said) => {
      const defaults = { cache: "None", discard: false, backup: true, readOnly: false };
      const size = said.size === undefined ? {} : { size: sizes[said.size] ?? said.size };
      return { ...defaults, replicate: true, ...said, ...size };
    }),
    networks: networks.map((said) => {
      const { macAddress } = said;
      const isLower = macAddress === macAddress?.toLowerCase();
      const other = isLower ? macAddress?.toUpperCase() : macAddress?.toLowerCase();
      const mac = other === undefined ? {} : { macAddress: other };
      return { connected: true, firewall: false, model: "virtio", ...said, ...mac };
    }),
    ...(tags === undefined ? {} : { tags: tags.toReversed() }),
    memory: {
      ...memory,
      size: memory?.size === "1Gi" ? "1024Mi" : memory?.size,
      ballooning: true,
    },
    cpu: { numa: false, ...cpu, sockets: 1 },
    deletionProtection: false,
    startOnBoot: true,
  };
}

function writesOf(requests: readonly PveRequest[]): PveRequest[] {
  return requests.filter(({ method }) => method !== "GET");
}

describe("what was applied", () => {
  for (const release of ["7.4", "8.4", "9.2"] as const) {
    it(`has an empty plan when it is seen again, and when it is said otherwise, on ${release}`, async () => {
      await fc.assert(
        fc.asyncProperty(anySpec, async (spec) => {
          const stage = await openProxmox(release);
          const { world, requests } = stage;
          const berth = world.start();
          // Before 8.4 no image file can be brought in.
          const source = release === "7.4" ? { source: { blank: {} } } : {};
          await createVm(world.client, "web", { ...spec, ...source });
          await until(world, async () => {
            const vm = await getVm(world.client, "web");
            return isReady(vm) && condition(vm, "Synced") === "True Succeeded";
          });
          const vm = await getVm(world.client, "web");
          assert.equal(condition(vm, "Ready"), "True Succeeded", JSON.stringify(vm?.status));
          assert.equal(condition(vm, "Synced"), "True Succeeded", JSON.stringify(vm?.status));
          requests.length = 0;
          await until(world, () => false, 900_000);
          assert.deepEqual(writesOf(requests), []);
          const at = { namespace: "default", name: "web" };
          const merge = { spec: respelled(spec) };
          const { metadata } = await world.client.of(virtualMachineKind).patch(at, { merge });
          const isSeen = await until(world, async () => {
            const { observedGeneration } = (await getVm(world.client, "web"))?.status ?? {};
            return observedGeneration === metadata.generation;
          });
          assert.ok(isSeen);
          await until(world, () => false, 60_000);
          const again = await getVm(world.client, "web");
          assert.equal(condition(again, "Synced"), "True Succeeded", JSON.stringify(again?.status));
          assert.deepEqual(writesOf(requests), []);
          berth.crash();
        }),
        { numRuns: 12, seed: 7 },
      );
    });
  }
});

describe("what is declared instead", () => {
  for (const release of ["7.4", "9.2"] as const) {
    it(`is what the machine becomes, on ${release}, and then rests`, async () => {
      await fc.assert(
        fc.asyncProperty(anySpec, anySpec, async (first, second) => {
          const { world, requests } = await openProxmox(release);
          const berth = world.start();
          const source = { source: { blank: {} }, updatePolicy: "PowerOff" } as const;
          await createVm(world.client, "web", { ...first, ...source, shutdown });
          const before = await isSynced(world);
          assert.equal(before, "", `made: ${before}`);
          // Firmware and the first boot's data cannot be changed in place.
          const { firmware: _firmware, cloudInit: _cloudInit, ...changed } = second;
          const gone = Object.keys(first).filter((key) => !(key in second) && !fixed.has(key));
          // What is suspended keeps its form until it goes on.
          const { powerState } = second;
          const wakes = powerState === "Suspended" ? { powerState: "Running" } : {};
          const nothing = Object.fromEntries(gone.map((key) => [key, null]));
          const spec = { ...changed, ...nothing, ...wakes };
          const at = { namespace: "default", name: "web" };
          await world.client.of(virtualMachineKind).patch(at, { merge: { spec } });
          const after = await isSynced(world);
          assert.equal(after, "", `changed: ${after}`);
          requests.length = 0;
          await until(world, () => false, 60_000);
          assert.deepEqual(writesOf(requests), []);
          berth.crash();
        }),
        { numRuns: 6, seed: 11 },
      );
    });
  }
});

const shutdown = { graceSeconds: 1 };
const fixed: ReadonlySet<string> = new Set(["firmware", "cloudInit"]);

/** Nothing when the machine is as declared; else what it says. */
async function isSynced(world: World): Promise<string> {
  const isSo = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    return isReady(vm) && condition(vm, "Synced") === "True Succeeded";
  });
  return isSo ? "" : JSON.stringify((await getVm(world.client, "web"))?.status);
}
