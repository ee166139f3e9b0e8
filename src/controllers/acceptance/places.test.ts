import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind, vmClassKind, vmImageKind, vmNetworkKind } from "../../api/index.ts";
import { releases } from "../../sim/index.ts";
import { condition } from "../testing/world.ts";
import { idOf, root, Stage, type Spec } from "./testing.ts";

const blank: Spec = { source: { blank: {} }, powerState: "Stopped" };
const digest = "cd".repeat(32);

describe("where a machine belongs", () => {
  for (const release of releases) {
    it(`is its pool on ${release}: from the beginning, then another, and none that is not there`, async () => {
      const stage = await Stage.open(release, {
        before: ({ proxmox }) => {
          proxmox.cluster.state.pools = ["prod", "lab"].map((poolid) => {
            return { poolid, vms: [], storages: [] };
          });
        },
      });
      const members = (): string[] => {
        const pools = stage.state.pools.filter(({ poolid }) => !poolid.startsWith("berth-epoch-"));
        return pools.map(({ poolid, vms }) => `${poolid} ${vms.join()}`);
      };
      const vm = await stage.make("web", { ...blank, placement: { pool: "prod" } });
      assert.deepEqual(members(), [`prod ${idOf(vm)}`, "lab "]);
      await stage.edit("web", { placement: { pool: "lab" } });
      const isMoved = await stage.until(() => members()[1] === `lab ${idOf(vm)}`);
      assert.ok(isMoved, members().join());
      assert.deepEqual(members()[0], "prod ");
      await stage.synced("web");
      const { requests } = stage.simulated;
      const put = requests.findLastIndex(({ method }) => method === "PUT");
      const seen = requests.findLastIndex(({ path }) => path.includes("/cluster/resources"));
      assert.ok(put < seen, "nobody says that it is there before it was seen there");
      await stage.pass(120_000);
      const writes = stage.writes.length;
      await stage.pass(120_000);
      assert.equal(stage.writes.length, writes);
      await stage.declare("lost", { ...blank, placement: { pool: "nowhere" } });
      const refused = await stage.when("lost", ({ status }) => status?.failure !== undefined);
      assert.match(JSON.stringify(refused.status?.failure), /nowhere/);
      await stage.remove("lost");
      await stage.remove("web");
      assert.deepEqual(members(), ["prod ", "lab "]);
    });

    it(`is high availability on ${release}: asked for, followed, changed, given up`, async () => {
      const stage = await Stage.open(release);
      const wanted = { enabled: true, maxRestarts: 2, maxRelocations: 3 };
      const vm = await stage.make("web", { source: { blank: {} }, highAvailability: wanted });
      const resource = (): (typeof stage.state.ha)[string] | undefined => {
        return stage.state.ha[`vm:${idOf(vm)}`];
      };
      assert.equal(resource()?.state, "started");
      assert.deepEqual([resource()?.max_restart, resource()?.max_relocate], [2, 3]);
      await stage.edit("web", { powerState: "Stopped", highAvailability: { maxRestarts: 1 } });
      await stage.synced("web");
      assert.deepEqual([resource()?.state, resource()?.max_restart], ["stopped", 1]);
      await stage.edit("web", { highAvailability: null });
      await stage.synced("web");
      assert.ok(resource(), "what is no longer said is left as it is");
      await stage.edit("web", { highAvailability: { enabled: false } });
      await stage.synced("web");
      assert.equal(resource(), undefined);
      await stage.edit("web", { powerState: "Running", highAvailability: wanted });
      await stage.synced("web");
      await stage.remove("web");
      assert.deepEqual([stage.state.ha, Object.keys(stage.guests)], [{}, []]);
    });
  }
});

