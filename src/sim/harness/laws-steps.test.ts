import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { FailureCategory } from "../../api/index.ts";
import type { PveReply, PveRequest } from "../../drivers/proxmox/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { Dice } from "./dice.ts";
import { StepLaws, targetOf } from "./laws-steps.ts";
import { Site } from "./site.ts";

const full = "500 zfs error: out of space";
const locked = "500 can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";
const modified = "500 detected modified configuration - file changed by other user? Try again.";
const stopped = "500 VM 100 not running";
const done = "200 ";
const paths: Readonly<Record<string, PveRequest>> = {
  start: { method: "POST", path: "/nodes/pve1/qemu/100/status/start" },
  stop: { method: "POST", path: "/nodes/pve1/qemu/100/status/stop" },
  suspend: { method: "POST", path: "/nodes/pve1/qemu/100/status/suspend" },
  download: {
    method: "POST",
    path: "/nodes/pve1/storage/local/download-url",
    params: { filename: "debian.img" },
  },
  upload: {
    method: "POST",
    path: "/nodes/pve1/storage/local/upload",
    params: { content: "iso" },
    file: { name: "seed.iso", content: new Uint8Array() },
  },
  remove: { method: "DELETE", path: "/nodes/pve1/storage/local/content/local%3Aiso%2Fseed.iso" },
  destroy: { method: "DELETE", path: "/nodes/pve1/storage/zfs/content/zfs%3Avm-100-disk-0" },
};

let clock: VirtualClock;
let site: Site;
let laws: StepLaws;
let word: string;
let category: FailureCategory | undefined;
let starts: number;

beforeEach(() => {
  clock = new VirtualClock();
  site = new Site({ name: "east", release: "9.2", clock, dice: Dice.of(1, "site") });
  [word, category, starts] = ["", undefined, 0];
  const behind = (): { word: string; category: FailureCategory | undefined } => ({
    word,
    category,
  });
  laws = new StepLaws({ nowMs: () => clock.nowMs(), behind, starts: () => starts });
});

/** Sends a request after so many seconds; `end` is what its sender is told. */
function send(name: string, afterS: number, end: string): void {
  clock.advance(afterS * 1_000);
  const known = paths[name] ?? paths["start"];
  assert.ok(known !== undefined);
  // The digest is that of the moment.
  const request = { ...known, params: { ...known.params, digest: `${clock.nowMs()}` } };
  laws.beforeEffect(site, request);
  if (end === "lost") laws.whenAnswered(request, { type: "lost", detail: "socket hang up" });
  else if (end !== "") laws.whenAnswered(request, answer(end));
}

function answer(end: string): PveReply {
  const [status = "", ...words] = end.split(" ");
  const reason = words.join(" ");
  const said = status === "200" ? { data: reason || null } : { data: null, message: `${reason}\n` };
  const body = JSON.stringify(said);
  return { type: "answered", status: Number(status), reason, body, from: "pve1" };
}

/** A task that ended so after some seconds, or goes on. */
function task(exitStatus: string | undefined, afterS = 0): string {
  const upid = `UPID:pve1:${clock.nowMs()}:qmstart:100:berth@pve!berth:`;
  const endMs = clock.nowMs() + afterS * 1_000;
  const ended = exitStatus === undefined ? {} : { exitStatus, endMs };
  const known = { upid, node: "pve1", pid: 1, pstart: 1, startMs: 0, type: "qmstart", id: "100" };
  const [node] = site.model.cluster.state.nodes;
  node?.tasks.push({ ...known, user: "berth@pve!berth", log: [], warnings: 0, ...ended });
  return `200 ${upid}`;
}

describe("the law that a step is sent again only by the table", () => {
  for (const name of Object.keys(paths)) {
    it(`is broken where the same comes again too soon after it was refused: ${name}`, () => {
      send(name, 0, full);
      assert.throws(() => send(name, 20, full), /law 6.*after 20000 ms, where 23000 ms/);
    });
  }

  it("is broken by waits that do not grow", () => {
    for (const afterS of [0, 30, 60]) send("start", afterS, full);
    assert.throws(() => send("start", 60, full), /where 95000 ms are due.*for the 3\. time/);
  });

  it("is broken by a task that fails as often, counted from its end", () => {
    send("start", 0, task(full, 100));
    assert.throws(() => send("start", 120, full), /after 20000 ms/);
  });

  it("is broken by the sixth try of what may fail five times", () => {
    category = "CreationFailed";
    for (const afterS of [0, 30, 60, 120, 300]) send("start", afterS, full);
    assert.throws(() => send("start", 3_600, full), /nothing more is to be tried/);
  });

  it("is broken by a refusal that only a person mends and that is met again within minutes", () => {
    category = "PermissionDenied";
    send("start", 0, "403 Permission check failed");
    assert.throws(() => send("start", 300, done), /where 479000 ms are due/);
  });

  it("is broken by a task that is begun again while it runs", () => {
    send("start", 0, task(undefined));
    assert.throws(() => send("start", 3_600, done), /running/);
  });

  it("is broken by what is done over and over without effect", () => {
    for (const end of [done, done, done]) send("start", 1, end);
    assert.throws(() => send("start", 1, done), /done, for the 3\. time/);
  });

  it("lets a lock be tried again soon, and ever more seldom", () => {
    for (const afterS of [0, 2, 4, 8]) send("start", afterS, locked);
    assert.throws(() => send("start", 8, locked), /where 15000 ms are due: blocked/);
  });

  it("lets what was changed meanwhile be planned anew at once, but not for ever", () => {
    for (const afterS of [0, 0, 2]) send("start", afterS, modified);
    assert.throws(() => send("start", 1, modified), /changed, for the 3\. time/);
  });

  it("lets a VM that somebody stopped meanwhile be started, and the step be sent again", () => {
    send("suspend", 0, stopped);
    send("start", 0, done);
    send("suspend", 1, stopped);
    assert.throws(() => send("suspend", 0, stopped), /changed, for the 2\. time/);
  });

  it("lets an answer that nobody heard be found out about first", () => {
    send("start", 0, "lost");
    assert.throws(() => send("start", 10, done), /unknown/);
    send("stop", 0, full);
    starts += 1;
    for (let time = 0; time < 2; time++) send("stop", 30, "lost");
    assert.throws(() => send("stop", 30, "lost"), /where 47000 ms are due: unknown/);
  });

  it("lets another step come between two requests without an answer, but not for ever", () => {
    for (let time = 0; time < 3; time++) {
      send("suspend", 1, "lost");
      send("start", 1, done);
    }
    assert.throws(() => send("suspend", 1, "lost"), /unknown, for the 3\. time/);
  });

  it("starts from the beginning after another word, and after a lost status", () => {
    send("start", 0, full);
    word = "another generation";
    send("start", 1, full);
    laws.loseStatus();
    send("start", 1, full);
    assert.throws(() => send("start", 1, full), /for the 1\. time/);
  });

  it("knows one VM and one request from another, and what was undone in between", () => {
    for (let time = 0; time < 6; time++) {
      send("start", 1, done);
      send("stop", 1, done);
    }
    send("download", 0, full);
    send("upload", 0, full);
  });

  it("is about VMs, volumes and files, and nothing else", () => {
    assert.equal(targetOf({ method: "POST", path: "/pools" }), undefined);
    assert.equal(targetOf(paths["destroy"] ?? { method: "GET", path: "" }), "vm 100");
    assert.match(targetOf(paths["remove"] ?? { method: "GET", path: "" }) ?? "", / seed\.iso$/);
  });
});
