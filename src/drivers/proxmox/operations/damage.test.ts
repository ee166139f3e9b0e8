import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Begun, ClaimedMachine, KnownFile, Operation } from "../../../hypervisor/index.ts";
import { writeMark } from "../../../hypervisor/index.ts";
import { formatTime } from "../../../kernel/clock.ts";
import { proxmoxDriver } from "../driver.ts";
import {
  claim,
  data,
  driverOn,
  open,
  scriptClock,
  ScriptedServer,
  tokenId,
  upid,
} from "../fixture.ts";
import { pathPart, type PveReply } from "../wire/wire.ts";
import { markFor } from "./standing.ts";

// Each test names the damage that its guard prevents: here every write is answered with success.

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const basis = { node: "pve1", version: "d1" };
const own = `zfs:vm-${id}-disk-0`;
const spare = `zfs:vm-${id}-disk-1`;
const slots = { disks: { root: "scsi0", data: "scsi1" }, networks: {} };
const config = {
  digest: "d1",
  description: writeMark("", markFor(claim, slots)),
  smbios1: `uuid=${claim.identity}`,
  scsi0: `${own},size=8G`,
};
const none = { [`GET ${at}/snapshot`]: data([{ name: "current" }]) };
const content = "GET /nodes/pve1/storage/zfs/content";
const vms = "GET /cluster/resources";

type Script = Record<string, PveReply>;

/** A task that moved a disk, as the list of a node has it. */
interface Moved {
  readonly upid: string;
  readonly endtime: number;
  readonly status: string;
}

interface Done {
  readonly begun: Begun;
  readonly writes: readonly string[];
  readonly params: readonly unknown[];
}

/** Begins an operation where everything that is not scripted is taken and answered. */
async function begin(operation: Operation, script: Script): Promise<Done> {
  const lenient = new Proxy(script, {
    get: (answers, name) => {
      const key = String(name);
      return answers[key] ?? (key.startsWith("GET ") ? undefined : data(upid("qmconfig", id)));
    },
  });
  const server = new ScriptedServer(lenient);
  const driver = proxmoxDriver({
    send: server.send,
    tokenId,
    clock: scriptClock,
    random: { number: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => "" },
    unlock: { username: "root@pam", password: "secret" },
  });
  const begun = await driver.begin(operation, open);
  return {
    begun,
    writes: server.writes.map(({ method, path }) => `${method} ${path}`),
    params: server.writes.map(({ params }) => params),
  };
}

function volumeRow(volid: string, size = 1): object {
  const vmid = Number(/vm-(\d+)-/.exec(volid)?.[1]);
  return { volid, vmid, content: "images", format: "raw", size };
}

function knowing(...ids: readonly string[]): ClaimedMachine {
  const volumes = ids.map((volume) => {
    return {
      id: volume,
      role: "Disk",
      proof: "Config",
      storage: "zfs",
      state: "Attached",
    } as const;
  });
  return { ...claim, volumes };
}

describe("attaching a disk", () => {
  const disk = { name: "data" };
  const attach = { kind: "attach", claim: knowing(spare), at: basis, disk, volume: spare } as const;

  it("does not push another volume out of its slot", async () => {
    const there = { ...config, scsi1: "zfs:vm-9-disk-0,size=1G" };
    const script = {
      [`GET ${at}/config`]: data(there),
      [content]: data([volumeRow(spare)]),
      [vms]: data([]),
    };
    assert.deepEqual((await begin(attach, script)).writes, []);
  });

  it("does not write a volume into the config that is not there", async () => {
    const script = {
      [`GET ${at}/config`]: data(config),
      [content]: data([volumeRow(own)]),
      [vms]: data([]),
    };
    const { begun, writes } = await begin(attach, script);
    assert.equal(begun.outcome, "refused");
    assert.deepEqual(writes, []);
  });
});

