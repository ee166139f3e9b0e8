import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claim, data, driverOn, error, open, ScriptedServer, upid } from "./fixture.ts";
import { parseRelease } from "./release.ts";
import { neededRights } from "./rights.ts";
import { pathPart, type PveReply } from "./wire/wire.ts";

function certificates(fingerprint: string): PveReply {
  return data([
    { filename: "pve-root-ca.pem", fingerprint },
    { filename: "pve-ssl.pem", fingerprint: "00" },
  ]);
}

function rights(version: string): Record<string, Record<string, number>> {
  const granted: Record<string, Record<string, number>> = { "/": {} };
  const release = parseRelease(version);
  assert(release !== undefined);
  for (const { path, privilege } of neededRights(release)) {
    (granted[path] ??= {})[privilege] = 1;
  }
  return granted;
}

function system(version: string, granted: unknown = rights(version)): Record<string, PveReply> {
  return {
    "GET /version": data({ version }),
    "GET /nodes": data([
      { node: "pve1", status: "offline" },
      { node: "pve2", status: "online" },
    ]),
    "GET /nodes/pve2/certificates/info": certificates("ab:cd"),
    "GET /access/permissions": data(granted),
  };
}

describe("the system", () => {
  it("is known by its own authority, whichever node answers", async () => {
    const answer = await driverOn(new ScriptedServer(system("9.2.11"))).system();
    assert(answer.ok, JSON.stringify(answer));
    assert.equal(answer.value.systemId, "pve-root-ca:AB:CD");
    assert.equal(answer.value.version, "9.2.11");
    assert.deepEqual(answer.value.findings, []);
  });

  it("says what each release can do before anything is made", async () => {
    const capabilities = async (version: string) => {
      const answer = await driverOn(new ScriptedServer(system(version))).system();
      assert(answer.ok);
      return answer.value.capabilities;
    };
    assert((await capabilities("9.2.11")).includes("FetchImage"));
    assert((await capabilities("8.4.21")).includes("FetchImage"));
    assert(!(await capabilities("7.4-20")).includes("FetchImage"));
    assert((await capabilities("7.4-20")).includes("FullClone"));
    assert.deepEqual(await capabilities("6.4-15"), []);
  });

  it("names every right that is missing, and takes one without propagation for none", async () => {
    const granted = rights("9.2.11");
    assert(granted["/vms"] !== undefined);
    granted["/vms"]["VM.Clone"] = 0;
    Reflect.deleteProperty(granted["/vms"], "VM.PowerMgmt");
    const answer = await driverOn(new ScriptedServer(system("9.2.11", granted))).system();
    assert(answer.ok);
    const messages = answer.value.findings.map(({ message }) => message.split(",")[0]);
    assert.deepEqual(messages, [
      "the token lacks VM.Clone on /vms",
      "the token lacks VM.PowerMgmt on /vms",
    ]);
  });

  it("inherits rights from above, as the server does", async () => {
    const everything = Object.assign({}, ...Object.values(rights("9.2.11"))) as object;
    const script = system("9.2.11", { "/": everything });
    const answer = await driverOn(new ScriptedServer(script)).system();
    assert(answer.ok);
    assert.deepEqual(answer.value.findings, []);
  });

  it("is no Proxmox when something else answers", async () => {
    const server = new ScriptedServer({ "GET /version": data({ hello: "world" }) });
    const answer = await driverOn(server).system();
    assert(!answer.ok && answer.failure.category === "NetworkError");
  });
});

