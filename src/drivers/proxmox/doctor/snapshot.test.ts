import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatMark, type Mark } from "../../../hypervisor/index.ts";
import type { Answer } from "../../../hypervisor/index.ts";
import type { JsonObject } from "../../../kernel/json.ts";
import { ProxmoxModel, releases, seededRandom, twinOf } from "../../../sim/index.ts";
import type { ClusterState } from "../../../sim/index.ts";
import { inventoryFormat } from "./cluster-inventory.ts";
import { InventoryError, parseInventory } from "./parse-inventory.ts";
import { publicConfig } from "./public-config.ts";
import { type Clinic, clinicOf, openClinic } from "./testing.ts";

const mark: Mark = {
  state: "Owned",
  installation: "11111111-2222-4333-8444-555555555555",
  owner: { namespace: "prod", name: "web" },
  identity: "5a0f9d3e-6f0e-4c53-9f5e-0a4f5a1b2c3d",
  externalId: "100",
  disks: { root: "scsi0" },
  networks: { lan: "net0" },
};

async function snapshotOf(clinic: Clinic): Promise<JsonObject> {
  const taken: Answer<JsonObject> = await clinic.settle(clinic.doctor().snapshot());
  assert(taken.ok, "the snapshot was taken");
  return taken.value;
}

/** What people have: a template, a linked clone, a pool, a lock, and a backup that takes space. */
function furnish(state: ClusterState): void {
  const volume = { content: "images", createdMs: 0, usedBytes: 1e9, sizeBytes: 4e9 } as const;
  state.volumes["pve1:rpool/data"] = [
    { ...volume, name: "base-100-disk-0", format: "raw", vmid: 100 },
    { ...volume, name: "vm-101-disk-0", format: "raw", vmid: 101, base: "base-100-disk-0" },
  ];
  state.volumes["shared:192.0.2.2:/export/shared"] = [
    { ...volume, name: "102/vm-102-disk-0.qcow2", format: "qcow2", vmid: 102 },
    { ...volume, name: "dump/vzdump-qemu-102.vma", content: "backup", format: "raw" },
  ];
  state.pools = [{ poolid: "web", vms: [101], storages: ["shared"], comment: "a person's" }];
  const nodes = state.nodes.filter(({ name }) => name === "pve2");
  for (const node of nodes) {
    node.bridges = ["vmbr0", "vmbr7"];
    node.machines["102"] = { pid: 7, startedMs: 0, isPaused: false };
  }
  const disk = "local-zfs:base-100-disk-0/vm-101-disk-0,size=4G";
  const guests: readonly (readonly [string, string, string])[] = [
    ["100", "pve1", "name: golden\ntemplate: 1\nscsi0: local-zfs:base-100-disk-0,size=4G\n"],
    ["101", "pve1", `name: web\nscsi0: ${disk}\ntags: prod;web\nlock: backup\n`],
    ["102", "pve2", "name: db\ncores: 4\nmemory: 4096\nscsi0: shared:102/vm-102-disk-0.qcow2\n"],
  ];
  for (const [vmid, node, text] of guests) state.guests[vmid] = { node, text };
}