describe("destroying", () => {
  it("does not free a disk that the VM uses until its next restart", async () => {
    const { begun, writes } = await begin(
      { kind: "destroyDisk", claim: knowing(own), at: basis, volume: own },
      {
        [`GET ${at}/config`]: data({ ...config, unused0: own }),
        [`GET ${at}/pending`]: data([{ key: "scsi0", value: `${own},size=8G`, delete: 1 }]),
      },
    );
    assert.equal(begun.outcome, "blocked");
    assert.deepEqual(writes, []);
  });

  it("does not free a disk of a snapshot that is named like saved memory", async () => {
    const named = `zfs:vm-${id}-state-archive`;
    const destroying = (snapshot: object): Promise<Done> => {
      return begin(
        { kind: "destroy", claim, at: basis, volumes: [own] },
        {
          [`GET ${at}/config`]: data(config),
          [`GET ${at}/snapshot`]: data([{ name: "current" }, { name: "old" }]),
          [`GET ${at}/snapshot/old/config`]: data(snapshot),
        },
      );
    };
    assert.equal((await destroying({ scsi5: `${named},size=1G` })).begun.outcome, "refused");
    assert.equal((await destroying({ vmstate: named })).begun.outcome, "task");
  });

  it("does not free a volume with the VM that only a snapshot knows and nobody accounted for", async () => {
    const { begun, writes } = await begin(
      { kind: "destroy", claim, at: basis, volumes: [own] },
      {
        [`GET ${at}/config`]: data(config),
        [`GET ${at}/snapshot`]: data([{ name: "current" }, { name: "old" }]),
        [`GET ${at}/snapshot/old/config`]: data({ scsi5: `zfs:vm-${id}-disk-5,size=1G` }),
      },
    );
    assert.equal(begun.outcome, "refused");
    assert.deepEqual(writes, []);
  });

  it("does not free a disk with the VM that says onDelete: Retain", async () => {
    const [volume] = knowing(own).volumes ?? [];
    assert.ok(volume);
    const kept = { ...claim, volumes: [{ ...volume, onDelete: "Retain" as const }] };
    const script = { [`GET ${at}/config`]: data(config), ...none };
    const operation = { kind: "destroy", claim: kept, at: basis, volumes: [own] } as const;
    assert.deepEqual((await begin(operation, script)).writes, []);
  });
});

describe("discarding a volume on a person's word", () => {
  const rights = {
    "/": { "Sys.Audit": 1 },
    "/vms": { "VM.Audit": 1 },
    "/storage": { "Datastore.Allocate": 1 },
  };
  const volume = "zfs:vm-200-disk-0";
  const seen = { sizeBytes: 1 };
  const discard = { kind: "discardVolume", node: "pve1", volume, confirmed: volume, seen } as const;
  const script = {
    [content]: data([volumeRow(volume)]),
    "GET /access/permissions": data(rights),
    "GET /cluster/nextid": data("200"),
    "GET /cluster/tasks": data([]),
    [vms]: data([]),
  };

  it("frees it where nothing speaks against it", async () => {
    assert.equal((await begin(discard, script)).writes.length, 1);
  });

  it("does not free another volume that got its name since a person saw it", async () => {
    for (const there of [{ size: 2 }, { ctime: 5 }]) {
      const listed = data([{ ...volumeRow(volume), ...there }]);
      const { begun, writes } = await begin(discard, { ...script, [content]: listed });
      assert.equal(begun.outcome, "changed");
      assert.deepEqual(writes, []);
    }
  });

  it("does not take it from work that may be reading it", async () => {
    const tasks = data([{ upid: upid("imgcopy", ""), type: "imgcopy" }]);
    assert.deepEqual((await begin(discard, { ...script, "GET /cluster/tasks": tasks })).writes, []);
  });

  it("does not delete a file that Berth never brought", async () => {
    const file = "zfs:iso/debian.iso";
    const there = data([{ volid: file, content: "iso", size: 1 }]);
    const operation = { ...discard, volume: file, confirmed: file };
    const { begun, writes } = await begin(operation, { ...script, [content]: there });
    assert.equal(begun.outcome, "refused");
    assert.deepEqual(writes, []);
  });
});