describe("the inventory", () => {
  const rows = [
    { type: "node", node: "pve1", status: "online", maxcpu: 8, maxmem: 1024, mem: 10 },
    { type: "node", node: "pve2", status: "unknown" },
    { type: "qemu", vmid: 101, node: "pve1", status: "running", name: "web" },
    { type: "qemu", vmid: 102, node: "pve1", template: 1, status: "stopped", lock: "clone" },
    { type: "lxc", vmid: 103, node: "pve1", status: "running" },
    { type: "storage", storage: "zfs", node: "pve1", status: "available", content: "images" },
  ];

  const look = async (asked: PveReply) => {
    const server = new ScriptedServer({
      "GET /cluster/resources": data(rows),
      "GET /nodes/pve2/status": asked,
    });
    const answer = await driverOn(server).inventory();
    assert(answer.ok);
    return answer.value;
  };

  it("asks a node itself before it calls it unhealthy", async () => {
    const healthy = await look(data({ uptime: 1 }));
    assert.deepEqual(
      healthy.nodes.map(({ name, health }) => [name, health]),
      [
        ["pve1", "Healthy"],
        ["pve2", "Healthy"],
      ],
    );
    assert.equal(healthy.isComplete, true);
    const dead = await look(error(595, "No route to host"));
    assert.equal(dead.nodes[1]?.health, "Unhealthy");
    assert.equal(dead.isComplete, false);
    assert.deepEqual(dead.missing, ["the node pve2"]);
    const silent = await look({ type: "lost", detail: "reset" });
    assert.equal(silent.nodes[1]?.health, "Unknown");
  });

  it("tells machines from templates and containers", async () => {
    const { machines } = await look(data({}));
    assert.deepEqual(
      machines.map(({ externalId, kind, lock }) => [externalId, kind, lock]),
      [
        ["101", "Machine", undefined],
        ["102", "Template", "Clone"],
        ["103", "Other", undefined],
      ],
    );
  });
});

describe("ids", () => {
  it("are chosen from the range and never taken ones", async () => {
    const asked: string[] = [];
    const server = new ScriptedServer({
      "GET /cluster/nextid": ({ params }) => {
        asked.push(String(params?.["vmid"]));
        return data(params?.["vmid"]);
      },
    });
    assert.deepEqual(await driverOn(server).propose([]), { ok: true, value: "1000000" });
    const full = await driverOn(server).propose(["1000000"]);
    assert(!full.ok && full.failure.category === "QuotaExceeded");
    assert.deepEqual(asked, ["1000000"]);
  });

  it("are the same for a key, whoever asks, and the preferred one is proposed where it is free", async () => {
    const taken = new Set<unknown>();
    const wrong = { vmid: "VM 1000001 already exists" };
    const alreadyThere = error(400, "Parameter verification failed.", wrong);
    const server = new ScriptedServer({
      "GET /cluster/nextid": ({ params }) => {
        return taken.has(params?.["vmid"]) ? alreadyThere : data(params?.["vmid"]);
      },
    });
    const driver = driverOn(server);
    const preferred = driver.prefer?.("web") ?? "";
    assert.ok(Number(preferred) >= 1_000_000 && Number(preferred) <= 9_999_999);
    assert.equal(driverOn(server).prefer?.("web"), preferred);
    assert.notEqual(driver.prefer?.("db"), preferred);
    assert.deepEqual(await driver.propose([], preferred), { ok: true, value: preferred });
    taken.add(preferred);
    assert.deepEqual(await driver.propose([], preferred), { ok: true, value: "1000000" });
  });
});