describe("a snapshot", () => {
  for (const release of releases) {
    it(`of a twin is that of the original, on ${release}`, async () => {
      const original = openClinic({ release, change: furnish });
      const first = await snapshotOf(original);
      const base = openClinic({ release, seed: 5, nodes: ["x"] }).model.cluster.state;
      const state = twinOf(parseInventory(JSON.stringify(first)), base);
      const { clock } = original;
      const twin = new ProxmoxModel({ state, clock, random: seededRandom(9) });
      const second = await snapshotOf(clinicOf(twin, clock));
      assert.deepEqual(second, first);
      assert.equal(JSON.stringify(second), JSON.stringify(first), "to the letter");
    });
  }

  it("knows machines, sizes, pools, bridges, and what takes space without being listed", async () => {
    const { machines, nodes, storages, volumes, pools } = parseInventory(
      JSON.stringify(await snapshotOf(openClinic({ change: furnish }))),
    );
    assert.deepEqual(
      machines.map(({ vmid, node, isRunning, pool }) => [vmid, node, isRunning, pool]),
      [
        [100, "pve1", false, undefined],
        [101, "pve1", false, "web"],
        [102, "pve2", true, undefined],
      ],
    );
    assert.deepEqual(nodes[1]?.bridges, ["vmbr0", "vmbr7"]);
    assert.deepEqual(pools, [{ name: "web", storages: ["shared"] }]);
    const shared = storages.find(({ name }) => name === "shared");
    assert.deepEqual(shared?.spaces, [
      { node: "pve1", totalBytes: 4096 * 1024 ** 3, usedBytes: 2e9 },
    ]);
    const images = volumes.filter(({ content }) => content === "images").map(({ name }) => name);
    assert.deepEqual(images, [
      "base-100-disk-0",
      "base-100-disk-0/vm-101-disk-0",
      "102/vm-102-disk-0.qcow2",
    ]);
  });

  it("can be rehearsed on: a machine that runs there can be stopped", async () => {
    const original = openClinic({ change: furnish });
    const inventory = parseInventory(JSON.stringify(await snapshotOf(original)));
    const { clock } = original;
    const state = twinOf(inventory, openClinic({ seed: 5 }).model.cluster.state);
    const twin = clinicOf(new ProxmoxModel({ state, clock, random: seededRandom(9) }), clock);
    const stop = { method: "POST", path: "/nodes/pve2/qemu/102/status/stop" } as const;
    const reply = await twin.settle(twin.send({ ...stop, mayWrite: () => true }));
    assert(reply.type === "answered" && reply.status === 200, JSON.stringify(reply));
    clock.advance(60_000);
    await twin.settle(Promise.resolve());
    assert.equal(twin.model.cluster.machine(102), undefined);
  });

  it("says what it had to leave out", async () => {
    const clinic = openClinic({ change: furnish });
    clinic.model.crashNode("pve2");
    const { missing, machines } = parseInventory(JSON.stringify(await snapshotOf(clinic)));
    assert.deepEqual(
      machines.map(({ vmid }) => vmid),
      [100, 101],
    );
    assert.match(missing.join("\n"), /VM 102 on pve2: /);
  });
});

describe("a config that others may see", () => {
  const secret = "s3cr3t";
  const private_ = {
    cipassword: secret,
    ciuser: secret,
    sshkeys: secret,
    cicustom: `user=local:snippets/${secret}.yaml`,
    ipconfig0: `ip=${secret}`,
    nameserver: secret,
    searchdomain: secret,
    args: `-device ${secret}`,
    hookscript: `local:snippets/${secret}`,
    hostpci0: secret,
    usb0: `host=${secret}`,
    vmgenid: secret,
    parent: secret,
    serial1: `/dev/${secret}`,
    affinity: secret,
    "some-later-option": secret,
    description: `call ${secret}\n${formatMark(mark)}\nand ${secret}`,
    smbios1: `uuid=${mark.identity},serial=${secret},manufacturer=${secret}`,
    scsi0: `local-zfs:vm-100-disk-0,size=4G,serial=${secret},wwn=${secret},product=${secret}`,
    scsi1: `/dev/disk/by-id/${secret},size=4G`,
    net0: "virtio=BC:24:11:0A:0B:0C,bridge=vmbr0,tag=7",
  };

  it("has no secret, address, serial number or note, and the rest in full", () => {
    const shown = publicConfig({ ...private_, name: "web", cores: "2" }, 100);
    assert.doesNotMatch(JSON.stringify(shown), /s3cr3t|BC:24:11/);
    assert.deepEqual(shown, {
      cores: "2",
      description: formatMark(mark),
      name: "web",
      net0: "virtio=02:00:00:00:64:00,bridge=vmbr0,tag=7",
      scsi0: "local-zfs:vm-100-disk-0,size=4G",
      smbios1: `uuid=${mark.identity}`,
    });
  });

  it("is the same when it is shown again", () => {
    const shown = publicConfig(private_, 100);
    assert.deepEqual(publicConfig(shown, 100), shown);
  });

  it("has none of the options that nobody has judged yet", () => {
    const judged =
      /^(acpi|agent|arch|audio0|balloon|bios|boot|bootdisk|ci(type|upgrade)|cores|cpu.*|freeze|hotplug|hugepages|keephugepages|kvm|localtime|lock|machine|memory|name|numa|onboot|ostype|protection|rng0|scsihw|shares|sockets|startup|tablet|tags|template|vcpus|vga|watchdog|net\d+|(scsi|virtio|sata|ide|unused)\d+|efidisk0|tpmstate0|serial\d+|smbios1|description)$/;
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z]{1,12}\d?$/), (key) => {
        const shown = publicConfig({ [key]: "value" }, 100);
        assert.ok(judged.test(key) || !Object.hasOwn(shown, key), key);
      }),
    );
  });
});