describe("images", () => {
  const digest = "a".repeat(64);
  const place = { node: "pve1", storage: "zfs", checksum: `sha256:${digest}` };
  const disc = { ...place, use: "Disc", fileName: "debian.iso" } as const;
  const listed = { [content]: data([{ volid: "zfs:iso/debian.iso", content: "iso", size: 7 }]) };

  it("that are there already are not downloaded over", async () => {
    const operation = { kind: "fetchImage", url: "https://example.org/x", ...disc } as const;
    assert.deepEqual((await begin(operation, listed)).writes, []);
  });

  it("that are whole already are not uploaded over", async () => {
    const chunks = { [Symbol.asyncIterator]: () => never() };
    const knownFile = { size: "7" };
    const operation = { kind: "putImage", ...disc, sizeBytes: 7, chunks, knownFile } as const;
    assert.deepEqual((await begin(operation as unknown as Operation, listed)).writes, []);
  });

  it("that somebody put there since it was looked at are not uploaded over", async () => {
    const put = { kind: "putImage", ...disc, sizeBytes: 9, chunks: never() } as const;
    const row = { volid: "zfs:iso/debian.iso", content: "iso", size: 7, ctime: 1_700_000_000 };
    const upload = async (knownFile?: KnownFile) => {
      const operation = { ...put, ...(knownFile && { knownFile }) };
      return begin(operation as unknown as Operation, { [content]: data([row]) });
    };
    const createdAt = formatTime(row.ctime * 1000);
    for (const other of [undefined, { size: "6" }, { size: "7", createdAt: formatTime(0) }]) {
      const { begun, writes } = await upload(other);
      assert.deepEqual([begun.outcome, writes], ["changed", []]);
    }
    assert.equal((await upload({ size: "7", createdAt })).writes.length, 1);
  });

  it("that got the name of another one since it was decided about are not deleted", async () => {
    const tasks = { "GET /cluster/tasks": data([]) };
    const file = { storage: "zfs", name: disc.fileName, content: "ISO" } as const;
    const fileClaim = { externalId: "f", target: "File", state: "Bound", file } as const;
    const removal = { kind: "removeImage", ...disc, fileClaim } as const;
    const other = { ...removal, seen: { sizeBytes: 8 } };
    assert.deepEqual((await begin(other, { ...listed, ...tasks })).writes, []);
    const same = { ...removal, seen: { sizeBytes: 7 } };
    assert.equal((await begin(same, { ...listed, ...tasks })).writes.length, 1);
  });

  it("that Berth did not bring are not deleted", async () => {
    const tasks = { "GET /cluster/tasks": data([]) };
    const file = { storage: "zfs", name: disc.fileName, content: "ISO" } as const;
    const fileClaim = { externalId: "f", target: "File", state: "Released", file } as const;
    const operation = { kind: "removeImage", ...disc, fileClaim } as const;
    const { begun, writes } = await begin(operation, { ...listed, ...tasks });
    assert.equal(begun.outcome, "refused");
    assert.deepEqual(writes, []);
  });
});

function never(): AsyncIterator<Uint8Array> {
  return { next: () => Promise.resolve({ done: true, value: undefined }) };
}

describe("the disc of a first boot", () => {
  const other = "berth-seed-00000000-0000-4000-8000-00000000beef-1.iso";
  const place = { claim, node: "pve1", storage: "zfs", fileName: other } as const;

  it("is not written over that of another VM", async () => {
    const operation = { kind: "putSeed", ...place, content: new Uint8Array(3) } as const;
    assert.deepEqual((await begin(operation, { [content]: data([]) })).writes, []);
  });

  it("is not deleted where it is another one than was decided about", async () => {
    const fileName = `berth-seed-${claim.identity}-1.iso`;
    const there = data([{ volid: `zfs:iso/${fileName}`, content: "iso", size: 3 }]);
    const script = { [content]: there, [`GET ${at}/config`]: data(config) };
    const removal = { kind: "removeSeed", ...place, fileName } as const;
    assert.deepEqual((await begin({ ...removal, seen: { sizeBytes: 4 } }, script)).writes, []);
    const same = { ...removal, seen: { sizeBytes: 3 } };
    assert.equal((await begin(same, script)).writes.length, 1);
  });

  it("is not deleted where it is that of another VM", async () => {
    const there = data([{ volid: `zfs:iso/${other}`, content: "iso", size: 3 }]);
    const script = { [content]: there, [`GET ${at}/config`]: data(config) };
    assert.deepEqual((await begin({ kind: "removeSeed", ...place }, script)).writes, []);
  });
});

describe("writing the size of a grown disk down", () => {
  it("does not undo a change that somebody made meanwhile: the digest goes along", async () => {
    const sizeBytes = 9 * 1024 ** 3;
    const { params } = await begin(
      { kind: "grow", claim, at: basis, disk: "root", sizeBytes, isRepeated: true },
      { [`GET ${at}/config`]: data(config), [content]: data([volumeRow(own, sizeBytes)]) },
    );
    assert.deepEqual(params, [{ scsi0: `${own},size=9G`, digest: "d1" }]);
  });
});

describe("moving a disk to another storage", () => {
  it("does not move what somebody put there meanwhile: the digest goes along", async () => {
    const operation = { kind: "moveDisk", claim, at: basis, disk: "root", storage: "x" } as const;
    const { params } = await begin(operation, { [`GET ${at}/config`]: data(config) });
    assert.deepEqual(params, [{ disk: "scsi0", storage: "x", delete: 1, digest: "d1" }]);
  });
});

