import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind } from "../../api/index.ts";
import { releases, tokenUser, type Release } from "../../sim/index.ts";
import { condition } from "../testing/world.ts";
import { idOf, root, Stage, type Spec } from "./testing.ts";

const data = { name: "data", size: "2Gi", storage: "local-zfs" } as const;

/** As docs/drivers/proxmox.md has them. A word that a release does not know is refused there. */
const rights =
  "VM.Allocate VM.Audit VM.Clone VM.Config.CPU VM.Config.Memory VM.Config.Disk " +
  "VM.Config.Network VM.Config.HWType VM.Config.Options VM.Config.Cloudinit VM.Config.CDROM " +
  "VM.PowerMgmt VM.Migrate Datastore.AllocateSpace Datastore.AllocateTemplate " +
  "Datastore.Allocate Datastore.Audit Sys.Audit Pool.Allocate Pool.Audit";
const rightsOf: Readonly<Record<Release, string>> = {
  "7.4": "VM.Monitor",
  "8.4": "VM.Monitor Sys.AccessNetwork SDN.Use",
  "9.2": "VM.GuestAgent.Audit Sys.AccessNetwork SDN.Use",
};

/** Blank where a release cannot bring in an image file. */
function from(release: Release): Spec {
  return release === "7.4" ? { source: { blank: {} } } : {};
}

