import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type ObserveHints, type Seen, writeMark } from "../../hypervisor/index.ts";
import { claim, data, driverOn, error, ScriptedServer, tokenId, upid } from "./fixture.ts";
import { markFor } from "./operations/standing.ts";
import type { PveReply } from "./wire/wire.ts";

const id = claim.externalId;
const at = `/nodes/pve1/qemu/${id}`;
const elsewhere = `/nodes/pve2/qemu/${id}`;
const mark = markFor(claim, { disks: { root: "scsi0" }, networks: { lan: "net0" } });

const marked = {
  digest: "d1",
  description: writeMark("Ada's", mark),
  smbios1: `uuid=${claim.identity}`,
  scsi0: `zfs:vm-${id}-disk-0,size=8G`,
  net0: "virtio=BC:24:11:00:00:01,bridge=vmbr0",
};

const husk = { digest: "d0", lock: "create" };

const gone = error(500, `Configuration file 'nodes/pve1/qemu-server/${id}.conf' does not exist`);
const isTaken = error(400, "Parameter verification failed.", { vmid: `VM ${id} already exists` });
const isFree = data(id);
const quorate = data([{ type: "cluster", quorate: 1 }]);

function running(type: string, user?: string): unknown {
  return { upid: upid(type, id, user) };
}

function ended(type: string, status: string, user?: string): unknown {
  return { upid: upid(type, id, user), endtime: 1, status };
}

async function observe(script: Record<string, PveReply>, hints?: ObserveHints): Promise<Seen> {
  const server = new ScriptedServer(script);
  const seen = await driverOn(server).observe(claim, hints);
  assert.deepEqual(server.writes, [], "observing changes nothing");
  return seen;
}

