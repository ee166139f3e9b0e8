import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { releases, type Release } from "../../sim/index.ts";
import { root, Stage, type Spec } from "./testing.ts";

/** Lines of a machine's file that a declaration has to bring about; undefined: there is none. */
type Lines = Readonly<Record<string, RegExp | undefined>>;

interface Field {
  readonly what: string;
  readonly spec: Spec;
  readonly lines: Lines;
  /** A later edit, and what comes of it. */
  readonly edit?: object;
  readonly after?: Lines;
  /** Where a release cannot have it: what it says. */
  readonly refused?: Partial<Record<Release, RegExp>>;
}

const lan = { name: "lan", bridge: "vmbr0" } as const;
const mapping = /not.*resource mappings|no resource mappings/;

/** One line for each part of a machine that nothing else here looks at through the controllers. */
const fields: readonly Field[] = [
  {
    what: "the order of start-up",
    spec: { startup: { order: 3, delaySeconds: 20, stopSeconds: 60 }, startOnBoot: false },
    lines: { startup: /^order=3,up=20,down=60$/, onboot: /^0$/ },
    edit: { startup: { order: 4 }, startOnBoot: true },
    after: { startup: /order=4/, onboot: /^1$/ },
  },
  {
    what: "protection",
    spec: { deletionProtection: true },
    lines: { protection: /^1$/ },
    edit: { deletionProtection: false },
    after: { protection: /^0$|^$/ },
  },
  {
    what: "the order to boot in",
    spec: {
      disks: [root, { name: "data", size: "1Gi", storage: "local-zfs" }],
      cdroms: [{ name: "cd" }],
      bootOrder: [{ cdrom: "cd" }, { disk: "data" }, { network: "lan" }],
    },
    lines: { boot: /^order=sata0;scsi1;net0$/ },
    edit: { bootOrder: [{ disk: "root" }] },
    after: { boot: /^order=scsi0$/ },
  },
  {
    what: "cards with VLAN, MTU, address, firewall and model",
    spec: {
      networks: [
        { ...lan, vlan: 7, mtu: 1400, macAddress: "bc:24:11:00:00:01", firewall: true },
        { name: "dmz", bridge: "vmbr0", model: "e1000", connected: false, trunks: [5, 6] },
        { name: "slow", bridge: "vmbr0", queues: 2, bytesPerSecond: 10 * 2 ** 20 },
      ],
    },
    lines: {
      net0: /^virtio=BC:24:11:00:00:01,(?=.*bridge=vmbr0)(?=.*firewall=1)(?=.*mtu=1400)(?=.*tag=7)/,
      net1: /^e1000=[0-9A-F:]+,(?=.*link_down=1)(?=.*trunks=5;6)/,
      net2: /(?=.*queues=2)(?=.*rate=10)/,
    },
    edit: {
      networks: [
        { ...lan, vlan: 8 },
        { name: "slow", bridge: "vmbr0" },
      ],
    },
    after: { net0: /BC:24:11:00:00:01.*tag=8/, net1: undefined, net2: /queues=2/ },
  },
  {
    what: "limits of cpu, NUMA and ballooning",
    spec: {
      cpu: {
        cores: 2,
        sockets: 2,
        limit: "1.5",
        weight: 200,
        numa: true,
        model: "host",
        features: [{ name: "aes", state: "Enabled" }],
      },
      memory: { size: "4Gi", minimum: "1Gi", weight: 2000 },
    },
    lines: {
      cores: /^2$/,
      sockets: /^2$/,
      cpulimit: /^1\.5$/,
      cpuunits: /^200$/,
      numa: /^1$/,
      cpu: /^host,flags=\+aes$/,
      memory: /^4096$/,
      balloon: /^1024$/,
      shares: /^2000$/,
    },
    edit: { cpu: { limit: 1, numa: false }, memory: { minimum: null, ballooning: false } },
    after: { cpulimit: /^1$/, numa: /^0$/, balloon: /^0$/ },
  },
  {
    what: "UEFI with a TPM on q35",
    spec: { firmware: { type: "UEFI", secureBoot: true, tpm: "V2.0" }, machineType: "q35" },
    lines: {
      bios: /^ovmf$/,
      efidisk0: /^local-zfs:vm-\d+-disk-\d,(?=.*efitype=4m)(?=.*pre-enrolled-keys=1)/,
      tpmstate0: /^local-zfs:vm-\d+-disk-\d,(?=.*version=v2\.0)/,
      machine: /q35/,
    },
  },
  {
    what: "firmware that comes later",
    spec: { firmware: { type: "BIOS" } },
    lines: { efidisk0: undefined },
    edit: { firmware: { type: "UEFI", tpm: "V2.0" } },
    after: { bios: /^ovmf$/, efidisk0: /^local-zfs:/, tpmstate0: /^local-zfs:/ },
  },
  {
    what: "notes that look like something else",
    spec: {
      description: "#1 50% & more; a=b,c\n\n[PENDING]\nlock: backup\n<!-- berth:1 {} -->\nä",
    },
    lines: { lock: undefined },
    edit: { description: "" },
    after: { lock: undefined },
  },
  {
    what: "disks on any bus with all their options",
    spec: {
      disks: [
        { ...root, cache: "WriteBack", discard: true, ioThread: true, ssd: true, backup: false },
        {
          name: "a",
          size: "1Gi",
          storage: "local-zfs",
          bus: "virtio",
          readOnly: true,
          serial: "A1",
        },
        {
          name: "b",
          size: "1Gi",
          storage: "local",
          bus: "sata",
          format: "qcow2",
          replicate: false,
          limits: { readBytesPerSecond: 5 * 2 ** 20, burst: { writeOperationsPerSecond: 500 } },
        },
        { name: "c", size: "1Gi", storage: "shared", bus: "ide", asyncIo: "Threads" },
      ],
    },
    lines: {
      scsi0: /(?=.*cache=writeback)(?=.*discard=on)(?=.*iothread=1)(?=.*ssd=1)(?=.*backup=0)/,
      virtio0: /(?=.*ro=1)(?=.*serial=A1)/,
      sata0: /^local:.*qcow2,(?=.*replicate=0)(?=.*mbps_rd=5)(?=.*iops_wr_max=500)/,
      ide0: /^shared:.*aio=threads/,
    },
    edit: {
      disks: [
        { name: "c", size: "1Gi", storage: "shared", bus: "ide" },
        { ...root, cache: "None", discard: false, ioThread: true, ssd: true, backup: true },
      ],
    },
    after: {
      scsi0: /^(?!.*backup=0)(?!.*discard=on)(?=.*cache=none)/,
      virtio0: undefined,
      sata0: undefined,
    },
  },
  {
    what: "screen, console, agent and words for people",
    spec: {
      devices: { display: { type: "Virtio", memory: "32Mi" }, serialConsole: false },
      guestAgent: { enabled: true, trimAfterClone: true, freezeForBackup: false },
      guestOs: { family: "Windows", version: "11" },
      tags: ["b", "a"],
      description: "two\nlines",
      machineName: "other.example",
    },
    lines: {
      vga: /^virtio,memory=32$/,
      serial0: undefined,
      agent: /^(enabled=)?1,(?=.*fstrim_cloned_disks=1)(?=.*freeze-fs-on-backup=0)/,
      ostype: /^win11$/,
      tags: /^a;b$/,
      name: /^other\.example$/,
    },
    edit: { devices: { serialConsole: true }, tags: [], description: "one" },
    after: { serial0: /^socket$/, tags: /^$/ },
    refused: {},
  },
  {
    what: "devices by resource mapping",
    spec: {
      machineType: "q35",
      devices: {
        pci: [{ name: "gpu", mapping: "gpu", pcie: true, romBar: false }],
        usb: [{ name: "key", mapping: "key" }],
      },
    },
    lines: { hostpci0: /^mapping=gpu,(?=.*pcie=1)(?=.*rombar=0)/, usb0: /^mapping=key,usb3=1$/ },
    edit: { devices: { pci: null } },
    after: { hostpci0: undefined, usb0: /mapping=key/ },
    refused: { "7.4": mapping },
  },
];

