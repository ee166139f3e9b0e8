import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claim, data, error, scriptClock, ScriptedServer, tokenId } from "./fixture.ts";
import { proxmoxDriver } from "./driver.ts";
import { writeNotes } from "./listing-notes.ts";

const resources = data([
  { type: "node", node: "pve1", status: "online" },
  { type: "qemu", vmid: 1_500_000, node: "pve1", status: "running" },
  {
    type: "storage",
    storage: "zfs",
    node: "pve1",
    status: "available",
    content: "images",
    shared: 0,
    maxdisk: 100,
    disk: 40,
  },
  { type: "storage", storage: "far", node: "pve1", status: "available", content: "images,iso" },
]);

const bridges = data([{ iface: "vmbr0", type: "bridge" }]);
const images = data([{ volid: "local:import/debian.qcow2", content: "import", size: 1 }]);

function driver(server: ScriptedServer, idRange?: { first: number; last: number }) {
  const random = { number: () => 0.5, bytes: () => new Uint8Array(), uuid: () => "" };
  const settings = idRange === undefined ? {} : { idRange };
  return proxmoxDriver({ send: server.send, tokenId, clock: scriptClock, random, settings });
}

const farUnlisted = { listedOn: "pve1", unlisted: ["far"] };

const draft = {
  claim,
  node: "pve1",
  shape: { networks: [{ name: "lan", network: "vmbr0" }] },
  disks: [
    {
      name: "root",
      storage: "zfs",
      sizeBytes: 50,
      fill: { from: "volume", volume: "local:import/debian.qcow2" },
    },
  ],
} as const;