describe("observe", () => {
  it("shows a stranger's parts by the names that adoption would give them", async () => {
    const stranger = { ...marked, description: "mine" };
    const names = { disks: { root: "scsi0" }, networks: { lan: "net0" } };
    const script = { [`GET ${at}/config`]: data(stranger) };
    const seen = await observe(script, { withoutPower: true, names });
    assert(seen.at === "foreign" && seen.machine !== undefined);
    assert.deepEqual(seen.machine.shape.disks?.[0]?.name, "root");
    assert.deepEqual(seen.machine.networks[0]?.name, "lan");
    assert.equal(seen.machine.mark, undefined);
  });

  it("asks for an id first where nothing is expected: two reads prove an absence", async () => {
    const script = {
      "GET /cluster/nextid": isFree,
      "GET /cluster/status": quorate,
    };
    assert.deepEqual(await observe(script, { expectsNothing: true }), { at: "absent" });
  });

  it("sees our machine with its parts by name, from one read of its config", async () => {
    const seen = await observe({ [`GET ${at}/config`]: data(marked) }, { withoutPower: true });
    assert(seen.at === "ours");
    const { machine } = seen;
    assert.equal(machine.version, "d1");
    assert.equal(machine.power, "Unknown");
    assert.equal(machine.shape.notes, "Ada's");
    assert.deepEqual(machine.disks, [
      {
        name: "root",
        slot: "scsi0",
        volume: `zfs:vm-${id}-disk-0`,
        storage: "zfs",
        sizeBytes: 8 * 1024 ** 3,
        bus: "scsi",
      },
    ]);
    assert.deepEqual(machine.networks, [
      { name: "lan", macAddress: "bc:24:11:00:00:01", slot: "net0" },
    ]);
  });

  it("sees what runs, what waits for a start, and a drive that is about to go", async () => {
    const seen = await observe({
      [`GET ${at}/config`]: data(marked),
      [`GET ${at}/status/current`]: data({ status: "running", qmpstatus: "running" }),
      [`GET ${at}/pending`]: data([
        { key: "memory", value: "64", pending: "128" },
        { key: "scsi1", value: `zfs:vm-${id}-disk-1,size=1G`, delete: 1 },
        { key: "name", value: "web" },
      ]),
    });
    assert(seen.at === "ours");
    assert.equal(seen.machine.power, "Running");
    assert.deepEqual(seen.machine.pending, ["memory.sizeBytes", "scsi1"]);
    const volumes = seen.machine.volumes.map((volume) => volume.id);
    assert.deepEqual(volumes, [`zfs:vm-${id}-disk-1`, `zfs:vm-${id}-disk-0`]);
  });

  it("believes an absence only with the cluster's majority behind it", async () => {
    const script = { [`GET ${at}/config`]: gone, "GET /cluster/nextid": isFree };
    const absent = await observe({ ...script, "GET /cluster/status": quorate });
    assert.equal(absent.at, "absent");
    const alone = await observe({ ...script, "GET /cluster/status": data([{ type: "node" }]) });
    assert.equal(alone.at, "absent", "a node of its own has no cluster entry");
    const cut = data([{ type: "cluster", quorate: 0 }]);
    assert.equal((await observe({ ...script, "GET /cluster/status": cut })).at, "unknown");
    const denied = error(403, "Permission check failed (/, Sys.Audit)");
    const hidden = await observe({ ...script, "GET /cluster/status": denied });
    assert(hidden.at === "unknown" && hidden.failure.category === "PermissionDenied");
  });

  it("does not take an id for free when nobody says whether it is", async () => {
    const script = { [`GET ${at}/config`]: gone, "GET /cluster/status": quorate };
    const timedOut = error(596, "Connection timed out");
    assert.equal((await observe({ ...script, "GET /cluster/nextid": timedOut })).at, "unknown");
  });

  it("does not join the answers of two endpoints into one proof", async () => {
    const other: PveReply = {
      type: "answered",
      status: 200,
      reason: "OK",
      from: "pve2",
      body: JSON.stringify({ data: [{ type: "cluster", quorate: 1 }] }),
    };
    const seen = await observe({
      [`GET ${at}/config`]: gone,
      "GET /cluster/nextid": isFree,
      "GET /cluster/status": other,
    });
    assert.equal(seen.at, "unknown");
  });

  it("follows a machine that moved to another node", async () => {
    const seen = await observe(
      {
        [`GET ${at}/config`]: gone,
        "GET /cluster/nextid": isTaken,
        "GET /cluster/resources": data([{ type: "qemu", vmid: Number(id), node: "pve2" }]),
        [`GET ${elsewhere}/config`]: data(marked),
      },
      { withoutPower: true },
    );
    assert(seen.at === "ours" && seen.machine.node === "pve2");
  });

  it("does not know a machine that is hidden from the token, or between two nodes", async () => {
    const script = { [`GET ${at}/config`]: gone, "GET /cluster/nextid": isTaken };
    const hidden = await observe({ ...script, "GET /cluster/resources": data([]) });
    assert(hidden.at === "unknown" && hidden.failure.category === "PermissionDenied");
    const moving = await observe({
      ...script,
      "GET /cluster/resources": data([{ type: "qemu", vmid: Number(id), node: "pve2" }]),
      [`GET ${elsewhere}/config`]: gone,
    });
    assert.equal(moving.at, "unknown");
  });

  it("leaves a container alone that has the id", async () => {
    const seen = await observe({
      [`GET ${at}/config`]: gone,
      "GET /cluster/nextid": isTaken,
      "GET /cluster/resources": data([{ type: "lxc", vmid: Number(id), node: "pve2" }]),
    });
    assert(seen.at === "foreign" && seen.reason === "OtherKind");
  });

  it("knows nothing when nobody answers: a lost reply, a dead node, a refused right", async () => {
    const replies: PveReply[] = [
      { type: "lost", detail: "ECONNRESET" },
      { type: "notSent", why: "unreachable", detail: "ECONNREFUSED" },
      error(595, "No route to host"),
      error(596, "Connection timed out"),
      error(403, "Permission check failed"),
    ];
    for (const reply of replies) {
      const seen = await observe({ [`GET ${at}/config`]: reply });
      assert.equal(seen.at, "unknown", JSON.stringify(reply));
    }
  });

  it("leaves a stranger's machine alone that has our id", async () => {
    const stranger = {
      digest: "d",
      name: "db",
      smbios1: "uuid=00000000-0000-4000-8000-000000000009",
    };
    const seen = await observe({ [`GET ${at}/config`]: data(stranger) }, { withoutPower: true });
    assert(seen.at === "foreign" && seen.reason === "Stranger");
  });
});

