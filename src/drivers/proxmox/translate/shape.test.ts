import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  type NewDisk,
  type Shape,
  shapeDifferences,
  writeMark,
} from "../../../hypervisor/index.ts";
import { claim } from "../fixture.ts";
import { fitShape } from "../fit.ts";
import { diskValue } from "../operations/add-disk.ts";
import { createParameters } from "../operations/create.ts";
import { markFor } from "../operations/standing.ts";
import { parseRelease } from "../release.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { changedValues, parseConfig } from "./config.ts";
import { readMachine } from "./machine.ts";
import { firmwareVolumes } from "./firmware.ts";
import { writeShape } from "./shape.ts";
import { anyDevices, anyShape as plainShape } from "./testing/shapes.ts";

const anyShape: fc.Arbitrary<Shape> = fc
  .tuple(plainShape, anyDevices)
  .map(([shape, devices]) => ({ ...shape, ...devices }));

const around = {
  externalId: claim.externalId,
  node: "pve1",
  power: "Stopped",
  pendingKeys: [],
  leavingDrives: [],
} as const;

const newest = { text: "9.2.11", major: 9, minor: 2 };

/** What the server makes of a request: disks get volumes, cards get addresses. */
function stored(shape: Shape): Record<string, string> {
  const made = createParameters({ claim, shape });
  assert("params" in made, JSON.stringify(made));
  const text = Object.entries(made.params).map(([key, value]) => [key, String(value)] as const);
  const values: Record<string, string> = Object.fromEntries(text);
  for (const disk of shape.disks ?? []) {
    const slot = slotOf(values, disk.name);
    const asked: NewDisk = {
      ...disk,
      storage: "zfs",
      sizeBytes: 1024 ** 3,
      fill: { from: "blank" },
    };
    values[slot] = diskValue(asked, "").replace("zfs:1", `zfs:vm-1-${slot}`).concat(",size=1G");
  }
  const volumes = firmwareVolumes(shape.firmware ?? {}, values, "zfs");
  for (const [slot, value] of Object.entries(volumes)) {
    values[slot] = value.replace("zfs:1", `zfs:vm-1-${slot}`).concat(",size=4M");
  }
  for (const [key, value] of Object.entries(values)) {
    if (!/^net\d+$/.test(key)) continue;
    values[key] = value.replace(/^(\w+)(,|$)/, "$1=BC:24:11:00:00:01$2");
  }
  return values;
}

function slotOf(values: Record<string, string>, name: string): string {
  const mark = readMachine({ digest: "d", values }, around).mark;
  const slot = mark?.disks[name];
  assert(slot !== undefined, `no slot for ${name}`);
  return slot;
}