describe("transferring a disk to a disk-holder VM", () => {
  const holder: ClaimedMachine = { ...claim, externalId: "777" };
  const held = {
    digest: "d1",
    description: writeMark("", markFor(holder, { disks: { data: "scsi1" }, networks: {} })),
    smbios1: `uuid=${claim.identity}`,
  };
  const to = { claim: holder, at: basis, disk: "data" };
  const transfer = { kind: "handOver", claim, at: basis, volume: own, to } as const;
  const script = { [`GET ${at}/config`]: data(config), [content]: data([volumeRow(own)]) };
  const there = (more: object): Script => {
    return { ...script, "GET /nodes/pve1/qemu/777/config": data({ ...held, ...more }) };
  };

  it("sends both digests: neither VM may have changed", async () => {
    const { params } = await begin(transfer, there({}));
    assert.deepEqual(params, [
      {
        disk: "scsi0",
        "target-vmid": "777",
        "target-disk": "scsi1",
        digest: "d1",
        "target-digest": "d1",
      },
    ]);
  });

  it("does not push another disk out of its slot", async () => {
    const { writes } = await begin(transfer, there({ scsi1: "zfs:vm-777-disk-3,size=1G" }));
    assert.deepEqual(writes, []);
  });

  it("is not tried between two nodes, where the server would take another VM's disk", async () => {
    const elsewhere = { ...to, at: { ...basis, node: "pve2" } };
    const { writes } = await begin(
      { ...transfer, to: elsewhere },
      {
        ...script,
        "GET /nodes/pve2/qemu/777/config": data(held),
        "GET /nodes/pve2/storage/zfs/content": data([volumeRow(own)]),
      },
    );
    assert.deepEqual(writes, []);
  });

  describe("that was cut short", () => {
    const arrived = "zfs:vm-777-disk-0";
    const way = `${id}-scsi0>777-scsi1`;
    const renamed = [
      `reassign disk 'scsi0' from VM '${id}' as 'scsi1' to VM '777'`,
      `removing disk 'scsi0' from VM '${id}' config`,
    ];
    const killed = (name = way, user = tokenId): Moved => {
      return { upid: upid("qmmove", name, user), endtime: 1_800_000_000, status: "killed" };
    };
    const ours = killed();
    const logged = (tasks: readonly Moved[], lines: readonly string[]): Script => {
      const log = data(lines.map((t, n) => ({ n, t })));
      const logs = tasks.map((task) => [`GET /nodes/pve1/tasks/${pathPart(task.upid)}/log`, log]);
      return { "GET /nodes/pve1/tasks": data(tasks), ...(Object.fromEntries(logs) as Script) };
    };
    const cut = (rows: readonly string[], more: object = {}): Script => ({
      ...there(more),
      [`GET ${at}/config`]: data({ ...config, scsi0: undefined }),
      [content]: data(rows.map((row) => volumeRow(row))),
      ...logged([ours], renamed),
    });
    /** What is refused although one volume came, as a person may have made it. */
    const refuses = async (told: Script, operation: Operation = transfer): Promise<string> => {
      const { begun, writes } = await begin(operation, { ...cut([arrived]), ...told });
      assert.deepEqual(writes, []);
      assert(begun.outcome === "refused", JSON.stringify(begun));
      assert.equal(begun.failure.category, "OrphanedVolumes");
      return begun.failure.message;
    };

    it("takes up the one volume that came", async () => {
      assert.equal((await begin(transfer, cut([arrived]))).writes.length, 1);
    });

    it("does not take a volume for the disk that no task of ours brought", async () => {
      const message = await refuses(logged([], []));
      assert.match(message, /zfs:vm-777-disk-0 has its size but may be anybody's/);
    });

    it("does not take a volume for the disk that somebody else brought, and says who", async () => {
      const message = await refuses(logged([killed(way, "root@pam")], renamed));
      assert.match(message, new RegExp(`root@pam moved the disk scsi0 of VM ${id} to VM 777`));
    });

    it("does not take a volume for the disk by a task that moved another", async () => {
      const others = [`${id}-scsi0>778-scsi1`, `${id}-scsi0>777-scsi2`, "99-scsi0>777-scsi1", id];
      for (const other of others) await refuses(logged([killed(other)], renamed));
    });

    it("does not take a volume for the disk by a task from before its VMs were ours", async () => {
      const late = { ...holder, reservedAt: "2026-01-02T04:04:05Z" };
      const operation = { ...transfer, to: { ...to, claim: late } };
      await refuses(logged([ours], renamed), operation);
    });

    it("does not take a volume for the disk by a task that died before it renamed it", async () => {
      await refuses(logged([ours], renamed.slice(0, 1)));
    });

    it("does not take a volume for the disk if somebody moved a disk there since", async () => {
      // Of the same second; the kernel's ticks tell the order.
      const away = upid("qmmove", "777-scsi1>900-scsi0", "root@pam").replace(
        "00ABCDEF",
        "00ABCDFF",
      );
      const message = await refuses(logged([{ ...ours, upid: away }, ours], renamed));
      assert.match(message, /root@pam moved the disk scsi1 of VM 777 to VM 900/);
      const before = { ...ours, upid: away.replace("00ABCDFF", "00ABCD00") };
      const told = { ...cut([arrived]), ...logged([ours, before], renamed) };
      assert.equal((await begin(transfer, told)).writes.length, 1);
    });

    it("does not take a volume for the disk if the transfer ended and somebody took it out", async () => {
      await refuses(logged([{ ...ours, status: "OK" }], renamed));
    });

    it("does not take another volume than the one that the log names", async () => {
      const named = [...renamed, `update VM 777: -scsi1 ${arrived},size=8G`];
      const told = { ...cut([arrived]), ...logged([ours], named) };
      assert.equal((await begin(transfer, told)).writes.length, 1);
      await refuses(
        logged([ours], [...renamed, "update VM 777: -scsi1 zfs:vm-777-disk-5,size=8G"]),
      );
    });

    it("waits while its task runs", async () => {
      const running = { "GET /nodes/pve1/tasks": data([{ upid: ours.upid, status: "RUNNING" }]) };
      const { begun, writes } = await begin(transfer, { ...cut([arrived]), ...running });
      assert.equal(begun.outcome, "blocked");
      assert.deepEqual(writes, []);
    });

    it("is not done by a volume that somebody put into the slot", async () => {
      const filled = cut([arrived], { scsi1: `${arrived},size=8G` });
      assert.deepEqual((await begin(transfer, filled)).begun, { outcome: "done" });
      const { begun } = await begin(transfer, { ...filled, ...logged([], []) });
      assert.equal(begun.outcome, "refused");
    });

    it("does not take a volume that was there before it for the disk", async () => {
      const before = { ...to, claim: { ...holder, otherVolumes: [{ id: arrived }] } };
      const { begun, writes } = await begin({ ...transfer, to: before }, cut([arrived]));
      assert.equal(begun.outcome, "refused");
      assert.deepEqual(writes, []);
    });

    it("does not take a volume for the disk that the holder uses for another", async () => {
      const { writes } = await begin(transfer, cut([arrived], { scsi4: `${arrived},size=1G` }));
      assert.deepEqual(writes, []);
    });

    it("does not guess which of two volumes is the disk", async () => {
      const { writes } = await begin(transfer, cut([arrived, "zfs:vm-777-disk-1"]));
      assert.deepEqual(writes, []);
    });
  });
});

describe("taking over a VM", () => {
  const stranger = { ...config, description: "mine" };
  const adopt = {
    kind: "stamp",
    claim,
    at: basis,
    adopt: true,
    disks: [],
    networks: [],
  } as const satisfies Operation;

  it("marks a VM that is nobody's", async () => {
    assert.equal((await begin(adopt, { [`GET ${at}/config`]: data(stranger) })).writes.length, 1);
  });

  it("does not take the VM of another installation", async () => {
    const installation = "00000000-0000-4000-8000-00000000beef";
    const description = writeMark("", markFor({ ...claim, installation }, slots));
    const script = { [`GET ${at}/config`]: data({ ...config, description }) };
    assert.deepEqual((await begin(adopt, script)).writes, []);
  });

  it("does not take another VM than the one that its Claim means", async () => {
    const other = { ...stranger, smbios1: "uuid=00000000-0000-4000-8000-00000000beef" };
    assert.deepEqual((await begin(adopt, { [`GET ${at}/config`]: data(other) })).writes, []);
  });

  it("does not take one that somebody changed since it was decided", async () => {
    const changed = { ...stranger, digest: "d2" };
    assert.deepEqual((await begin(adopt, { [`GET ${at}/config`]: data(changed) })).writes, []);
  });
});

describe("marking a clone", () => {
  const cloned = { ...config, smbios1: "uuid=00000000-0000-4000-8000-00000000c09e" };
  const stamp = {
    kind: "stamp",
    claim,
    at: basis,
    cloned: { from: "9000" },
    disks: [],
    networks: [],
  } as const satisfies Operation;
  const task = { upid: upid("qmclone", "9000"), endtime: 1_800_000_000, status: "OK" };
  const log = (made: string): Script => ({
    [`GET /nodes/pve1/tasks/${pathPart(task.upid)}/log`]: data([
      { n: 1, t: `creating a clone of VM 9000 with ID ${made}` },
    ]),
  });
  const script = (tasks: unknown, more: object = {}): Script => ({
    [`GET ${at}/config`]: data({ ...cloned, ...more }),
    "GET /nodes/pve1/tasks": data(tasks),
    ...log(id),
  });

  it("takes the one that our own task made", async () => {
    assert.equal((await begin(stamp, script([task]))).writes.length, 1);
  });

  it("does not take a copy that no task of ours made", async () => {
    assert.deepEqual((await begin(stamp, script([]))).writes, []);
  });

  it("does not take a copy that somebody else's clone made", async () => {
    const theirs = { ...task, upid: upid("qmclone", "9000", "root@pam") };
    const path = `GET /nodes/pve1/tasks/${pathPart(theirs.upid)}/log`;
    const logged = { [path]: data([{ n: 1, t: `creating a clone of VM 9000 with ID ${id}` }]) };
    assert.deepEqual((await begin(stamp, { ...script([theirs]), ...logged })).writes, []);
  });

  it("does not take it by a task of ours that made another VM", async () => {
    assert.deepEqual((await begin(stamp, { ...script([task]), ...log("555") })).writes, []);
  });

  it("does not take a copy of a VM that was released", async () => {
    const released = { ...markFor(claim, slots), state: "Released" as const };
    const more = { description: writeMark("", released) };
    assert.deepEqual((await begin(stamp, script([task], more))).writes, []);
  });

  it("does not take a copy whose marker is another object's", async () => {
    const owner = { namespace: "prod", name: "db" };
    const more = { description: writeMark("", markFor({ ...claim, owner }, slots)) };
    assert.deepEqual((await begin(stamp, script([task], more))).writes, []);
  });
});

describe("unlocking", () => {
  const unlock = { kind: "unlock", claim, at: basis, lock: "backup" } as const;
  const dead = { upid: upid("vzdump", id), endtime: 1_800_000_000, status: "unexpected status" };
  const script = (lock: string, task: object = dead): Script => ({
    [`GET ${at}/config`]: data({ ...config, lock }),
    "GET /nodes/pve1/tasks": data([task]),
    "POST /access/ticket": data({ ticket: "t", CSRFPreventionToken: "c" }),
  });

  it("clears the lock that a dead task of ours left, and only of the VM as it was seen", async () => {
    const { params } = await begin(unlock, script("backup"));
    assert.deepEqual(params.at(-1), { delete: "lock", skiplock: 1, digest: "d1" });
  });

  it("does not break a lock that a task still holds", async () => {
    const { begun, writes } = await begin(unlock, script("backup", { upid: dead.upid }));
    assert.equal(begun.outcome, "blocked");
    assert.deepEqual(writes, []);
  });

  it("does not break another lock than the one that was decided about", async () => {
    const moved = { ...dead, upid: upid("qmsnapshot", id) };
    const { begun, writes } = await begin(unlock, script("snapshot", moved));
    assert.equal(begun.outcome, "changed");
    assert.deepEqual(writes, []);
  });

  it("does not break the lock of a VM that changed since", async () => {
    const at2 = { ...basis, version: "d0" };
    assert.deepEqual((await begin({ ...unlock, at: at2 }, script("backup"))).writes, []);
  });

  it("does not destroy a placeholder VM while its task still works on it", async () => {
    const husk = { [`GET ${at}/config`]: data({ digest: "d0", lock: "create" }) };
    const task = { upid: upid("qmcreate", id) };
    const operation = { kind: "clearHusk", claim, node: "pve1", sinceMs: 0 } as const;
    const { begun, writes } = await begin(operation, { ...script("create", task), ...husk });
    assert.equal(begun.outcome, "blocked");
    assert.deepEqual(writes, []);
  });
});

describe("proposing an id", () => {
  const list = { "GET /cluster/nextid": data("1") };

  it("never proposes one that a Claim has", async () => {
    const proposed = await driverOn(new ScriptedServer(list)).propose(["1000000"]);
    assert.equal(proposed.ok, false, "the random of these tests is always the first id");
  });
});
