import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Begun, type Operation, readMark, writeMark } from "../../../hypervisor/index.ts";
import { claim, data, driverOn, error, open, ScriptedServer, upid } from "../fixture.ts";
import type { PveReply } from "../wire/wire.ts";
import { markFor } from "./standing.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const mark = markFor(claim, { disks: { root: "scsi0", data: "scsi1" }, networks: { lan: "net0" } });

const config = {
  digest: "d1",
  description: writeMark("Ada's", mark),
  smbios1: `uuid=${claim.identity}`,
  memory: "2048",
  scsi0: `zfs:vm-${id}-disk-0,size=8G`,
  net0: "virtio=BC:24:11:00:00:01,bridge=vmbr0",
};

const basis = { node: "pve1", version: "d1" };
const here = { claim, at: basis };
const reads = { [`GET ${at}/config`]: data(config) };
const none = {
  [`GET ${at}/pending`]: data([]),
  [`GET ${at}/snapshot`]: data([{ name: "current" }]),
};

async function begin(
  operation: Operation,
  script: Record<string, PveReply>,
): Promise<{ begun: Begun; server: ScriptedServer }> {
  const server = new ScriptedServer(script);
  return { begun: await driverOn(server).begin(operation, open), server };
}

const allMachineOperations: readonly Operation[] = [
  {
    kind: "addDisk",
    ...here,
    disk: { name: "data", storage: "zfs", sizeBytes: 1024 ** 3, fill: { from: "blank" } },
  },
  { kind: "grow", ...here, disk: "root", sizeBytes: 9 * 1024 ** 3 },
  { kind: "configure", ...here, shape: { memory: { sizeBytes: 4 * 1024 ** 3 } } },
  { kind: "stamp", ...here, disks: [{ name: "more" }], networks: [] },
  { kind: "release", ...here },
  { kind: "powerOn", ...here },
  { kind: "powerOff", ...here, mode: "Graceful" },
  { kind: "powerOff", ...here, mode: "Forced" },
  { kind: "destroy", ...here, volumes: [`zfs:vm-${id}-disk-0`] },
];

describe("every operation on a machine", () => {
  for (const operation of allMachineOperations) {
    const name = operation.kind;
    it(`${name}: does nothing to a machine that is not provably ours`, async () => {
      const stranger = { ...config, description: "mine", smbios1: "uuid=1" };
      const { begun, server } = await begin(operation, { [`GET ${at}/config`]: data(stranger) });
      assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
      assert.deepEqual(server.writes, []);
    });

    it(`${name}: does nothing to a machine that changed since it was seen`, async () => {
      const { begun, server } = await begin(operation, {
        [`GET ${at}/config`]: data({ ...config, digest: "d2" }),
      });
      assert.equal(begun.outcome, "changed");
      assert.deepEqual(server.writes, []);
    });

    it(`${name}: does nothing to a husk or where no machine is`, async () => {
      const husk = data({ digest: "d1", lock: "create" });
      assert.equal(
        (await begin(operation, { [`GET ${at}/config`]: husk })).begun.outcome,
        "changed",
      );
      const text = `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`;
      const gone = { [`GET ${at}/config`]: error(500, text) };
      assert.equal((await begin(operation, gone)).begun.outcome, "changed");
    });

    it(`${name}: sends nothing when the fence says no`, async () => {
      const server = new ScriptedServer({ ...reads, ...none });
      const fence = { mayWrite: () => false };
      const begun = await driverOn(server).begin(operation, fence);
      assert.equal(begun.outcome, "fenced");
    });

    it(`${name}: sends one write, and says that a lost reply is unknown`, async () => {
      const server = new ScriptedServer({
        ...reads,
        ...none,
        ...Object.fromEntries(
          ["POST", "PUT", "DELETE"].flatMap((method) =>
            ["", "/config", "/resize", "/status/start", "/status/stop", "/status/shutdown"].map(
              (tail) => [`${method} ${at}${tail}`, { type: "lost", detail: "reset" } as const],
            ),
          ),
        ),
      });
      const begun = await driverOn(server).begin(operation, open);
      assert(begun.outcome === "unknown" && begun.failure.category === "UnknownOutcome");
      assert.equal(server.writes.length, 1);
    });
  }
});

