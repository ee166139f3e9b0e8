import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { vmImageKind, type VMImage } from "../../api/index.ts";
import { releases } from "../../sim/index.ts";
import { condition, listClaims } from "../testing/world.ts";
import { idOf, root, Stage, type Spec } from "./testing.ts";

const gib = 1024 ** 3;
const digest = "ab".repeat(32);
const own = `berth-sha256-${digest}.qcow2`;
const theirs = "debian-12-generic-amd64.qcow2";

/** Failures that people met while a machine was made. Each is named after the thread. */
describe("making a machine", () => {
  it("seed-0: leftover volumes under the chosen id are named once, left alone, and waited for", async () => {
    const names = ["vm-200-cloudinit", "vm-200-disk-0"];
    const stage = await Stage.open("9.2", {
      before: ({ proxmox }) => {
        proxmox.cluster.state.volumes["pve1:rpool/data"] = names.map((name) => {
          const volume = { name, content: "images", format: "raw", vmid: 200 } as const;
          return { ...volume, sizeBytes: 10 * gib, usedBytes: 10 * gib, createdMs: 0 };
        });
      },
    });
    const before = structuredClone(stage.state.volumes["pve1:rpool/data"]);
    const spec: Spec = {
      externalId: "200",
      placement: { node: "pve1" },
      cloudInit: { user: { name: "ada" } },
    };
    await stage.declare("web", spec);
    const vm = await stage.failed("web", "OrphanedVolumes");
    for (const name of names) assert.match(vm.status?.failure?.message ?? "", new RegExp(name));
    assert.equal(condition(vm, "Stalled"), "True OrphanedVolumes");
    await stage.pass(600_000);
    const later = await stage.vm("web");
    assert.deepEqual(later, vm, "said once, and no retry is promised");
    assert.deepEqual(
      [vm.status?.failure?.attempts, vm.status?.failure?.nextRetryAt],
      [1, undefined],
    );
    assert.deepEqual(stage.writes, [], "no retry");
    assert.deepEqual(stage.state.volumes["pve1:rpool/data"], before, "nothing is touched");
    stage.state.volumes["pve1:rpool/data"] = [];
    await stage.pass(1_500_000);
    assert.equal(idOf(await stage.synced("web")), "200");
  });

  it("seed-1: what cannot be brought in is refused before anything is made, and by no 501", async () => {
    const stage = await Stage.open("7.4");
    await stage.declare("web");
    const vm = await stage.failed("web", "APINotSupported");
    assert.match(vm.status?.failure?.remedy ?? "", /clone/);
    await stage.pass(600_000);
    assert.deepEqual(stage.writes, []);
    assert.deepEqual(stage.guests, {});
    const claims = await listClaims(stage.simulated.world.client);
    assert.ok(claims.every(({ spec }) => spec.preflight === "Pending"));
    assert.ok(stage.simulated.requests.every(({ path }) => !path.includes("importdisk")));
    await stage.edit("web", { source: { image: null, blank: {} } });
    await stage.synced("web");
  });

  for (const fileName of [undefined, theirs]) {
    it(`seed-3: an image that is there is used: ${fileName ?? "one of Berth's"}`, async () => {
      const stage = await Stage.open("9.2", {
        before: ({ proxmox }) => {
          for (const volumes of Object.values(proxmox.cluster.state.volumes)) {
            const there = volumes.find(({ name }) => name.endsWith(theirs));
            if (there !== undefined) volumes.push({ ...there, name: `import/${own}` });
          }
        },
      });
      const image = await haveImage(stage, fileName);
      await stage.make("web", { source: { image: { name: "bookworm" } } });
      assert.ok(stage.writes.every((path) => !/download-url|upload/.test(path)));
      const { status = {} } = await image();
      assert.deepEqual([status.failure, status.copies?.[0]?.brought], [undefined, false]);
      const { conditions = [] } = status;
      const isUnverified = conditions.some(({ type }) => type === "ChecksumUnverified");
      assert.ok(isUnverified, "nobody knows whether it is the file that was asked for");
      await stage.remove("web");
      const at = { namespace: "default", name: "bookworm" };
      await stage.simulated.world.client.of(vmImageKind).delete(at);
      await stage.pass(600_000);
      const left = stage.state.volumes["pve1:/var/lib/vz"]?.map(({ name }) => name) ?? [];
      for (const name of [theirs, own]) {
        assert.ok(left.includes(`import/${name}`), "what Berth did not bring is never deleted");
      }
    });
  }

  it("CAPPX-151: a storage that takes minutes gets one machine, also over a restart", async () => {
    const stage = await Stage.open("8.4", { timing: { copyPerGibMs: 100_000, allocateMs: 9_000 } });
    await stage.declare("web", { disks: [{ ...root, storage: "local" }] });
    const isCopying = await stage.until(() => stage.writes.some((path) => /config/.test(path)));
    assert.ok(isCopying);
    await stage.pass(60_000);
    stage.restart();
    const isThere = await stage.until(async () => {
      return condition(await stage.vm("web"), "Ready") === "True Succeeded";
    }, 1_800_000);
    assert.ok(isThere, JSON.stringify((await stage.vm("web"))?.status));
    assert.equal(Object.keys(stage.guests).length, 1);
    assert.equal(stage.volumes.length, 1);
    const made = stage.writes.filter((path) => /^POST \/nodes\/[^/]+\/qemu$/.test(path));
    assert.equal(made.length, 1);
    const filled = stage.writeRequests.filter(({ params }) => {
      return JSON.stringify(params ?? {}).includes("import-from");
    });
    assert.equal(filled.length, 1);
  });

  it("harvester-5028: that there is not enough space is said at the top, in figures", async () => {
    const stage = await Stage.open("9.2");
    stage.simulated.proxmox.setCapacity("pve1:rpool/data", 4 * gib);
    await stage.pass(60_000);
    await stage.declare("web", { placement: { node: "pve1" } });
    const vm = await stage.failed("web", "QuotaExceeded");
    const ready = vm.status?.conditions?.find(({ type }) => type === "Ready");
    assert.equal(ready?.reason, "QuotaExceeded");
    assert.match(ready?.message ?? "", /local-zfs has 4 GiB left of 10 GiB needed/);
    assert.deepEqual(stage.writes, []);
    stage.simulated.proxmox.setCapacity("pve1:rpool/data", 400 * gib);
    await stage.synced("web");
  });

  it("harvester-5028: a storage that fills up under the copy is the cause that is shown", async () => {
    const stage = await Stage.open("9.2", { timing: { copyPerGibMs: 20_000 } });
    await stage.declare("web", {
      disks: [{ name: "root", storage: "local" }],
      placement: { node: "pve1" },
    });
    await stage.until(() => stage.writes.some((path) => /config/.test(path)));
    await stage.pass(2_000);
    stage.simulated.proxmox.setCapacity("pve1:/var/lib/vz", gib / 4);
    const vm = await stage.when("web", ({ status }) => status?.failure !== undefined);
    const ready = vm.status?.conditions?.find(({ type }) => type === "Ready");
    assert.match(ready?.message ?? "", /No space left on device/);
    stage.simulated.proxmox.setCapacity("pve1:/var/lib/vz", 400 * gib);
    await stage.synced("web");
    assert.equal(Object.keys(stage.guests).length, 1);
    assert.equal(stage.volumes.length, 1);
  });

  it("Tel-478: no secret is repeated, whatever the server says of it", async () => {
    const secret = "$6$salt$verysecretverysecret";
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        if (request.params?.["cipassword"] === undefined) return send(request);
        const errors = { cipassword: `invalid format - "${request.params["cipassword"]}"` };
        const body = JSON.stringify({ data: null, errors, message: `bad value ${secret}` });
        const reason = "Parameter verification failed.";
        return { type: "answered", status: 400, reason, body, from: "pve1" };
      },
    });
    await stage.declare("web", { cloudInit: { user: { name: "ada", passwordHash: secret } } });
    const vm = await stage.when("web", ({ status }) => status?.failure !== undefined);
    assert.match(vm.status?.failure?.message ?? "", /cipassword/);
    const { world } = stage.simulated;
    const told = JSON.stringify([vm.status, world.log]);
    assert.doesNotMatch(told, /verysecret/);
  });

  for (const release of releases) {
    it(`bpg-1330: tasks that end with warnings on ${release} made a machine, once`, async () => {
      const stage = await Stage.open(release, {
        between: async (request, send) => {
          const reply = await send(request);
          if (!/\/tasks\/[^/]+\/status$/.test(request.path)) return reply;
          return reply.type === "answered"
            ? {
                ...reply,
                body: reply.body.replace('"exitstatus":"OK"', '"exitstatus":"WARNINGS: 1"'),
              }
            : reply;
        },
      });
      const source: Spec = release === "7.4" ? { source: { blank: {} } } : {};
      await stage.declare("web", source);
      await stage.when("web", (vm) => {
        assert.equal(vm.status?.failure, undefined, "a warning is no failure");
        return condition(vm, "Synced") === "True Succeeded";
      });
      assert.equal(Object.keys(stage.guests).length, 1);
      assert.equal(stage.volumes.length, 1);
      await stage.remove("web");
      assert.deepEqual(stage.guests, {});
    });
  }
});

/** Declares the image by its URL, and gives a way to look at it. */
async function haveImage(
  stage: Stage,
  fileName: string | undefined,
): Promise<() => Promise<VMImage>> {
  const { client } = stage.simulated.world;
  const http = { url: "https://cloud.example/bookworm.qcow2", checksum: `sha256:${digest}` };
  const named = fileName === undefined ? {} : { fileName };
  await client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: "bookworm" },
    spec: { source: { http }, ...named },
  });
  return () => client.of(vmImageKind).get({ namespace: "default", name: "bookworm" });
}
