import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { vmImageKind } from "../../api/index.ts";
import { releases } from "../../sim/index.ts";
import { idOf, root, Stage, type Spec } from "./testing.ts";

const stopped: Spec = { powerState: "Stopped", placement: { node: "pve1" } };

function addVolume({ state }: Stage, name: string, vmid: number): void {
  const volume = { name, content: "images", format: "raw", createdMs: 0, data: name } as const;
  const sizeBytes = 2 * 2 ** 30;
  const there = state.volumes["pve1:rpool/data"] ?? [];
  state.volumes["pve1:rpool/data"] = [...there, { ...volume, sizeBytes, usedBytes: 0, vmid }];
}

/** What lies on a volume, by its id. */
function dataOf({ simulated }: Stage, volume: string | undefined): string | undefined {
  return simulated.proxmox.volume("pve1", volume ?? "")?.data;
}

describe("what fills a machine's disks", () => {
  for (const release of releases) {
    it(`is a disk that is there, copied and left alone, on ${release}`, async () => {
      const stage = await Stage.open(release);
      addVolume(stage, "vm-777-disk-0", 777);
      const diskId = "local-zfs:vm-777-disk-0";
      const source = { importedDisk: { diskId, format: "raw" as const } };
      const vm = await stage.make("web", { ...stopped, source, disks: [{ ...root, size: "4Gi" }] });
      const [disk] = vm.status?.disks ?? [];
      assert.notEqual(disk?.volume, diskId);
      assert.equal(dataOf(stage, disk?.volume), "vm-777-disk-0");
      assert.equal(disk?.size, String(4 * 2 ** 30));
      await stage.remove("web");
      assert.deepEqual(stage.volumes, ["vm-777-disk-0"]);
    });

    it(`is another machine with several disks, by import, on ${release}`, async () => {
      const stage = await Stage.open(release);
      const disks = [
        { ...root, size: "4Gi" },
        { name: "data", size: "2Gi", storage: "local-zfs" },
      ];
      const original = await stage.make("src", { ...stopped, disks, source: { blank: {} } });
      for (const { name, volume = "" } of original.status?.disks ?? []) {
        const found = stage.simulated.proxmox.volume("pve1", volume);
        if (found !== undefined) found.data = name;
      }
      const clone = { vmRef: { name: "src" }, disks: [{ name: "more", device: "scsi1" }] };
      const vm = await stage.make("web", {
        ...stopped,
        source: { clone },
        disks: [disks[1], { ...root, size: "6Gi" }, { ...disks[1], name: "more" }].filter(
          (disk) => disk !== undefined,
        ),
      });
      const data = Object.fromEntries(
        (vm.status?.disks ?? []).map(({ name, volume }) => [name, dataOf(stage, volume)]),
      );
      assert.deepEqual(data, { root: "root", more: "data", data: undefined });
      assert.ok(stage.writes.every((path) => !path.endsWith("/clone")));
      const digest = stage.guests[idOf(original)]?.text;
      await stage.remove("web");
      assert.equal(stage.guests[idOf(original)]?.text, digest);
      assert.equal(stage.volumes.length, 2);
    });

    it(`is no path on a host on ${release}, which a token cannot read: said first`, async () => {
      const stage = await Stage.open(release);
      const importedDisk = { diskId: "x", path: "/var/tmp/x.qcow2" };
      await stage.declare("web", { ...stopped, source: { importedDisk } });
      const vm = await stage.failed("web", "APINotSupported");
      assert.match(vm.status?.failure?.message ?? "", /importedDisk\.path/);
      assert.deepEqual([stage.writes, stage.guests], [[], {}]);
    });
  }
});

describe("an image on the web", () => {
  const sha256 = "ef".repeat(32);
  const fetched = {
    kind: "file",
    sizeBytes: 2 ** 28,
    mimeType: "x",
    virtualBytes: 2 ** 31,
  } as const;

  async function declareImage(stage: Stage): Promise<void> {
    const http = { url: "https://cloud.example/x.img", checksum: `sha256:${sha256}` };
    await stage.simulated.world.client.of(vmImageKind).create({
      apiVersion: "berth.dev/v1alpha1",
      kind: "VMImage",
      metadata: { namespace: "default", name: "web" },
      spec: { source: { http } },
    });
  }

  for (const release of releases.filter((one) => one !== "7.4")) {
    it(`is fetched once by the node of ${release}, with its sum and named by it`, async () => {
      const stage = await Stage.open(release, { fetch: async () => ({ ...fetched, sha256 }) });
      await declareImage(stage);
      const spec: Spec = { ...stopped, source: { image: { name: "web" } } };
      await stage.declare("a", spec);
      await stage.declare("b", spec);
      for (const name of ["a", "b"]) await stage.synced(name);
      const calls = stage.writeRequests.filter(({ path }) => path.endsWith("/download-url"));
      assert.deepEqual(
        calls.map(({ params }) => [params?.["checksum"], params?.["filename"]]),
        [[sha256, `berth-sha256-${sha256}.qcow2`]],
      );
    });
  }

  it("with another sum is never used: no machine is made, and the cause is said", async () => {
    const sum = "00".repeat(32);
    const stage = await Stage.open("9.2", { fetch: async () => ({ ...fetched, sha256: sum }) });
    await declareImage(stage);
    await stage.declare("a", { ...stopped, source: { image: { name: "web" } } });
    const isSaid = await stage.until(async () => {
      const at = { namespace: "default", name: "web" };
      const { status } = await stage.simulated.world.client.of(vmImageKind).get(at);
      return /checksum/i.test(status?.failure?.message ?? "");
    });
    assert.ok(isSaid);
    assert.deepEqual([stage.guests, stage.volumes], [{}, []]);
  });
});

describe("the disc of the first boot", () => {
  const minutes = 60_000;
  const cloudInit = { userData: { inline: "#cloud-config\nruncmd: [id]\n" } };

  function discs({ state }: Stage): number {
    const files = Object.values(state.volumes).flat();
    return files.filter(({ name }) => name.includes("berth-seed")).length;
  }

  it("goes after 15 minutes of a guest without an agent, and not before", async () => {
    const stage = await Stage.open("9.2");
    await stage.make("web", { cloudInit, guestAgent: { enabled: false } });
    await stage.pass(14 * minutes);
    assert.equal(discs(stage), 1);
    assert.ok(await stage.until(() => discs(stage) === 0, 3 * minutes));
    await stage.synced("web");
  });

  it("waits for as long as the machine never ran, and goes with it", async () => {
    const stage = await Stage.open("9.2");
    await stage.make("web", { cloudInit, powerState: "Stopped" });
    await stage.pass(16 * minutes);
    assert.equal(discs(stage), 1);
    await stage.remove("web");
    assert.equal(discs(stage), 0);
  });
});