describe("what only some may use", () => {
  it("are devices of the nodes: refused by name without an entry, before anything is made", async () => {
    const stage = await Stage.open("9.2");
    const devices = {
      pci: [{ name: "gpu", mapping: "gpu" }],
      usb: [{ name: "key", mapping: "key" }],
    };
    await stage.declare("web", { ...blank, devices });
    const vm = await stage.failed("web", "PermissionDenied");
    assert.match(vm.status?.failure?.message ?? "", /mapping gpu, the mapping key/);
    await stage.allow({ passthrough: ["gpu"] });
    const less = await stage.when("web", ({ status }) => {
      return !(status?.failure?.message ?? "gpu").includes("gpu");
    });
    assert.match(less.status?.failure?.message ?? "", /mapping key/);
    assert.deepEqual([stage.writes, stage.guests], [[], {}]);
  });

  it("protection keeps a machine whose object was deleted, until it is switched off", async () => {
    const stage = await Stage.open("9.2");
    const vm = await stage.make("web", { ...blank, deletionProtection: true });
    await stage.startRemoving("web");
    const kept = await stage.when("web", (seen) => condition(seen, "Ready") === "False Protected");
    await stage.pass(300_000);
    assert.ok(stage.guests[idOf(kept)]);
    assert.ok(stage.writes.every((path) => !path.startsWith("DELETE")));
    await stage.edit("web", { deletionProtection: false });
    assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined));
    assert.equal(stage.guests[idOf(vm)], undefined);
  });
});

describe("protection that a person switched on at the hypervisor", () => {
  it("keeps the machine without a word to the server, and is lifted by either side", async () => {
    for (const by of ["person", "object"] as const) {
      const stage = await Stage.open("9.2");
      const id = idOf(await stage.make("web", blank));
      const { node = "", text = "" } = stage.guests[id] ?? {};
      stage.simulated.proxmox.writeGuestFile(node, Number(id), `${text}protection: 1\n`);
      const writes = stage.writes.length;
      await stage.startRemoving("web");
      const vm = await stage.failed("web", "ConfigurationError");
      assert.match(vm.status?.failure?.message ?? "", /protected/);
      await stage.pass(300_000);
      assert.deepEqual(stage.writes.slice(writes), []);
      if (by === "person") stage.simulated.proxmox.writeGuestFile(node, Number(id), text);
      else await stage.edit("web", { deletionProtection: false });
      assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined), by);
      assert.deepEqual(stage.guests, {});
    }
  });
});

describe("what a machine is made from", () => {
  for (const release of releases) {
    it(`can be a snapshot of another on ${release}, copied by the server itself`, async () => {
      const stage = await Stage.open(release);
      const disks = [{ ...root, size: "4Gi", storage: "local", format: "qcow2" as const }];
      const source = await stage.make("src", { ...blank, disks, placement: { node: "pve2" } });
      const at = `/nodes/pve2/qemu/${idOf(source)}`;
      await stage.person("POST", `${at}/snapshot`, { snapname: "good" });
      await stage.pass(10_000);
      const clone = { vmRef: { name: "src" }, snapshot: "good" };
      const spec: Spec = { powerState: "Stopped", disks, source: { clone } };
      const copy = await stage.make("web", spec);
      assert.equal(copy.status?.node, "pve2");
      const [asked] = stage.writeRequests.filter(({ path }) => path === `${at}/clone`);
      assert.deepEqual([asked?.params?.["snapname"], asked?.params?.["full"]], ["good", 1]);
      assert.match(stage.config(copy)["smbios1"] ?? "", /uuid/);
      assert.notEqual(stage.config(copy)["smbios1"], stage.config(source)["smbios1"]);
      await stage.declare("bad", { ...spec, source: { clone: { ...clone, snapshot: "none" } } });
      const refused = await stage.when("bad", ({ status }) => status?.failure !== undefined);
      assert.match(JSON.stringify(refused.status?.failure), /none/);
      await stage.remove("bad");
      await stage.remove("web");
      assert.deepEqual(Object.keys(stage.guests), [idOf(source)]);
    });

    it(`can be a blank disk and discs on ${release}: one that is there, one fetched`, async () => {
      const file = {
        kind: "file",
        sizeBytes: 700 * 2 ** 20,
        mimeType: "x",
        sha256: digest,
      } as const;
      const stage = await Stage.open(release, {
        fetch: async () => file,
        before: ({ proxmox }) => {
          const there = { content: "iso", format: "iso", createdMs: 0 } as const;
          proxmox.cluster.state.volumes["pve1:/var/lib/vz"]?.push({
            ...there,
            name: "iso/there.iso",
            sizeBytes: 2 ** 20,
            usedBytes: 2 ** 20,
          });
        },
      });
      await stage.simulated.world.client.of(vmImageKind).create({
        apiVersion: "berth.dev/v1alpha1",
        kind: "VMImage",
        metadata: { namespace: "default", name: "installer" },
        spec: {
          format: "iso",
          source: { http: { url: "https://cloud.example/x.iso", checksum: `sha256:${digest}` } },
        },
      });
      const install = { name: "install", imageRef: { name: "installer" } };
      const vm = await stage.make("web", {
        source: { blank: {} },
        placement: { node: "pve1" },
        cdroms: [{ name: "tools", volume: "local:iso/there.iso" }, install],
        bootOrder: [{ disk: "root" }, { cdrom: "install" }],
      });
      const config = stage.config(vm);
      assert.match(config["sata0"] ?? "", /^local:iso\/there\.iso,media=cdrom/);
      assert.match(config["sata1"] ?? "", new RegExp(`^local:iso/berth-sha256-${digest}\\.iso`));
      assert.equal(config["boot"], "order=scsi0;sata1");
      const fetched = stage.writes.filter((path) => path.endsWith("/download-url"));
      assert.equal(fetched.length, 1);
      // The medium is taken out of a running machine: the drive stays.
      await stage.edit("web", { cdroms: [{ name: "tools" }, install] });
      assert.match(stage.config(await stage.synced("web"))["sata0"] ?? "", /^none,media=cdrom/);
      await stage.remove("web");
      assert.deepEqual(stage.volumes, []);
      const left = stage.state.volumes["pve1:/var/lib/vz"]?.map(({ name }) => name) ?? [];
      assert.ok(left.includes("iso/there.iso"), left.join());
    });
  }
});