describe("create", () => {
  const operation: Operation = {
    kind: "create",
    claim,
    node: "pve1",
    shape: {
      name: "web",
      notes: "Ada's",
      disks: [{ name: "root" }, { name: "data", bus: "virtio" }],
      networks: [{ name: "lan", network: "vmbr0" }],
    },
  };

  it("writes the marks and no disk", async () => {
    const { begun, server } = await begin(operation, {
      "POST /nodes/pve1/qemu": data(upid("qmcreate", id)),
    });
    assert.deepEqual(begun, { outcome: "task", task: upid("qmcreate", id) });
    const params = server.writes[0]?.params ?? {};
    assert.equal(params["vmid"], id);
    assert.equal(params["smbios1"], `uuid=${claim.identity}`);
    assert.equal(params["net0"], "virtio,bridge=vmbr0");
    const written = readMark(String(params["description"]));
    assert.equal(written.person, "Ada's");
    assert.deepEqual(written.mark?.disks, { data: "virtio0", root: "scsi0" });
    const drives = Object.keys(params).filter((key) => /^(scsi|virtio|ide|sata)\d/.test(key));
    assert.deepEqual(drives, []);
    for (const forbidden of ["start", "ha-managed", "import-working-storage", "live-restore"]) {
      assert.equal(forbidden in params, false);
    }
  });

  it("says that the id is taken, and by whom it is not", async () => {
    const { begun } = await begin(operation, {
      "POST /nodes/pve1/qemu": error(
        500,
        `unable to create VM ${id} - VM ${id} already exists on node 'pve2'`,
      ),
    });
    assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
    assert.equal(begun.leaves, undefined);
  });

  it("remembers that a reservation stands when no worker could be started", async () => {
    const { begun } = await begin(operation, {
      "POST /nodes/pve1/qemu": error(500, "got no worker upid - start worker failed"),
    });
    assert(begun.outcome === "refused" && begun.leaves === "Husk");
  });

  it("knows that nothing was done where no connection stood", async () => {
    const unreachable = { type: "notSent", why: "unreachable", detail: "ECONNREFUSED" } as const;
    const { begun } = await begin(operation, { "POST /nodes/pve1/qemu": unreachable });
    assert(begun.outcome === "refused" && begun.failure.category === "NetworkError");
    const dead = await begin(operation, { "POST /nodes/pve1/qemu": error(595, "No route") });
    assert(dead.begun.outcome === "refused" && dead.begun.failure.category === "NodeUnhealthy");
  });

  it("does not know what was done when the other node did not answer in time", async () => {
    for (const status of [596, 597, 599]) {
      const { begun } = await begin(operation, { "POST /nodes/pve1/qemu": error(status, "x") });
      assert.equal(begun.outcome, "unknown");
    }
  });
});

describe("disks", () => {
  const fill = { from: "volume", volume: "local:import/debian.qcow2" } as const;

  it("are imported with the digest, in the slot that the mark keeps", async () => {
    const disk = { name: "data", storage: "zfs", discard: true, fill };
    const { server } = await begin(
      { kind: "addDisk", ...here, disk, bootOrder: ["data", "root", "nothing"] },
      { ...reads, [`POST ${at}/config`]: data(upid("qmconfig", id)) },
    );
    assert.deepEqual(server.writes[0]?.params, {
      digest: "d1",
      scsi1: "zfs:0,import-from=local:import/debian.qcow2,discard=on",
      boot: "order=scsi1;scsi0",
    });
  });

  it("are refused under a name that has no place yet", async () => {
    const disk = { name: "more", storage: "zfs", fill };
    const { begun, server } = await begin({ kind: "addDisk", ...here, disk }, reads);
    assert.equal(begun.outcome, "refused");
    assert.deepEqual(server.writes, []);
  });

  it("are not made twice: a slot that is taken means that something changed", async () => {
    const disk = { name: "root", storage: "zfs", fill };
    const { begun } = await begin({ kind: "addDisk", ...here, disk }, reads);
    assert.equal(begun.outcome, "changed");
  });

  it("are copied from another machine's boot disk", async () => {
    const template = {
      digest: "t",
      boot: "order=ide2;virtio0",
      ide2: "local:iso/x.iso,media=cdrom",
      scsi0: "zfs:base-9000-disk-1,size=1G",
      virtio0: "zfs:base-9000-disk-0,size=2G",
    };
    const disk = { name: "data", storage: "zfs", fill: { from: "machine", externalId: "9000" } };
    const { server } = await begin({ kind: "addDisk", ...here, disk } as Operation, {
      ...reads,
      "GET /nodes/pve1/qemu/9000/config": data(template),
      [`POST ${at}/config`]: data(upid("qmconfig", id)),
    });
    assert.equal(server.writes[0]?.params?.["scsi1"], "zfs:0,import-from=zfs:base-9000-disk-0");
  });

  it("grow to an absolute size, and never shrink", async () => {
    const grow = (gibibytes: number): Operation => {
      return { kind: "grow", ...here, disk: "root", sizeBytes: gibibytes * 1024 ** 3 };
    };
    const { server } = await begin(grow(20), { ...reads, [`PUT ${at}/resize`]: data(null) });
    assert.deepEqual(server.writes[0]?.params, { disk: "scsi0", size: "20G", digest: "d1" });
    assert.deepEqual((await begin(grow(8), reads)).begun, { outcome: "done" });
    const { begun } = await begin(grow(4), reads);
    assert(begun.outcome === "refused" && begun.failure.category === "ReplacementRequired");
  });
});