describe("a task", () => {
  const task = upid("qmconfig", claim.externalId);
  const path = `GET /nodes/pve1/tasks/${encodeURIComponent(task).replaceAll("!", "%21")}/status`;
  const log = data([
    { n: 1, t: "create full clone of drive scsi0" },
    { n: 2, t: "dd: writing: No space left on device" },
    { n: 3, t: "TASK ERROR: clone failed" },
  ]);
  const look = async (reply: PveReply) => {
    const script = { [path]: reply, [path.replace(/status$/, "log")]: log };
    return await driverOn(new ScriptedServer(script)).look(task);
  };
  const ended = (exitstatus: string) => data({ status: "stopped", exitstatus });

  it("is told by its end", async () => {
    assert.deepEqual(await look(data({ status: "running" })), { state: "running" });
    assert.deepEqual(await look(ended("OK")), { state: "succeeded" });
    assert.deepEqual(await look(ended("VM 101 already running")), { state: "succeeded" });
    const warned = await look(ended("WARNINGS: 2"));
    assert.deepEqual(warned, { state: "warned", cause: "WARNINGS: 2" });
    const digest = "checksum mismatch (file change by other user?)";
    assert.deepEqual(await look(ended(digest)), { state: "changed", cause: digest });
    const failure = await look(ended("zfs error: cannot create 'p/vm-1-cloudinit': out of space"));
    assert(failure.state === "failed" && failure.failure.category === "QuotaExceeded");
  });

  it("that downloads and finds the file in its place has brought nothing", async () => {
    const download = upid("download", "image.qcow2");
    const of = path.replace(/tasks\/.*\/status$/, "tasks/") + pathPart(download);
    const lookAfter = async (...lines: string[]) => {
      const rows = data(lines.map((t, n) => ({ n, t })));
      const script = { [`${of}/status`]: ended("OK"), [`${of}/log`]: rows };
      return await driverOn(new ScriptedServer(script)).look(download);
    };
    assert.equal((await lookAfter("download of 'https://a' finished")).state, "succeeded");
    const there =
      "calculating checksum of existing file...OK, got correct file already, no need to download";
    assert.deepEqual(await lookAfter("downloading", there), { state: "changed", cause: there });
    const away = { [`${of}/status`]: ended("OK"), [`${of}/log`]: error(595, "No route") };
    const unread = new ScriptedServer(away);
    assert.equal((await driverOn(unread).look(download)).state, "unknown");
  });

  it("that failed brings the end of its log along, where the reason often stands", async () => {
    const view = await look(ended("clone failed"));
    assert(view.state === "failed");
    assert.deepEqual(view.failure.cause?.split("\n"), [
      "clone failed",
      "The end of the task's log:",
      "create full clone of drive scsi0",
      "dd: writing: No space left on device",
    ]);
  });

  it("brings the end of a long log along, not the end of its first page", async () => {
    const lines = Array.from({ length: 2_345 }, (_, i) => ({ n: i + 1, t: `line ${i + 1}` }));
    const server = new ScriptedServer({
      [path]: ended("migration aborted"),
      [path.replace(/status$/, "log")]: ({ params }) => {
        const start = Number(params?.["start"] ?? 0);
        return data(lines.slice(start, start + Number(params?.["limit"])));
      },
    });
    const view = await driverOn(server).look(task);
    assert(view.state === "failed");
    assert.equal(view.failure.cause?.split("\n").at(-1), "line 2345");
    assert.equal(view.failure.cause?.split("\n").length, 14);
  });

  it("is lost when it was killed or forgotten, and unknown when nobody answers", async () => {
    for (const end of ["unexpected status", "unable to get last line from task log - x", ""]) {
      assert.equal((await look(ended(end))).state, "lost");
    }
    const forgotten = error(400, "Parameter verification failed.", { upid: "no such task" });
    assert.equal((await look(forgotten)).state, "lost");
    assert.equal((await look({ type: "lost", detail: "reset" })).state, "unknown");
    assert.equal((await look(error(595, "No route"))).state, "unknown");
  });

  it("that another's lock ended is no failure", async () => {
    const view = await look(ended("cfs-lock 'storage-nfs' error: got lock request timeout"));
    assert.equal(view.state, "blocked");
  });
});