describe("an inventory file", () => {
  const good = {
    format: inventoryFormat,
    version: 1,
    release: "9.2.11",
    cluster: "lab",
    nodes: [{ name: "pve1", isOnline: true, cpus: 4, memoryBytes: 1, bridges: [] }],
    storages: [],
    volumes: [],
    machines: [{ vmid: 100, node: "pve1", isRunning: false, config: { name: "a" } }],
    pools: [],
    missing: [],
  };
  const [machine] = good.machines;
  const bad: readonly (readonly [reason: string, file: unknown, says: RegExp])[] = [
    ["something else", { hello: 1 }, /no inventory: berth doctor --snapshot writes one/],
    ["a list", [], /no inventory/],
    ["of a later version", { ...good, version: 2 }, /version is 2, and this program reads 1/],
    ["without nodes", { ...good, nodes: [] }, /no nodes/],
    ["with half a node", { ...good, nodes: [{ name: "pve1" }] }, /nodes\[0\]\.isOnline must be/],
    ["with a lost machine", { ...good, nodes: [{ ...good.nodes[0], name: "x" }] }, /node pve1/],
    ["with a machine twice", { ...good, machines: [machine, machine] }, /VM 100 is in it twice/],
    [
      "with a line break in a value",
      { ...good, machines: [{ ...machine, config: { name: "a\nlock: x" } }] },
      /machines\[0\]\.config\.name cannot be "a\\nlock: x"/,
    ],
    [
      "with a strange option",
      { ...good, machines: [{ ...machine, config: { "[x]": "1" } }] },
      /machines\[0\]\.config has no option "\[x\]"/,
    ],
    [
      "with an id too low",
      { ...good, machines: [{ ...machine, vmid: 1 }] },
      /vmid must be a number/,
    ],
  ];

  it("is read as it is", () => {
    assert.deepEqual(parseInventory(JSON.stringify(good)), good);
  });

  it("that is cut off is not JSON", () => {
    assert.throws(() => parseInventory(JSON.stringify(good).slice(0, 50)), /it is not JSON/);
  });

  for (const [reason, file, says] of bad) {
    it(`${reason} is refused in one sentence`, () => {
      assert.throws(
        () => parseInventory(JSON.stringify(file)),
        (error: unknown) => {
          assert(error instanceof InventoryError);
          assert.match(error.message, says);
          assert.doesNotMatch(error.message, /\n/);
          return true;
        },
      );
    });
  }

  it("of any JSON is read or refused, and never breaks the program", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(...Object.keys(good)), (value, key) => {
        try {
          parseInventory(JSON.stringify({ ...good, [key]: value }));
        } catch (error) {
          assert(error instanceof InventoryError, String(error));
        }
      }),
    );
  });
});