describe("a husk", () => {
  const read = (tasks: unknown[], hints?: ObserveHints): Promise<Seen> =>
    observe({ [`GET ${at}/config`]: data(husk), "GET /nodes/pve1/tasks": data(tasks) }, hints);

  it("is ours while our own create runs", async () => {
    const seen = await read([running("qmcreate")]);
    assert(seen.at === "opaque");
    assert.deepEqual(seen.lock, {
      kind: "Create",
      detail: "create",
      state: "Held",
      task: upid("qmcreate", id),
      sinceMs: Number.parseInt(upid("qmcreate", id).split(":")[4] ?? "", 16) * 1000,
      aheadMs: 0,
    });
  });

  it("is ours and dead when our create was killed, and says how to clear it", async () => {
    const seen = await read([ended("qmcreate", "unexpected status")]);
    assert(seen.at === "opaque");
    assert.equal(seen.lock.state, "Dead");
    assert.match(seen.lock.remedy ?? "", /On pve1, as root: qm unlock 1000101 && qm destroy/);
  });

  it("is somebody else's when another's create is the last one", async () => {
    const other = "root@pam!x";
    const seen = await read([running("qmcreate", other), ended("qmcreate", "killed")]);
    assert(seen.at === "foreign" && seen.reason === "Husk");
  });

  it("is not what a create of ours left that ended well", async () => {
    const seen = await read([ended("qmcreate", "OK")]);
    assert(seen.at === "foreign" && seen.reason === "Husk");
  });

  it("without any task is ours only by our record that no worker could be started", async () => {
    const nobody = await read([]);
    assert(nobody.at === "foreign" && nobody.reason === "Husk");
    const ours = await read([], { workerNeverStarted: true });
    assert(ours.at === "opaque" && ours.lock.state === "Dead");
    const taken = await read([running("qmcreate", "root@pam")], { workerNeverStarted: true });
    assert.equal(taken.at, "foreign");
  });

  it("stays unknown when the tasks cannot be read", async () => {
    const seen = await observe({
      [`GET ${at}/config`]: data(husk),
      "GET /nodes/pve1/tasks": { type: "lost", detail: "reset" },
    });
    assert.equal(seen.at, "unknown");
  });

  it("asks for running tasks too, and not only from after its own clock's time", async () => {
    const server = new ScriptedServer({
      [`GET ${at}/config`]: data(husk),
      "GET /nodes/pve1/tasks": data([running("qmcreate")]),
    });
    await driverOn(server).observe(claim);
    const asked = server.requests.at(-1)?.params;
    assert.equal(asked?.["source"], "all");
    assert.equal(asked?.["vmid"], id);
    assert(Number(asked?.["since"]) * 1000 < Date.parse(claim.reservedAt ?? ""));
  });
});

describe("a lock on our machine", () => {
  const read = async (lock: string, tasks: unknown[]) => {
    const seen = await observe(
      {
        [`GET ${at}/config`]: data({ ...marked, lock }),
        "GET /nodes/pve1/tasks": data(tasks),
      },
      { withoutPower: true },
    );
    assert(seen.at === "ours");
    return seen.machine.lock;
  };

  it("is held while somebody works, whoever it is, and says whose work it is", async () => {
    const { others, ...lock } = (await read("backup", [running("vzdump", "root@pam")])) ?? {};
    assert.deepEqual(lock, { kind: "Backup", detail: "backup", state: "Held" });
    const task = upid("vzdump", id, "root@pam");
    assert.deepEqual([others?.user, others?.task], ["root@pam", task]);
    assert.equal(others?.sinceMs, Number.parseInt(task.split(":")[4] ?? "", 16) * 1000);
    assert.equal(others?.endedMs, undefined);
  });

  it("of somebody else's dead work says how that ended, and what a person can do", async () => {
    const lock = await read("backup", [ended("vzdump", "unexpected status", "root@pam")]);
    assert(lock);
    assert.deepEqual([lock.state, lock.task], ["Unknown", undefined], "it is not ours to break");
    assert.deepEqual(
      [lock.others?.task, lock.others?.end],
      [upid("vzdump", id, "root@pam"), "unexpected status"],
    );
    assert.match(lock.remedy ?? "", /If nobody works on it any more, on pve1, as root: qm unlock/);
    const unseen = await read("backup", []);
    const { others: _, ...rest } = lock;
    assert.deepEqual(unseen, rest);
  });

  it("that outlived its task is dead only if the task was ours", async () => {
    const theirs = await read("backup", [ended("vzdump", "unexpected status", "root@pam")]);
    assert.equal(theirs?.state, "Unknown");
    const ours = await read("backup", [ended("vzdump", "unexpected status")]);
    assert.equal(ours?.state, "Dead");
    assert.equal(ours?.remedy?.includes("destroy"), false, "the machine is whole: only unlock it");
  });

  it("of a move is judged by the node that the move began on", async () => {
    const died = { upid: upid("qmigrate", id), endtime: 1, status: "unexpected status" };
    const arrived = {
      [`GET ${at}/config`]: data({ ...marked, lock: "migrate" }),
      "GET /nodes/pve1/tasks": data([ended("qmigrate", "OK")]),
      "GET /cluster/status": data([
        { type: "node", name: "pve1" },
        { type: "node", name: "pve2" },
      ]),
    };
    const judged = async (there: PveReply) => {
      const script = { ...arrived, "GET /nodes/pve2/tasks": there };
      const seen = await observe(script, { withoutPower: true });
      return seen.at === "ours" ? seen.machine.lock?.state : seen.at;
    };
    assert.equal(await judged(data([died])), "Dead");
    assert.equal(await judged(data([running("qmigrate")])), "Held");
    assert.equal(await judged(data([running("qmigrate", "root@pam")])), "Held");
    assert.equal(await judged(data([{ ...died, status: "OK" }])), "Unknown");
    assert.equal(await judged(error(595, "no route to host")), "Unknown", "it might know better");
  });

  it("of a clone is never judged: its task bears the source's id", async () => {
    const lock = await read("clone", [ended("qmclone", "unexpected status", tokenId)]);
    assert.equal(lock?.state, "Unknown");
  });
});
