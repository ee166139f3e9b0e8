import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  type Begun,
  type ClaimedMachine,
  type Operation,
  writeMark,
} from "../../../hypervisor/index.ts";
import { claim, data, driverOn, open, ScriptedServer, scriptClock } from "../fixture.ts";
import { pathPart, type PveReply } from "../wire/wire.ts";
import { markFor } from "./standing.ts";

// A storage that was not mounted when Berth created its volume is mounted again: the name leads to
// a stranger's volume. Every write is answered with success.

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const volume = `local:${id}/vm-${id}-disk-0.raw`;
const gib = 1024 ** 3;
const day = 86_400;
const reserved = Date.parse(claim.reservedAt ?? "") / 1000;
const known = {
  id: volume,
  role: "Disk",
  disk: "root",
  storage: "local",
  state: "Attached",
  size: String(6 * gib),
  proof: "Config",
  madeBy: "op-1",
  onDelete: "Delete",
} as const;

type Known = NonNullable<ClaimedMachine["volumes"]>[number];

interface Scene {
  readonly known?: Known;
  readonly claim?: Partial<ClaimedMachine>;
  readonly drives?: Record<string, string>;
  readonly row?: { readonly size?: number; readonly ctime?: number };
  readonly type?: string;
  /** How far the node's clock is ahead. */
  readonly ahead?: number;
}

interface Done {
  readonly begun: Begun;
  readonly sent: number;
  readonly lists: number;
}

async function begin(
  kind: "destroy" | "destroyDisk" | "removeVolume",
  scene: Scene,
): Promise<Done> {
  const { drives = { scsi0: `${volume},size=6G` }, row, type = "dir", ahead = 0 } = scene;
  const mark = markFor(claim, { disks: { root: "scsi0" }, networks: {} });
  const smbios1 = `uuid=${claim.identity}`;
  const config = { digest: "d1", description: writeMark("", mark), smbios1, ...drives };
  const listed = { volid: volume, vmid: id, content: "images", size: 6 * gib, ...row };
  const storage = { storage: "local", type, content: "images", active: 1, enabled: 1 };
  const time = Math.floor(scriptClock.nowMs() / 1000) + ahead;
  const script: Record<string, PveReply> = {
    [`GET ${at}/config`]: data(config),
    [`GET ${at}/snapshot`]: data([]),
    "GET /nodes/pve1/storage": data([storage]),
    "GET /nodes/pve1/storage/local/content": data([listed]),
    "GET /cluster/resources": data([]),
    [`DELETE ${at}`]: data(null),
    [`PUT ${at}/config`]: data(null),
    [`POST ${at}/config`]: data(null),
    [`DELETE /nodes/pve1/storage/local/content/${pathPart(volume)}`]: data(null),
  };
  const server = new ScriptedServer(script);
  // The clock of a scripted server agrees with Berth's: here the node has its own.
  const send: typeof server.send = async (request) => {
    if (request.path !== "/nodes/pve1/time") return server.send(request);
    return data({ timezone: "UTC", time });
  };
  const driver = driverOn(Object.assign(new ScriptedServer(script), { send }));
  const volumes = [scene.known ?? known];
  const about = { claim: { ...claim, ...scene.claim, volumes }, volume, volumes: [volume] };
  const operation: Operation = {
    kind,
    node: "pve1",
    at: { node: "pve1", version: "d1" },
    ...about,
  };
  const begun = await driver.begin(operation, open);
  const lists = server.requests.filter(({ path }) => path.endsWith("/content")).length;
  return { begun, sent: server.writes.length, lists };
}

/** In the place of its disk; detached; and left behind by a VM that does not refer to it. */
const ways = {
  destroy: {},
  destroyDisk: { drives: { unused0: volume } },
  removeVolume: { drives: {} },
} as const;

for (const kind of ["destroy", "destroyDisk", "removeVolume"] as const) {
  const way: Scene = ways[kind];

  describe(`a volume that ${kind} is to free`, () => {
    it("is a stranger's where it is older than the Claim", async () => {
      assert.equal((await begin(kind, { ...way, row: { ctime: reserved + 5 } })).sent, 1);
      const { begun, sent } = await begin(kind, { ...way, row: { ctime: reserved - 90 * day } });
      assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
      assert.match(begun.failure.message, /2025-10-04T03:04:05Z.*2026-01-02T03:04:05Z/);
      assert.match(begun.failure.remedy ?? "", /onDelete: Retain for the disk root/);
      assert.equal(sent, 0);
    });

    it("is told from ours by the node's clock, whatever that says", async () => {
      const ahead = 30 * day;
      const ours = await begin(kind, { ...way, ahead, row: { ctime: reserved + ahead } });
      const older = await begin(kind, { ...way, ahead, row: { ctime: reserved + 60 } });
      assert.deepEqual([ours.sent, older.sent], [1, 0]);
      const behind = await begin(kind, { ...way, ahead: -ahead, row: { ctime: reserved - ahead } });
      assert.equal(behind.sent, 1);
    });

    it("may be older where no operation for the Claim made it", async () => {
      const { madeBy: _madeBy, ...returned } = known;
      for (const one of [{ ...known, proof: "Taken" }, { ...known, proof: "Recorded" }, returned]) {
        const scene = { ...way, known: one as Known, row: { ctime: reserved - 90 * day } };
        assert.equal((await begin(kind, scene)).sent, 1, JSON.stringify(one));
      }
    });
  });
}

describe("a volume that goes with its VM", () => {
  it("is a stranger's where it is older than the very operation that made ours", async () => {
    const since = "2026-06-01T00:00:00Z";
    const made = { node: "pve1", storage: "local", listed: [], complete: false };
    const row = { ctime: Date.parse(since) / 1000 - day };
    const sentFor = async (operation: string): Promise<number> => {
      const allocation = { ...made, operation, since };
      return (await begin("destroy", { claim: { allocation }, row })).sent;
    };
    assert.deepEqual([await sentFor("op-1"), await sentFor("op-2")], [0, 1]);
  });

  it("is a stranger's where its storage lists another size", async () => {
    for (const size of [5 * gib, 7 * gib]) {
      const { begun, sent } = await begin("destroy", { row: { size } });
      assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
      assert.equal(sent, 0);
    }
    const rounded = await begin("destroy", { row: { size: 6 * gib + 4 * 1024 ** 2 } });
    assert.equal(rounded.sent, 1, "its storage rounds up to whole extents");
    const grown = { ...known, growsTo: String(9 * gib) };
    assert.equal((await begin("destroy", { known: grown, row: { size: 9 * gib } })).sent, 1);
  });

  it("has no time of its own as a linked clone on btrfs", async () => {
    const row = { ctime: reserved - 90 * day };
    assert.equal((await begin("destroy", { type: "btrfs", row })).sent, 1);
  });

  it("costs one list for its storage", async () => {
    assert.equal((await begin("destroy", {})).lists, 1);
  });
});