/** Failures after a machine stood. Each is named after the thread. */
describe("changing a machine", () => {
  it("bpg-1636: an edit of the first boot's data replaces nothing and is refused by name", async () => {
    const stage = await Stage.open("9.2");
    const first = { user: { name: "ada" }, hostname: "web" };
    const made = await stage.make("web", { cloudInit: first });
    await stage.pass(60_000);
    const before = JSON.stringify([stage.guests, stage.volumes]);
    const writes = stage.writes.length;
    await stage.edit("web", { cloudInit: { user: { name: "eve" } }, cpu: { cores: 4 } });
    const vm = await stage.failed("web", "ReplacementRequired");
    assert.match(vm.status?.failure?.message ?? "", /spec\.cloudInit/);
    assert.equal(condition(vm, "Synced"), "False ReplacementRequired");
    assert.equal(condition(vm, "Ready"), "True Succeeded");
    assert.equal(idOf(vm), idOf(made));
    stage.restart();
    await stage.pass(600_000);
    assert.deepEqual(stage.writes.slice(writes), []);
    assert.equal(JSON.stringify([stage.guests, stage.volumes]), before);
    await stage.edit("web", { cloudInit: first, cpu: { cores: 2 } });
    await stage.synced("web");
    assert.deepEqual(stage.writes.slice(writes), []);
  });

  it("bpg-1636: also where the data went by a disc that is gone, and for another image", async () => {
    const stage = await Stage.open("9.2");
    const first = { userData: { inline: "#cloud-config\nruncmd: [a]\n" } };
    const second = { userData: { inline: "#cloud-config\nruncmd: [b]\n" } };
    await stage.make("web", { cloudInit: first });
    await stage.pass(120_000);
    const before = JSON.stringify([stage.guests, stage.volumes]);
    const writes = stage.writes.length;
    for (const [edit, field] of [
      [{ cloudInit: second, cpu: { cores: 4 } }, /spec\.cloudInit/],
      [
        { cloudInit: first, source: { image: { name: "other" } }, cpu: { cores: 4 } },
        /spec\.source/,
      ],
    ] as const) {
      await stage.edit("web", edit);
      const vm = await stage.when("web", ({ status }) =>
        field.test(status?.failure?.message ?? ""),
      );
      assert.equal(condition(vm, "Synced"), "False ReplacementRequired");
      assert.equal(condition(vm, "Ready"), "True Succeeded");
    }
    stage.restart();
    await stage.pass(120_000);
    assert.equal(JSON.stringify([stage.guests, stage.volumes]), before);
    await stage.edit("web", { source: { image: { name: "debian" } }, cpu: { cores: 2 } });
    await stage.synced("web");
    assert.deepEqual(stage.writes.slice(writes), []);
  });

  for (const release of releases) {
    it(`bpg-2059: other order, units, case and defaults written out change nothing on ${release}`, async () => {
      const stage = await Stage.open(release);
      const macAddress = "bc:24:11:aa:bb:cc";
      const lan = { name: "lan", bridge: "vmbr0", macAddress };
      const dmz = { name: "dmz", bridge: "vmbr0", vlan: 7 };
      await stage.make("web", {
        ...from(release),
        disks: [root, data],
        networks: [lan, dmz],
        memory: { size: "2Gi" },
        tags: ["a", "b"],
      });
      await stage.pass(60_000);
      const writes = stage.writes.length;
      const edited = await stage.edit("web", {
        disks: [
          { ...data, size: "2048Mi", bus: "scsi", cache: "None", backup: true, ssd: false },
          { ...root, size: "10240Mi", readOnly: false, replicate: true },
        ],
        networks: [
          { ...dmz, model: "virtio", firewall: false, connected: true },
          { ...lan, macAddress: macAddress.toUpperCase() },
        ],
        memory: { size: "2048Mi", ballooning: true },
        cpu: { sockets: 1, numa: false },
        tags: ["b", "a"],
        startOnBoot: true,
        deletionProtection: false,
      });
      const { generation } = edited.metadata;
      const vm = await stage.when("web", ({ status }) => status?.observedGeneration === generation);
      await stage.pass(300_000);
      assert.deepEqual(stage.writeRequests.slice(writes), []);
      assert.equal(condition(await stage.vm("web"), "Synced"), "True Succeeded");
      assert.equal(condition(vm, "Ready"), "True Succeeded");
    });

    it(`Tel-1379: the rights that ${release} knows, and no more, are enough for a machine's life`, async () => {
      const privileges = `${rights} ${rightsOf[release]}`.split(" ");
      const stage = await Stage.open(release, {
        before: ({ proxmox }) => {
          const { state } = proxmox.cluster;
          state.roles["Berth"] = privileges;
          const grant = { path: "/", type: "user", ugid: tokenUser, propagate: 1 } as const;
          state.acl = [{ ...grant, roleid: "Berth" }];
        },
      });
      const vm = await stage.make("web", { ...from(release), disks: [root, data] });
      await stage.edit("web", { tags: ["a"], disks: [root], powerState: "Stopped" });
      await stage.synced("web");
      await stage.edit("web", { powerState: "Running" });
      await stage.synced("web");
      if (release !== "7.4") {
        await stage.when("web", (seen) => condition(seen, "AgentReady") === "True Succeeded");
      }
      await stage.remove("web");
      assert.equal(stage.guests[idOf(vm)], undefined);
      const hypervisor = await stage.simulated.world.client
        .of(hypervisorKind)
        .get({ name: "model" });
      assert.doesNotMatch(JSON.stringify(hypervisor.status), /PermissionDenied|lacks/);
    });
  }

  it("Tel-1339: silent agents hold up neither creation nor plan, and are asked seldom", async () => {
    const agentPath = /\/agent\//;
    const open = { now: 0, most: 0 };
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        if (!agentPath.test(request.path)) return send(request);
        open.now++;
        open.most = Math.max(open.most, open.now);
        try {
          return await send(request);
        } finally {
          open.now--;
        }
      },
      timing: { agentStallMs: 60_000 },
    });
    const { proxmox, world, requests } = stage.simulated;
    const names = ["a", "b", "c"];
    for (const name of names) {
      const vm = await stage.make(name, { placement: { node: "pve1" } });
      const machine = proxmox.cluster.machine(Number(idOf(vm)));
      if (machine?.guest !== undefined) machine.guest.agent = "silent";
    }
    requests.length = 0;
    await stage.pass(600_000);
    const asked = requests.filter(({ path }) => agentPath.test(path)).length;
    assert.ok(asked > 0 && asked <= 10 * names.length, `${asked} questions in ten minutes`);
    assert.equal(open.most, 1, "of the node's workers they hold one");
    for (const name of names) {
      assert.match(condition(await stage.vm(name), "AgentReady"), /^False/);
      const beginMs = world.clock.nowMs();
      await stage.edit(name, { tags: ["now"] });
      await stage.synced(name);
      assert.equal(condition(await stage.vm(name), "Ready"), "True Succeeded");
      assert.ok(world.clock.nowMs() - beginMs < 5_000, `${world.clock.nowMs() - beginMs} ms`);
    }
  });

  it("bpg-1413: 599 on any write is settled by looking, and never sent again blindly", async () => {
    for (const isDone of [true, false]) {
      const hit = new Set<string>();
      const stage = await Stage.open("9.2", {
        between: async (request, send) => {
          const kind = `${request.method} ${request.path.replaceAll(/\d+/g, "N")}`;
          if (request.method === "GET" || hit.has(kind)) return send(request);
          hit.add(kind);
          if (isDone) await send(request);
          const reason = "Too many redirections";
          return { type: "answered", status: 599, reason, body: "", from: "pve1" };
        },
      });
      await stage.declare("web", { disks: [root, data] });
      await stage.when("web", (vm) => {
        assert.equal(vm.status?.failure, undefined, "an outcome that nobody knows is no failure");
        return condition(vm, "Synced") === "True Succeeded";
      });
      await stage.edit("web", { powerState: "Stopped", shutdown: { graceSeconds: 30 } });
      await stage.synced("web");
      assert.equal(Object.keys(stage.guests).length, 1);
      assert.equal(stage.volumes.length, 2, stage.volumes.join());
      const creations = stage.writes.filter((path) => /^POST \/nodes\/[^/]+\/qemu$/.test(path));
      assert.equal(creations.length, isDone ? 1 : 2);
      await stage.remove("web");
      assert.deepEqual([Object.keys(stage.guests), stage.volumes], [[], []]);
    }
  });
});