function checkLines(stage: Stage, vm: Parameters<Stage["config"]>[0], lines: Lines): void {
  const config = stage.config(vm);
  for (const [key, pattern] of Object.entries(lines)) {
    const line = config[key];
    if (pattern === undefined) assert.equal(line, undefined, key);
    else assert.match(line ?? "", pattern, `${key}: ${line ?? ""}`);
  }
}

async function openWithDevices(release: Release): Promise<Stage> {
  const stage = await Stage.open(release, {
    before: ({ proxmox }) => {
      const { state } = proxmox.cluster;
      const devices = {
        "0000:01:00.0": { kind: "pci", id: "10de:1db6", name: "a card" },
        "1-2": { kind: "usb", id: "1050:0407", name: "a key" },
      } as const;
      for (const node of state.nodes) node.devices = { ...devices };
      const on = (rest: string): string[] => state.nodes.map(({ name }) => `node=${name},${rest}`);
      state.mappings = {
        "pci/gpu": { map: on("path=0000:01:00.0,id=10de:1db6") },
        "usb/key": { map: on("path=1-2,id=1050:0407") },
      };
    },
  });
  await stage.allow({ passthrough: ["gpu", "key"] });
  return stage;
}

describe("what a machine can say", () => {
  for (const release of releases) {
    it(`becomes lines of its file on ${release}, rests, changes with edits, and goes`, async () => {
      const stage = await openWithDevices(release);
      for (const { what, spec, lines, edit, after = {}, refused } of fields) {
        const declared: Spec = { source: { blank: {} }, powerState: "Stopped", ...spec };
        const refusal = refused?.[release];
        if (refusal !== undefined) {
          await stage.declare("web", declared);
          const vm = await stage.failed("web", "APINotSupported");
          assert.match(vm.status?.failure?.message ?? "", refusal, what);
          assert.deepEqual(stage.guests, {}, what);
        } else {
          const made = await stage.make("web", declared);
          checkLines(stage, made, lines);
          await restsAsItIs(stage, what);
          if (edit !== undefined) {
            await stage.edit("web", edit);
            checkLines(stage, await stage.synced("web"), after);
            await restsAsItIs(stage, what);
          }
        }
        await stage.edit("web", { deletionProtection: false });
        await stage.remove("web");
        assert.deepEqual([Object.keys(stage.guests), stage.volumes], [[], []], what);
      }
    });
  }
});

async function restsAsItIs(stage: Stage, what: string): Promise<void> {
  const before = stage.writes.length;
  await stage.pass(20_000);
  assert.deepEqual(stage.writeRequests.slice(before), [], what);
}