describe("configure", () => {
  it("writes what differs and nothing else, under the digest", async () => {
    const shape = { memory: { sizeBytes: 2 * 1024 ** 3 }, cpu: { cores: 4 }, tags: [] };
    const { server } = await begin(
      { kind: "configure", ...here, shape },
      { ...reads, [`PUT ${at}/config`]: data(null) },
    );
    assert.deepEqual(server.writes[0]?.params, { cores: "4", digest: "d1" });
  });

  it("is done without a write when all is so already", async () => {
    const shape = { memory: { sizeBytes: 2 * 1024 ** 3 }, notes: "Ada's" };
    const { begun, server } = await begin({ kind: "configure", ...here, shape }, reads);
    assert.deepEqual(begun, { outcome: "done" });
    assert.deepEqual(server.writes, []);
  });

  it("changes notes and leaves the mark", async () => {
    const { server } = await begin(
      { kind: "configure", ...here, shape: { notes: "Bob's\n" } },
      { ...reads, [`PUT ${at}/config`]: data(null) },
    );
    const written = readMark(String(server.writes[0]?.params?.["description"]));
    assert.equal(written.person, "Bob's\n");
    assert.deepEqual(written.mark, mark);
  });

  it("waits for a lock instead of failing", async () => {
    const { begun } = await begin(
      { kind: "configure", ...here, shape: { cpu: { cores: 2 } } },
      { ...reads, [`PUT ${at}/config`]: error(500, "VM is locked (backup)") },
    );
    assert.deepEqual(begun, { outcome: "blocked", waitsFor: "500 VM is locked (backup)" });
  });

  it("takes the server's word that the digest is wrong, in each release's spelling", async () => {
    for (const text of [
      "checksum missmatch (file change by other user?)",
      "checksum mismatch (file change by other user?)",
    ]) {
      const { begun } = await begin(
        { kind: "configure", ...here, shape: { cpu: { cores: 2 } } },
        { ...reads, [`PUT ${at}/config`]: error(500, text) },
      );
      assert.equal(begun.outcome, "changed");
    }
  });

  it("rests on the config that was observed, without reading it again", async () => {
    const server = new ScriptedServer({ ...reads, [`PUT ${at}/config`]: data(null) });
    const driver = driverOn(server);
    await driver.observe(claim, { withoutPower: true });
    await driver.begin({ kind: "configure", ...here, shape: { cpu: { cores: 2 } } }, open);
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ["GET", "PUT"],
    );
  });
});

