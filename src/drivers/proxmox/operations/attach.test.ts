import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Begun, type Operation, writeMark } from "../../../hypervisor/index.ts";
import { claim, data, driverOn, open, ScriptedServer } from "../fixture.ts";
import { markFor } from "./standing.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const volume = `zfs:vm-${id}-disk-1`;
const gib = 1024 ** 3;
const since = "2026-01-02T03:00:00Z";
const mark = markFor(claim, { disks: { root: "scsi0", data: "scsi1" }, networks: {} });
const known = {
  id: volume,
  role: "Disk",
  disk: "data",
  state: "Detached",
  size: String(6 * gib),
  proof: "Config",
  since,
} as const;
const here = { claim: { ...claim, volumes: [known] }, at: { node: "pve1", version: "d1" } };
const attach = { kind: "attach", ...here, disk: { name: "data" }, volume } as const;
const destroyDisk = { kind: "destroyDisk", ...here, volume } as const;

interface Scene {
  readonly drives?: Record<string, string>;
  /** What the storage lists; null: nothing. */
  readonly row?: { readonly size: number; readonly ctime?: number } | null;
  readonly pending?: readonly object[];
}

function serverOf({
  drives = { unused0: volume },
  row = { size: 6 * gib },
  pending,
}: Scene): ScriptedServer {
  const smbios1 = `uuid=${claim.identity}`;
  const config = { digest: "d1", description: writeMark("", mark), smbios1, ...drives };
  return new ScriptedServer({
    [`GET ${at}/config`]: data(config),
    ...(pending && { [`GET ${at}/pending`]: data(pending) }),
    "GET /nodes/pve1/storage/zfs/content": data(
      row === null ? [] : [{ volid: volume, vmid: id, content: "images", ...row }],
    ),
    [`PUT ${at}/config`]: data(null),
    [`POST ${at}/config`]: data(null),
    [`DELETE ${at}`]: data(null),
    [`GET ${at}/snapshot`]: data([]),
  });
}

/** The outcome of an operation, and how much it sent. */
async function begin(
  operation: Operation,
  scene: Scene = {},
): Promise<{ begun: Begun; sent: number }> {
  const server = serverOf(scene);
  const begun = await driverOn(server).begin(operation, open);
  return { begun, sent: server.writes.length };
}

describe("a recorded volume that is not in the place of its disk", () => {
  it("is attached as that disk, and destroyed with its word", async () => {
    assert.deepEqual(await begin(attach), { begun: { outcome: "done" }, sent: 1 });
    assert.equal((await begin(destroyDisk)).sent, 1);
  });

  it("is missing where somebody removed it from its storage", async () => {
    const { begun, sent } = await begin(attach, { row: null });
    assert(begun.outcome === "refused" && begun.failure.category === "Missing");
    assert.match(begun.failure.message, /^The disk data was the machine's, .* no longer exists/);
    assert.equal(sent, 0);
  });

  it("is another volume where it has another size: neither attached nor destroyed", async () => {
    for (const operation of [attach, destroyDisk]) {
      for (const size of [9 * gib, 5 * gib]) {
        const { begun, sent } = await begin(operation, { row: { size } });
        assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
        assert.equal(sent, 0);
      }
    }
  });

  it("is that volume also where it has the size that an operation was to give it", async () => {
    const grown = { ...known, growsTo: String(9 * gib) };
    const operation = { ...attach, claim: { ...claim, volumes: [grown] } };
    const sentAt = async (size: number): Promise<number> => {
      return (await begin(operation, { row: { size } })).sent;
    };
    assert.deepEqual([await sentAt(6 * gib), await sentAt(9 * gib)], [1, 1]);
    assert.deepEqual([await sentAt(8 * gib), await sentAt(10 * gib)], [0, 0]);
  });

  it("is another volume where it was created after the recorded one was detached", async () => {
    const sinceSeconds = Date.parse(since) / 1000;
    const before = await begin(attach, { row: { size: 6 * gib, ctime: sinceSeconds - 60 } });
    assert.equal(before.sent, 1);
    for (const operation of [attach, destroyDisk]) {
      const row = { size: 6 * gib, ctime: sinceSeconds + 3600 };
      const { begun, sent } = await begin(operation, { row });
      assert.deepEqual([begun.outcome, sent], ["refused", 0]);
    }
  });

  it("is not freed with its VM where it is another volume", async () => {
    const destroy = { kind: "destroy", ...here, volumes: [volume] } as const;
    assert.equal((await begin(destroy)).sent, 1);
    const { begun, sent } = await begin(destroy, { row: { size: 9 * gib } });
    assert.deepEqual([begun.outcome, sent], ["refused", 0]);
  });

  it("is not destroyed where nothing proves that it is ours", async () => {
    const { proof: _proof, ...unproven } = known;
    const operation = { ...destroyDisk, claim: { ...claim, volumes: [unproven] } };
    const { begun, sent } = await begin(operation);
    assert.deepEqual([begun.outcome, sent], ["refused", 0]);
  });
});

describe("a volume that another slot of the same VM has", () => {
  it("is not attached a second time", async () => {
    for (const slot of ["virtio1", "scsi5"]) {
      const { begun, sent } = await begin(attach, { drives: { [slot]: `${volume},size=6G` } });
      assert(begun.outcome === "refused" && begun.failure.message.includes(slot));
      assert.equal(sent, 0);
    }
  });

  it("is not attached a second time while the other slot waits for a restart", async () => {
    const waiting = [
      { key: "virtio1", pending: volume },
      { key: "virtio1", value: volume, delete: 1 },
    ];
    for (const row of waiting) {
      const { begun, sent } = await begin(attach, { drives: {}, pending: [row] });
      assert.deepEqual([begun.outcome, sent], ["refused", 0]);
    }
  });

  it("is said to go by itself where the other slot is emptied with the next restart", async () => {
    const leaving = { key: "virtio1", value: volume, delete: 1 };
    const { begun } = await begin(attach, { drives: {}, pending: [leaving] });
    assert(begun.outcome === "refused");
    assert.match(begun.failure.remedy ?? "", /^It is detached with the next restart/);
  });
});

describe("a volume that leaves the slot of its disk with the next restart", () => {
  const leaving = { key: "scsi1", value: `${volume},size=6G`, delete: 1 };

  it("stays: its removal is taken back, and nothing is attached", async () => {
    const server = serverOf({ drives: {}, pending: [leaving] });
    const begun = await driverOn(server).begin(attach, open);
    assert.equal(begun.outcome, "done");
    assert.deepEqual(
      server.writes.map(({ params }) => params),
      [{ revert: "scsi1", digest: "d1" }],
    );
  });

  it("does not stay where another slot has it as well", async () => {
    const twice = [leaving, { key: "virtio1", pending: volume }];
    const { begun, sent } = await begin(attach, { drives: {}, pending: twice });
    assert.deepEqual([begun.outcome, sent], ["refused", 0]);
  });

  it("does not stay where it is not what was recorded", async () => {
    const scene = { drives: {}, pending: [leaving], row: { size: 9 * gib } };
    const { begun, sent } = await begin(attach, scene);
    assert.deepEqual([begun.outcome, sent], ["refused", 0]);
  });
});
