import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { sendTo } from "../wire/index.ts";
import { Dice } from "./dice.ts";
import { Site } from "./site.ts";

interface Bench {
  readonly site: Site;
  /** Volumes that the law heard to be gone. */
  readonly gone: string[];
  /** Sends a request as Berth does, and looks at everything while its worker goes on. */
  readonly does: (
    method: "POST" | "DELETE",
    path: string,
    params?: Record<string, string>,
  ) => Promise<void>;
}

async function open(): Promise<Bench> {
  const clock = new VirtualClock();
  const site = new Site({ name: "east", release: "8.4", clock, dice: Dice.of(1, "site") });
  const gone: string[] = [];
  site.onVolumeGone = (name) => gone.push(name);
  const send = sendTo(site.model, { id: site.tokenId, secret: site.tokenSecret });
  const does: Bench["does"] = async (method, path, params = {}) => {
    const replied = send({ method, path: `/nodes/${path}`, params });
    for (let i = 0; i < 400; i++) {
      await Promise.resolve();
      clock.advance(50);
      site.survey();
    }
    const reply = await replied;
    assert.ok(reply.type === "answered" && reply.status === 200, JSON.stringify(reply));
  };
  await does("POST", "pve1/qemu", { vmid: "100", scsi0: "local-zfs:1" });
  assert.ok(site.volumes.has("pve1:rpool/data/vm-100-disk-0"));
  return { site, gone, does };
}

describe("a disk is not gone", () => {
  it("where its VM is migrated with it", async () => {
    const { site, gone, does } = await open();
    await does("POST", "pve1/qemu/100/migrate", { target: "pve2" });
    assert.deepEqual([...site.volumes.keys()], ["pve2:rpool/data/vm-100-disk-0"]);
    assert.deepEqual(gone, []);
    await does("DELETE", "pve2/qemu/100");
    assert.deepEqual(gone, ["vm-100-disk-0"]);
  });

  it("where it is moved to another storage", async () => {
    const { site, gone, does } = await open();
    const params = { disk: "scsi0", storage: "shared", delete: "1" };
    await does("POST", "pve1/qemu/100/move_disk", params);
    assert.equal(site.volumes.size, 1);
    assert.deepEqual(gone, []);
    await does("DELETE", "pve1/qemu/100");
    assert.equal(gone.length, 1);
  });
});

it("a disk is gone where the copy that was to take its place is gone, too", async () => {
  const { site, gone, does } = await open();
  const [disk] = site.volumesNamed("local-zfs:vm-100-disk-0", "100");
  assert.ok(disk !== undefined && site.hasAny([disk]));
  await does("POST", "pve1/qemu/100/migrate", { target: "pve2" });
  assert.ok(site.hasAny([disk]));
  await does("DELETE", "pve2/qemu/100");
  assert.ok(!site.hasAny([disk]));
  assert.equal(gone.length, 1);
});