describe("the mark", () => {
  it("gets a place for a new name beside what is there", async () => {
    const { server } = await begin(
      { kind: "stamp", ...here, disks: [{ name: "more" }], networks: [{ name: "dmz" }] },
      { ...reads, [`PUT ${at}/config`]: data(null) },
    );
    const written = readMark(String(server.writes[0]?.params?.["description"]));
    assert.equal(written.mark?.disks["more"], "scsi2");
    assert.equal(written.mark?.networks["dmz"], "net1");
    assert.equal(written.person, "Ada's");
  });

  it("is put on a machine to be adopted, if its identity is the Claim's and nobody has it", async () => {
    const stamp: Operation = {
      kind: "stamp",
      ...here,
      disks: [{ name: "root", slot: "scsi0" }],
      networks: [],
      adopt: true,
    };
    const nobodys = data({ ...config, description: "old notes" });
    const { server } = await begin(stamp, {
      [`GET ${at}/config`]: nobodys,
      [`PUT ${at}/config`]: data(null),
    });
    const written = readMark(String(server.writes[0]?.params?.["description"]));
    assert.equal(written.person, "old notes");
    assert.deepEqual(written.mark?.disks, { root: "scsi0" });
    const theirs = { ...mark, installation: "99999999-2222-4333-8444-555555555555" };
    const other = data({ ...config, description: writeMark("", theirs) });
    const refused = await begin(stamp, { [`GET ${at}/config`]: other });
    assert.equal(refused.begun.outcome, "refused");
    const unlike = data({ ...config, description: "", smbios1: "uuid=1" });
    assert.equal((await begin(stamp, { [`GET ${at}/config`]: unlike })).begun.outcome, "refused");
  });

  it("says released afterwards, and nothing else changes", async () => {
    const { server } = await begin(
      { kind: "release", ...here },
      { ...reads, [`PUT ${at}/config`]: data(null) },
    );
    const params = server.writes[0]?.params ?? {};
    assert.deepEqual(Object.keys(params).toSorted(), ["description", "digest"]);
    assert.equal(readMark(String(params["description"])).mark?.state, "Released");
  });
});

describe("destroy", () => {
  const operation: Operation = { kind: "destroy", ...here, volumes: [`zfs:vm-${id}-disk-0`] };

  it("purges by query and never sweeps unreferenced volumes along", async () => {
    const { server } = await begin(operation, {
      ...reads,
      ...none,
      [`DELETE ${at}`]: data(upid("qmdestroy", id)),
    });
    assert.deepEqual(server.writes[0]?.params, { purge: 1, "destroy-unreferenced-disks": 0 });
  });

  it("stops when a volume is not accounted for: unused, pending or in a snapshot", async () => {
    const unused = { ...config, unused0: `zfs:vm-${id}-disk-7` };
    const leaving = [{ key: "scsi5", value: `zfs:vm-${id}-disk-8`, delete: 1 }];
    const snapshots = data([{ name: "before" }, { name: "current" }]);
    const scripts = [
      { ...none, [`GET ${at}/config`]: data(unused) },
      { ...none, ...reads, [`GET ${at}/pending`]: data(leaving) },
    ];
    for (const script of scripts) {
      const { begun, server } = await begin(operation, script);
      assert(begun.outcome === "changed" && begun.detail.startsWith("not accounted for"));
      assert.deepEqual(server.writes, []);
    }
    // The machine itself never shows these, so to look again would be for ever: a person must.
    const { begun, server } = await begin(operation, {
      ...none,
      ...reads,
      [`GET ${at}/snapshot`]: snapshots,
      [`GET ${at}/snapshot/before/config`]: data({ scsi9: `zfs:vm-${id}-disk-9` }),
    });
    assert(begun.outcome === "refused" && begun.failure.category === "OrphanedVolumes");
    assert.match(begun.failure.message, /disk-9/);
    assert.deepEqual(server.writes, []);
  });

  it("frees saved memory of snapshots with the machine", async () => {
    const { begun } = await begin(operation, {
      ...none,
      ...reads,
      [`GET ${at}/snapshot`]: data([{ name: "before" }, { name: "current" }]),
      [`GET ${at}/snapshot/before/config`]: data({ vmstate: `zfs:vm-${id}-state-before` }),
      [`DELETE ${at}`]: data(upid("qmdestroy", id)),
    });
    assert.equal(begun.outcome, "task");
  });

  it("ignores volumes that bear another id: the server keeps them", async () => {
    const { begun } = await begin(operation, {
      ...none,
      [`GET ${at}/config`]: data({ ...config, scsi9: "zfs:vm-77-disk-0" }),
      [`DELETE ${at}`]: data(upid("qmdestroy", id)),
    });
    assert.equal(begun.outcome, "task");
  });
});