describe("translation", () => {
  it("shows what was applied, for every shape that fits", () => {
    fc.assert(
      fc.property(anyShape, (wanted) => {
        const { shape, refusals } = fitShape(wanted, newest);
        fc.pre(refusals.length === 0);
        const { bootOrder, ...applied } = shape;
        const seen = readMachine({ digest: "d", values: stored(applied) }, around);
        assert.deepEqual(shapeDifferences(applied, seen.shape), []);
        assert(bootOrder === undefined || Array.isArray(bootOrder));
      }),
    );
  });

  it("has nothing to write for a shape that was applied", () => {
    fc.assert(
      fc.property(anyShape, (wanted) => {
        const { shape, refusals } = fitShape(wanted, newest);
        fc.pre(refusals.length === 0);
        const { bootOrder: _, cloudInit: __, ...applied } = shape;
        const values = stored(applied);
        const { mark } = readMachine({ digest: "d", values }, around);
        assert(mark !== undefined);
        const change = writeShape(applied, mark, values);
        const after = changedValues(values, change);
        assert.deepEqual(sorted(after), sorted(values));
      }),
    );
  });

  it("fits a shape once and for all", () => {
    fc.assert(
      fc.property(anyShape, (wanted) => {
        const once = fitShape(wanted, newest);
        fc.pre(once.refusals.length === 0);
        assert.deepEqual(fitShape(once.shape, newest).shape, once.shape);
      }),
    );
  });

  it("finds no difference in the case of an address, the order of options or a default", () => {
    const mark = markFor(claim, { disks: { root: "scsi0" }, networks: { lan: "net0" } });
    const values = {
      description: writeMark("", mark),
      scsi0: "zfs:vm-1-disk-0,size=32G,discard=on,cache=writeback,backup=1",
      net0: "bridge=vmbr0,tag=7,virtio=bc:24:11:AA:bb:01,firewall=0",
      memory: "current=2048",
      tags: "b; a,B",
    };
    const seen = readMachine({ digest: "d", values }, around).shape;
    const wanted = fitShape(
      {
        disks: [{ name: "root", cache: "WriteBack", discard: true, backup: true, ssd: false }],
        networks: [
          {
            name: "lan",
            network: "vmbr0",
            vlan: 7,
            macAddress: "BC:24:11:aa:BB:01",
            firewall: false,
          },
        ],
        memory: { sizeBytes: 2 * 1024 ** 3, ballooning: true },
        cpu: { cores: 1, sockets: 1, limitMillicores: 0, numa: false },
        tags: ["a", "b"],
        startOnBoot: false,
      },
      newest,
    );
    assert.deepEqual(shapeDifferences(wanted.shape, seen), []);
  });

  it("keeps options that nobody declared, and the address that the server chose", () => {
    const slots = { disks: { root: "scsi0" }, networks: { lan: "net0" } };
    const current = {
      scsi0: "zfs:vm-1-disk-0,detect_zeroes=0,iothread=1,size=32G",
      net0: "virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=5",
      agent: "1,fstrim_cloned_disks=1",
    };
    const { set } = writeShape(
      {
        disks: [{ name: "root", ssd: true, ioThread: false }],
        networks: [{ name: "lan", network: "vmbr1" }],
        guestAgent: false,
      },
      slots,
      current,
    );
    assert.equal(set["scsi0"], "zfs:vm-1-disk-0,detect_zeroes=0,size=32G,ssd=1");
    assert.equal(set["net0"], "virtio=BC:24:11:00:00:01,bridge=vmbr1,tag=5");
    assert.equal(set["agent"], "0,fstrim_cloned_disks=1");
  });

  it("accounts for every volume, of whatever kind", () => {
    const values = {
      scsi0: "zfs:vm-1000101-disk-0,size=8G",
      scsi1: "nfs:77/vm-77-disk-3.qcow2,size=1G",
      efidisk0: "zfs:vm-1000101-disk-1,size=1M",
      tpmstate0: "zfs:vm-1000101-disk-2,size=4M,version=v2.0",
      ide2: "zfs:vm-1000101-cloudinit,media=cdrom",
      ide0: "local:iso/debian.iso,media=cdrom",
      sata0: "none,media=cdrom",
      unused0: "zfs:vm-1000101-disk-9",
      vmstate: "zfs:vm-1000101-state-suspend-2026",
    };
    const leaving = [["virtio0", "zfs:vm-1000101-disk-5,size=2G"]] as const;
    const machine = readMachine({ digest: "d", values }, { ...around, leavingDrives: leaving });
    const found = machine.volumes
      .toSorted((a, b) => a.id.localeCompare(b.id))
      .map(({ id, role, state, isOwn }) => [id, role, state, isOwn]);
    assert.deepEqual(found, [
      ["nfs:77/vm-77-disk-3.qcow2", "Disk", "Attached", false],
      ["zfs:vm-1000101-cloudinit", "CloudInit", "Attached", true],
      ["zfs:vm-1000101-disk-0", "Disk", "Attached", true],
      ["zfs:vm-1000101-disk-1", "Firmware", "Attached", true],
      ["zfs:vm-1000101-disk-2", "TPM", "Attached", true],
      ["zfs:vm-1000101-disk-5", "Disk", "Attached", true],
      ["zfs:vm-1000101-disk-9", "Disk", "Detached", true],
      ["zfs:vm-1000101-state-suspend-2026", "State", "Attached", true],
    ]);
    assert.deepEqual(
      machine.disks.map(({ slot }) => slot),
      ["scsi0", "scsi1"],
    );
  });

  it("takes no disk for saved memory or a cloud-init drive because of its name", () => {
    const values = {
      scsi8: "zfs:vm-1000101-cloudinit,size=50G",
      scsi9: "zfs:vm-1000101-state-archive,size=50G",
      unused0: "zfs:vm-1000101-state-old",
    };
    const machine = readMachine({ digest: "d", values }, around);
    assert.deepEqual(new Set(machine.volumes.map(({ role }) => role)), new Set(["Disk"]));
    assert.equal(machine.cloudInitDrive, undefined);
    assert.deepEqual(
      machine.disks.map(({ slot }) => slot),
      ["scsi8", "scsi9"],
    );
  });

  it("waits for no restart because of what stood beside a saved memory", () => {
    const pendingKeys = ["runningcpu", "runningmachine", "memory"];
    const machine = readMachine({ digest: "d", values: {} }, { ...around, pendingKeys });
    assert.deepEqual(machine.pending, ["memory.sizeBytes"]);
  });

  it("takes numbers and texts of a config alike", () => {
    const config = parseConfig({ digest: "d", memory: 512, cores: "2", extra: null });
    assert.deepEqual(config, { digest: "d", values: { memory: "512", cores: "2" } });
    assert.equal(parseConfig({ memory: 512 }), undefined);
  });

  it("writes the seed of a guest as Proxmox wants it", () => {
    const { set } = writeShape(
      {
        cloudInit: {
          userName: "ada",
          sshKeys: ["ssh-ed25519 AAAA+/= ada@x"],
          dnsServers: ["10.0.0.1", "10.0.0.2"],
          addresses: [
            {
              network: "lan",
              ipv4: { address: "10.0.0.5/24", gateway: "10.0.0.1" },
              ipv6: { address: "auto" },
            },
          ],
        },
      },
      { disks: {}, networks: { lan: "net3" } },
      {},
    );
    assert.equal(set["sshkeys"], "ssh-ed25519%20AAAA%2B%2F%3D%20ada%40x");
    assert.equal(set["ipconfig3"], "ip=10.0.0.5/24,gw=10.0.0.1,ip6=auto");
    assert.equal(set["nameserver"], "10.0.0.1 10.0.0.2");
  });

  it("refuses what Proxmox has no way to do, each with its field", () => {
    const release = parseRelease("7.4-20");
    assert(release !== undefined);
    const { refusals } = fitShape(
      {
        name: "bad name",
        cpu: { model: "x86-64-v2-AES" },
        disks: [
          { name: "a", bus: "nvme" },
          { name: "b", bus: "virtio", ssd: true },
          { name: "c", bus: "ide", ioThread: true },
        ],
        networks: [{ name: "n", model: "e1000", mtu: 9000 }],
        scsiController: "BusLogic",
        cloudInit: { passwordHash: "$y$j9T$abc$def", upgradePackages: true },
      },
      release,
    );
    const fields = refusals.map(({ message }) => message.split(":")[0]);
    assert.deepEqual(fields, [
      "machineName",
      "disks[a]",
      "disks[b]",
      "disks[c]",
      "networks[n]",
      "devices.scsiController",
      "cloudInit.user.passwordHash",
      "cloudInit.upgradePackages",
      "cpu.model",
    ]);
  });

  it("never puts a disk where the seed's drive goes", () => {
    const disks = ["a", "b", "c"].map((name) => ({ name, bus: "ide" as const }));
    const made = createParameters({ claim, shape: { disks } });
    assert("params" in made);
    const description = String(made.params["description"]);
    const { mark } = readMachine({ digest: "d", values: { description } }, around);
    assert.deepEqual(Object.values(mark?.disks ?? {}), ["ide0", "ide1", "ide3"]);
    const four = createParameters({
      claim,
      shape: { disks: [...disks, { name: "d", bus: "ide" }] },
    });
    assert("category" in four && four.category === "ConfigurationError");
  });

  it("asks for a blank disk of exact size and for a copy of another", () => {
    const disk = { name: "a", storage: "zfs", fill: { from: "blank" } } as const;
    const half = diskValue({ ...disk, sizeBytes: 1536 * 1024 ** 2 }, "");
    assert.equal(half, "zfs:1.5");
    const copy = diskValue(
      { ...disk, format: "qcow2", discard: true, fill: { from: "volume", volume: "x" } },
      "local:import/d.qcow2",
    );
    const options = parseProperties(copy, "file");
    assert.equal(property(options, "file"), "zfs:0");
    assert.equal(property(options, "import-from"), "local:import/d.qcow2");
    assert.equal(property(options, "discard"), "on");
  });
});

function sorted(values: Record<string, string>): [string, string][] {
  return Object.entries(values).toSorted(([a], [b]) => a.localeCompare(b));
}