describe("what was seen already", () => {
  it("is not asked for again: storages of the last glance, images and bridges", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": data([
        ...JSON.parse(bodyOf(resources)).data,
        { type: "storage", storage: "local", node: "pve1", status: "available", content: "import" },
      ]),
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/storage/local/content": images,
      "GET /nodes/pve1/network": bridges,
    });
    const berth = driver(server);
    await berth.inventory();
    const first = await berth.preflight(draft);
    assert.deepEqual(first.findings, []);
    assert.equal(server.requests.length, 4);
    const second = await berth.preflight(draft);
    assert.deepEqual(second.findings, []);
    assert.equal(server.requests.length, 5);
  });

  it("does not hide that a storage is full, nor that an image is not there", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/network": bridges,
    });
    const berth = driver(server);
    await berth.inventory();
    const [disk] = draft.disks;
    const disks = [{ ...disk, sizeBytes: 61 }];
    const { findings } = await berth.preflight({ ...draft, disks });
    assert.deepEqual(
      findings.map(({ category }) => category),
      ["QuotaExceeded", "ImageNotFound"],
    );
  });

  it("is looked at where the source of a copy has its disks: the copy will lie there", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/network": bridges,
      "GET /nodes/pve1/qemu/9000/pending": data([
        { key: "digest", value: "aa" },
        { key: "template", value: "1" },
        { key: "scsi0", value: "zfs:base-9000-disk-0,size=1G" },
      ]),
    });
    const berth = driver(server);
    await berth.inventory();
    const clone = { source: "9000", mode: "Linked" } as const;
    const { otherVolumes, notes, findings } = await berth.preflight({ ...draft, disks: [], clone });
    assert.deepEqual(findings, []);
    assert.deepEqual([otherVolumes, notes], [[], writeNotes(farUnlisted)]);
  });

  it("of a pool is remembered, and only a pool that is surely not there is a finding", async () => {
    const answers = {
      there: data({ members: [] }),
      gone: error(500, "pool 'gone' does not exist"),
      unseen: error(403, "Permission check failed (/pool/unseen, Pool.Audit)"),
      odd: error(501, "Method 'GET /pools/odd' not implemented"),
    };
    const paths = Object.entries(answers).map(([name, reply]) => [`GET /pools/${name}`, reply]);
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      ...Object.fromEntries(paths),
    });
    const berth = driver(server);
    await berth.inventory();
    const bare = { claim, node: "pve1", shape: {}, disks: [] };
    for (const pool of ["there", "unseen", "odd", "there"]) {
      assert.deepEqual((await berth.preflight({ ...bare, pool })).findings, [], pool);
    }
    assert.equal(server.requests.filter(({ path }) => path === "/pools/there").length, 1);
    const { findings } = await berth.preflight({ ...bare, pool: "gone" });
    assert.deepEqual(
      findings.map(({ category, message }) => `${category} ${message}`),
      ["ConfigurationError placement.pool: the pool gone does not exist"],
    );
  });

  it("is enough for what is added to a machine that stands: nothing is listed under its id", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /nodes/pve1/network": bridges,
    });
    const berth = driver(server);
    await berth.inventory();
    const disks = [
      { name: "data", storage: "zfs", sizeBytes: 61, fill: { from: "blank" } },
      { name: "more", storage: "tank", sizeBytes: 1, fill: { from: "blank" } },
    ] as const;
    const networks = [{ name: "lan", network: "vmbr77" }];
    const added = { claim, node: "pve1", shape: { networks }, disks, isAddition: true };
    const { findings, otherVolumes, notes } = await berth.preflight(added);
    assert.deepEqual(
      findings.map(({ category, message }) => `${category} ${message}`),
      [
        "ConfigurationError disks[more]: the storage tank does not exist on pve1",
        "QuotaExceeded the storage zfs has 60 B left of 61 B needed",
        "ConfigurationError the bridge vmbr77 does not exist on pve1, or the token may not use it",
      ],
    );
    assert.deepEqual([otherVolumes, notes], [[], undefined]);
    const asked = server.requests.map(({ path }) => path);
    assert.deepEqual(asked, ["/cluster/resources", "/nodes/pve1/network"]);
  });

  it("tells whether the disc of the first boot can lie where it is to", async () => {
    const server = new ScriptedServer({ "GET /cluster/resources": resources });
    const berth = driver(server);
    await berth.inventory();
    const bare = { claim, node: "pve1", shape: {}, disks: [] };
    assert.deepEqual((await berth.preflight({ ...bare, seedStorage: "far" })).findings, []);
    const { findings } = await berth.preflight({ ...bare, seedStorage: "zfs" });
    assert.deepEqual(
      findings.map(({ category, message }) => `${category} ${message}`),
      ["ConfigurationError the disc of the first boot: the storage zfs does not take discs"],
    );
  });

  it("does not hide that a disc is not there, before anything is made", async () => {
    const iso = data([{ volid: "far:iso/there.iso", content: "iso", size: 1 }]);
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/storage/far/content": iso,
    });
    const berth = driver(server);
    await berth.inventory();
    const media = ["far:iso/there.iso", "far:iso/gone.iso", "nowhere:iso/a.iso", ""];
    const cdroms = media.map((medium, index) => ({ name: `drive${index}`, medium }));
    const disks = [
      { name: "root", storage: "zfs", sizeBytes: 1, fill: { from: "blank" } },
    ] as const;
    const { findings } = await berth.preflight({ ...draft, shape: { cdroms }, disks });
    assert.deepEqual(
      findings.map(({ category, message }) => `${category} ${message}`),
      [
        "ImageNotFound cdroms[drive1]: far:iso/gone.iso is not on pve1",
        "ImageNotFound cdroms[drive2]: no storage on pve1 can hold nowhere:iso/a.iso",
      ],
    );
  });

  it("says which storage is away where volumes of others were seen under the id", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/network": bridges,
    });
    const berth = driver(server);
    await berth.inventory();
    const seen = ["zfs:vm-100-disk-0", "gone:vm-100-disk-0"].map((id) => ({ id, seenAt: "" }));
    const found = await berth.preflight({ ...draft, claim: { ...claim, otherVolumes: seen } });
    const away = found.findings.filter(({ category }) => category === "NodeUnhealthy");
    assert.deepEqual(
      away.map(({ message }) => /storage (\w+), which is not available/.exec(message)?.[1]),
      ["gone"],
    );
  });

  it("is noted where nobody looked: nothing there is ever taken for ours by its name", async () => {
    const { externalId: id } = claim;
    const row = (storage: string) => {
      return { volid: `${storage}:vm-${id}-disk-0`, vmid: Number(id), content: "images", size: 1 };
    };
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/network": bridges,
    });
    const berth = driver(server);
    await berth.inventory();
    const disks = [
      { name: "root", storage: "zfs", sizeBytes: 1, fill: { from: "blank" } },
    ] as const;
    const { otherVolumes, notes } = await berth.preflight({ ...draft, disks });
    assert.deepEqual([otherVolumes, notes], [[], writeNotes(farUnlisted)]);
    const gone = error(
      500,
      `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`,
    );
    const storages = ["zfs", "far"].map((storage) => {
      return { storage, type: "dir", content: "images", active: 1, enabled: 1, shared: 0 };
    });
    const later = new ScriptedServer({
      [`GET /nodes/pve1/qemu/${id}/pending`]: gone,
      "GET /nodes/pve1/storage": data(storages),
      "GET /nodes/pve1/storage/zfs/content": data([]),
      "GET /nodes/pve1/storage/far/content": data([row("far")]),
    });
    const reserved = { ...claim, driver: writeNotes(farUnlisted) };
    assert.deepEqual(await driver(later).leftovers(reserved), { ok: true, value: [] });
    const volumes = [
      {
        id: `far:vm-${id}-disk-0`,
        role: "Disk",
        proof: "Config",
        storage: "far",
        state: "Attached",
      } as const,
    ];
    const left = await driver(later).leftovers({ ...reserved, volumes });
    assert(left.ok);
    assert.deepEqual(
      left.value.map(({ proof }) => proof),
      ["Claimed"],
    );
  });

  it("saves asking for a free id in a wide range, and in a narrow one it does not", async () => {
    const server = new ScriptedServer({
      "GET /cluster/resources": resources,
      "GET /cluster/nextid": data("550"),
    });
    const wide = driver(server);
    await wide.inventory();
    const answer = await wide.propose([]);
    assert(answer.ok && Number(answer.value) >= 1_000_000);
    assert.equal(server.requests.length, 1);
    const narrow = driver(server, { first: 500, last: 599 });
    await narrow.inventory();
    assert.deepEqual(await narrow.propose([]), { ok: true, value: "550" });
    assert.equal(server.requests.length, 3);
  });
});

function bodyOf(reply: ReturnType<typeof data>): string {
  assert(reply.type === "answered");
  return reply.body;
}
