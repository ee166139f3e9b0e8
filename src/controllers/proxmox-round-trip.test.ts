import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

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
    powerState: fc.constantFrom("Running" as const, "Stopped" as const, "Suspended" as const),
    notes: maybe(fc.constantFrom("ours", "two\nlines")),
  })
  .map((said) => {
    const disks = [
      { ...said.root, name: "root", size: "10Gi", storage: "local-zfs" },
      ...(said.data ? [{ ...said.data, name: "data", size: "2048Mi", storage: "local-zfs" }] : []),
    ];
    const spec = {
      cpu: { cores: said.cores },
      memory: { size: said.memory },
      firmware: said.firmware,
      disks: said.isReversed ? disks.toReversed() : disks,
      networks: [{ ...said.card, name: "lan", bridge: "vmbr0" }],
      cdroms: said.hasDrive ? [{ name: "cd" }] : undefined,
      devices: said.display ? { display: { type: said.display } } : undefined,
      cloudInit: said.user ? { user: said.user } : undefined,
      tags: said.tags,
      description: said.notes,
      powerState: said.powerState,
    };
    return Object.fromEntries(Object.entries(spec).filter(([, value]) => value));
  });

describe("what was applied", () => {
  for (const release of ["7.4", "8.4", "9.2"] as const) {
    it(`has an empty plan when it is seen again, on ${release}`, async () => {
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
          const writes = requests.filter(({ method }) => method !== "GET");
          assert.deepEqual(writes, []);
          berth.crash();
        }),
        { numRuns: 12, seed: 7 },
      );
    });
  }
});