describe("what a machine takes from other objects", () => {
  it("are its class and its networks, and a change of them reaches it", async () => {
    const stage = await Stage.open("9.2");
    const { client } = stage.simulated.world;
    const apiVersion = "berth.dev/v1alpha1";
    await client.of(vmClassKind).create({
      apiVersion,
      kind: "VMClass",
      metadata: { namespace: "default", name: "small" },
      spec: { cpu: { cores: 3, limit: 2 }, memory: { size: "3Gi" }, firmware: { type: "UEFI" } },
    });
    await client.of(vmNetworkKind).create({
      apiVersion,
      kind: "VMNetwork",
      metadata: { name: "dmz" },
      spec: { bridge: "vmbr9", overrides: [{ hypervisor: "model", bridge: "vmbr0", vlan: 70 }] },
    });
    await client.of(virtualMachineKind).create({
      apiVersion,
      kind: "VirtualMachine",
      metadata: { namespace: "default", name: "web" },
      spec: {
        hypervisorRef: { name: "model" },
        classRef: { name: "small" },
        cpu: { cores: 4 },
        source: { blank: {} },
        disks: [root],
        networks: [{ name: "lan", networkRef: { name: "dmz" } }],
        powerState: "Stopped",
      },
    });
    const { cores, cpulimit, memory, bios, net0 = "" } = stage.config(await stage.synced("web"));
    assert.deepEqual([cores, cpulimit, memory, bios], ["4", "2", "3072", "ovmf"]);
    assert.match(net0, /bridge=vmbr0.*tag=70/);
    const merge = { spec: { memory: { size: "5Gi" } } };
    await client.of(vmClassKind).patch({ namespace: "default", name: "small" }, { merge });
    const overrides = [{ hypervisor: "model", bridge: "vmbr0", vlan: 71 }];
    await client.of(vmNetworkKind).patch({ name: "dmz" }, { merge: { spec: { overrides } } });
    const isReached = await stage.until(async () => {
      const { memory: now, net0: card = "" } = stage.config(await stage.vm("web"));
      return now === "5120" && card.includes("tag=71");
    });
    assert.ok(isReached);
    await stage.synced("web");
  });
});