describe("images", () => {
  const fetchImage = {
    kind: "fetchImage",
    node: "pve1",
    storage: "local",
    url: "https://example.org/d.img",
    fileName: "debian-sha256-00ff.qcow2",
    checksum: `sha256:${"0f".repeat(32)}`,
  } as const;
  const content = "GET /nodes/pve1/storage/local/content";
  const present = { volid: `local:import/${fetchImage.fileName}`, content: "import", size: 5 };

  it("are fetched by the node with their checksum, once", async () => {
    const server = new ScriptedServer({
      [content]: data([]),
      "POST /nodes/pve1/storage/local/download-url": data(upid("download", "x")),
    });
    assert.equal((await driverOn(server).begin(fetchImage, open)).outcome, "task");
    assert.deepEqual(server.writes[0]?.params, {
      content: "import",
      filename: fetchImage.fileName,
      url: fetchImage.url,
      checksum: "0f".repeat(32),
      "checksum-algorithm": "sha256",
    });
    const there = new ScriptedServer({ [content]: data([present]) });
    assert.deepEqual(await driverOn(there).begin(fetchImage, open), { outcome: "done" });
  });

  it("are listed by name", async () => {
    const driver = driverOn(new ScriptedServer({ [content]: data([present]) }));
    assert.deepEqual(await driver.images({ node: "pve1", storage: "local" }), {
      ok: true,
      value: [{ volume: present.volid, fileName: fetchImage.fileName, sizeBytes: 5 }],
    });
  });

  it("that lie in drives are brought in by every server, as discs", async () => {
    const server = new ScriptedServer({
      ...system("7.4-20"),
      [content]: data([]),
      "POST /nodes/pve1/storage/local/download-url": data(upid("download", "x")),
    });
    const driver = driverOn(server);
    await driver.system();
    const begun = await driver.begin({ ...fetchImage, use: "Disc" }, open);
    assert.equal(begun.outcome, "task");
    assert.equal(server.writes[0]?.params?.["content"], "iso");
  });

  it("that Berth fetched itself are uploaded with their checksum, unless they are whole", async () => {
    const { url: _, kind: __, ...file } = fetchImage;
    const chunks = (async function* () {
      yield Uint8Array.of(1, 2, 3, 4, 5);
    })();
    const upload = { kind: "putImage", ...file, sizeBytes: 5, chunks } as const;
    const there = new ScriptedServer({ [content]: data([present]) });
    assert.deepEqual(await driverOn(there).begin(upload, open), { outcome: "done" });
    const part = new ScriptedServer({
      [content]: data([{ ...present, size: 3 }]),
      "POST /nodes/pve1/storage/local/upload": data(upid("imgcopy", "")),
    });
    const over = { ...upload, knownFile: { size: "3" } };
    assert.equal((await driverOn(part).begin(over, open)).outcome, "task");
    const [sent] = part.writes;
    assert.equal(sent?.params?.["checksum"], "0f".repeat(32));
    assert.equal(sent?.file?.name, fetchImage.fileName);
  });

  it("go only if Berth brought them, and while nobody can be reading them", async () => {
    const named = { storage: "local", name: "another.qcow2", content: "Image" } as const;
    const fileClaim = { externalId: "f", target: "File", state: "Bound", file: named } as const;
    const { node, storage } = fetchImage;
    const removal = { kind: "removeImage", node, storage, fileClaim } as const;
    const fileName = `debian-${"0f".repeat(8)}.qcow2`;
    const file = { volid: `local:import/${fileName}`, content: "import", size: 5 };
    const path = `/nodes/pve1/storage/local/content/${encodeURIComponent(file.volid)}`;
    const idle = {
      [content]: data([present, file]),
      "GET /cluster/tasks": data([{ upid: upid("qmconfig", "1"), type: "qmconfig", endtime: 1 }]),
      [`DELETE ${path}`]: data(upid("imgdel", "x")),
    };
    const foreign = await driverOn(new ScriptedServer(idle)).begin({ ...removal, fileName }, open);
    assert.equal(foreign.outcome, "refused");
    const proven = { ...named, name: fileName };
    const own = { ...removal, fileName, fileClaim: { ...fileClaim, file: proven } };
    assert.equal((await driverOn(new ScriptedServer(idle)).begin(own, open)).outcome, "task");
    const busy = new ScriptedServer({
      ...idle,
      "GET /cluster/tasks": data([{ upid: upid("qmconfig", "1"), type: "qmconfig" }]),
    });
    assert.equal((await driverOn(busy).begin(own, open)).outcome, "blocked");
    assert.deepEqual(busy.writes, []);
    const gone = new ScriptedServer({ ...idle, [content]: data([]) });
    assert.deepEqual(await driverOn(gone).begin(own, open), { outcome: "done" });
  });

  it("are not removed if they have another size or time than the Claim says", async () => {
    const { node, storage } = fetchImage;
    const fileName = "mine.qcow2";
    const file = { volid: `local:import/${fileName}`, content: "import", size: 5, ctime: 1_000 };
    const path = `/nodes/pve1/storage/local/content/${encodeURIComponent(file.volid)}`;
    const removedAs = async (size: string, createdAt?: string): Promise<string> => {
      const named = { storage: "local", name: fileName, content: "Image", size } as const;
      const known = createdAt === undefined ? named : { ...named, createdAt };
      const fileClaim = { externalId: "f", target: "File", state: "Bound", file: known } as const;
      const server = new ScriptedServer({
        [content]: data([present, file]),
        "GET /cluster/tasks": data([]),
        [`DELETE ${path}`]: data(upid("imgdel", "x")),
      });
      const removal = { kind: "removeImage", node, storage, fileName, fileClaim } as const;
      return (await driverOn(server).begin(removal, open)).outcome;
    };
    assert.equal(await removedAs("5"), "task");
    assert.equal(await removedAs("5", "1970-01-01T00:16:40Z"), "task");
    assert.equal(await removedAs("6"), "refused");
    assert.equal(await removedAs("5", "1970-01-01T00:16:41Z"), "refused");
  });

  it("cannot be brought in by an older server, which is said before anything is sent", async () => {
    const server = new ScriptedServer(system("7.4-20"));
    const driver = driverOn(server);
    await driver.system();
    const begun = await driver.begin(fetchImage, open);
    assert(begun.outcome === "refused" && begun.failure.category === "APINotSupported");
    assert.deepEqual(server.writes, []);
  });
});
