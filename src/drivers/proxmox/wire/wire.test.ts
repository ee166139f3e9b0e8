import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { PveApi } from "./api.ts";
import { failingOver } from "./failover.ts";
import { limited } from "./limited.ts";
import { formatProperties, parseProperties, withProperties } from "./property-string.ts";
import { newestFirst, parseUpid } from "./upid.ts";
import {
  encodeParams,
  httpForm,
  nodeOf,
  pathPart,
  type PveReply,
  type PveRequest,
  type Send,
  wholeBody,
} from "./wire.ts";

const answer: PveReply = {
  type: "answered",
  status: 200,
  reason: "OK",
  body: '{"data":1}',
  from: "a",
};
const unreachable: PveReply = { type: "notSent", why: "unreachable", detail: "refused" };
const lost: PveReply = { type: "lost", detail: "reset" };

const read: PveRequest = { method: "GET", path: "/version" };
const write: PveRequest = { method: "POST", path: "/nodes/pve1/qemu", mayWrite: () => true };

describe("parameters", () => {
  it("never let a value end early: the server splits at ; and at every =", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const encoded = encodeParams({ description: value }).slice("description=".length);
        assert.doesNotMatch(encoded, /[&;=+'()*! ]/);
        assert.equal(decodeURIComponent(encoded), value);
      }),
    );
  });

  it("encode a volume's id as one part of a path", () => {
    const id = "local:100/vm-100-disk-0.qcow2";
    assert.equal(pathPart(id), "local%3A100%2Fvm-100-disk-0.qcow2");
    assert.equal(nodeOf("/nodes/pve1/qemu/100"), "pve1");
    assert.equal(nodeOf("/cluster/resources"), undefined);
  });
});

describe("a request as HTTP has it", () => {
  it("has its parameters in the query where a body is refused, and in the body elsewhere", () => {
    const params = { purge: 1, "destroy-unreferenced-disks": 0 };
    const removal = httpForm({ method: "DELETE", path: "/nodes/pve1/qemu/100", params });
    assert.deepEqual(removal, {
      path: "/nodes/pve1/qemu/100?purge=1&destroy-unreferenced-disks=0",
      body: "",
    });
    const change = httpForm({ method: "PUT", path: "/x", params: { a: "b c" } });
    assert.equal(change.body, "a=b%20c");
    assert.equal(change.contentType, "application/x-www-form-urlencoded");
  });

  it("carries a file that comes in pieces as if it came at once, and breaks off at a wrong size", async () => {
    const pieces = [Uint8Array.of(1, 2), Uint8Array.of(3)];
    const request = { method: "POST", path: "/u", params: { content: "iso" } } as const;
    const streamed = (sizeBytes: number) => {
      async function* chunks(): AsyncIterable<Uint8Array> {
        yield* pieces;
      }
      return httpForm({ ...request, file: { name: "x.iso", sizeBytes, chunks: chunks() } }).body;
    };
    const whole = httpForm({
      ...request,
      file: { name: "x.iso", content: Uint8Array.of(1, 2, 3) },
    });
    const body = streamed(3);
    assert(typeof body === "object" && "lengthBytes" in body);
    const bytes = await wholeBody(body);
    assert.equal(bytes.length, body.lengthBytes);
    assert.deepEqual(bytes, whole.body);
    await assert.rejects(wholeBody(streamed(2)));
    await assert.rejects(wholeBody(streamed(4)));
  });

  it("carries a file byte for byte, behind its fields", async () => {
    const content = Uint8Array.from({ length: 256 }, (_, index) => index);
    const file = { name: "berth-seed-x.iso", content };
    const form = httpForm({ method: "POST", path: "/u", params: { content: "iso" }, file });
    const boundary = /boundary=(.*)$/.exec(form.contentType ?? "")?.[1] ?? "";
    const text = Buffer.from(await wholeBody(form.body)).toString("latin1");
    const parts = text.split(`--${boundary}`);
    assert.equal(parts.length, 4);
    assert.match(parts[1] ?? "", /name="content"\r\n\r\niso\r\n$/);
    assert.match(parts[2] ?? "", /name="filename"; filename="berth-seed-x.iso"/);
    const sent = (parts[2] ?? "").split("\r\n\r\n").slice(1).join("\r\n\r\n").slice(0, -2);
    assert.deepEqual(Uint8Array.from(Buffer.from(sent, "latin1")), content);
    assert.equal(parts[3], "--\r\n");
  });
});

describe("property strings", () => {
  it("come back as they were", () => {
    const key = fc.stringMatching(/^[a-z_]{1,8}$/);
    const value = fc.stringMatching(/^[a-z0-9:./=]{1,8}$/);
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(key, value), { selector: ([name]) => name }), (pairs) => {
        assert.deepEqual(parseProperties(formatProperties(pairs, "-"), "-"), pairs);
      }),
    );
  });

  it("keep the options that are not changed, where they are", () => {
    const changed = withProperties(parseProperties("st:v,a=1,b=2,c=3", "file"), {
      b: undefined,
      c: "4",
      d: "5",
    });
    assert.equal(formatProperties(changed, "file"), "st:v,a=1,c=4,d=5");
  });
});

describe("a task's name", () => {
  it("tells node, start, type, id and the token", () => {
    const task = "UPID:pve1:0000ABCD:00112233:69573C85:qmcreate:101:berth@pve!prod:";
    assert.deepEqual(parseUpid(task), {
      node: "pve1",
      startMs: 0x69573c85 * 1000,
      type: "qmcreate",
      id: "101",
      user: "berth@pve!prod",
    });
    const old = "UPID:pve1:0000ABCD:112233445:69573C85:qmstart:101:root@pam:";
    assert.equal(parseUpid(old)?.type, "qmstart", "pstart has nine digits after 497 days");
    assert.equal(parseUpid("null"), undefined);
  });

  it("tells which of two began first, also within one second", () => {
    const tasks = ["0011", "0022", "00FF", "0033"].map((ticks, index) => ({
      task: `UPID:pve1:0000ABCD:0011${ticks}:69573C85:qmconfig:101:berth@pve!prod:`,
      startMs: index === 2 ? 0 : 1_000,
    }));
    const order = tasks.toSorted(newestFirst).map(({ task }) => task.slice(23, 27));
    assert.deepEqual(order, ["0033", "0022", "0011", "00FF"]);
  });
});

describe("the API", () => {
  const api = (reply: PveReply) => new PveApi(async () => reply);
  const error = (body: unknown, reason = "x"): PveReply => {
    return { ...answer, status: 500, reason, body: JSON.stringify(body) };
  };

  it("reads the text of an error where each release puts it", async () => {
    const old = await api(error({ data: null }, "VM is locked (backup)")).get("/x");
    assert(old.type === "error" && old.text === "VM is locked (backup)", "7.4: reason phrase");
    const now = await api(error({ data: null, message: "first\nsecond\n" })).get("/x");
    assert(now.type === "error" && now.text === "first\nsecond", "since 8.4: also the body");
    const plain = await api({ ...answer, status: 501, reason: "no", body: "no such" }).get("/x");
    assert(plain.type === "error" && plain.text === "no");
  });

  it("takes 596, 597, 599 and what is no JSON for a lost reply, and 595 for a refusal", async () => {
    for (const status of [596, 597, 599]) {
      assert.equal((await api({ ...answer, status }).get("/x")).type, "lost");
    }
    assert.equal((await api({ ...answer, status: 595 }).get("/x")).type, "error");
    assert.equal((await api({ ...answer, body: "<html>" }).get("/x")).type, "lost");
  });

  it("passes the fence on with every write, and with no read", async () => {
    const seen: PveRequest[] = [];
    const recorded = new PveApi(async (request) => {
      seen.push(request);
      return answer;
    });
    await recorded.get("/x");
    await recorded.write("POST", { path: "/x" }, () => true);
    assert.deepEqual(
      seen.map(({ mayWrite }) => mayWrite !== undefined),
      [false, true],
    );
  });
});

describe("failing over", () => {
  const endpoints = (...replies: PveReply[]): { send: Send; asked: number[] } => {
    const asked: number[] = [];
    const sends = replies.map((reply, index): Send => {
      return async () => {
        asked.push(index);
        return reply;
      };
    });
    return { send: failingOver(sends), asked };
  };

  it("asks the next endpoint for a read that got no answer, and stays there", async () => {
    for (const dead of [unreachable, lost]) {
      const { send, asked } = endpoints(dead, answer);
      assert.equal(await send(read), answer);
      await send(read);
      assert.deepEqual(asked, [0, 1, 1]);
    }
  });

  it("asks the next endpoint for a read that the first could not pass on", async () => {
    const behind = { ...answer, status: 596, reason: "Connection timed out" } as const;
    const { send, asked } = endpoints(behind, answer);
    assert.equal(await send(read), answer);
    assert.deepEqual(asked, [0, 1]);
    const all = endpoints(behind, unreachable);
    assert.equal(await all.send(read), behind);
    const once = endpoints(behind, answer);
    assert.equal(await once.send(write), behind);
    assert.deepEqual(once.asked, [0]);
  });

  it("never sends a write twice, and goes elsewhere with the next call", async () => {
    for (const dead of [unreachable, lost]) {
      const { send, asked } = endpoints(dead, answer);
      assert.equal(await send(write), dead);
      await send(write);
      assert.deepEqual(asked, [0, 1]);
    }
  });

  it("gives up when no endpoint answers", async () => {
    const { send, asked } = endpoints(unreachable, lost);
    assert.equal(await send(read), lost);
    assert.deepEqual(asked, [0, 1]);
  });

  it("takes a closed fence for an answer", async () => {
    const fenced: PveReply = { type: "notSent", why: "fenced", detail: "" };
    const { send, asked } = endpoints(fenced, answer);
    await send(write);
    await send(write);
    assert.deepEqual(asked, [0, 0]);
  });
});

describe("calls in flight", () => {
  it("are two per node at most, and the next goes out when one ends", async () => {
    const open: (() => void)[] = [];
    const begun: string[] = [];
    const send = limited((request) => {
      begun.push(request.path);
      return new Promise((resolve) => open.push(() => resolve(answer)));
    }, 2);
    const paths = ["/nodes/a/1", "/nodes/a/2", "/nodes/a/3", "/nodes/b/1"];
    const calls = paths.map((path) => send({ ...read, path }));
    await turns();
    assert.deepEqual(begun, ["/nodes/a/1", "/nodes/a/2", "/nodes/b/1"]);
    open[0]?.();
    await turns();
    assert.deepEqual(begun.at(-1), "/nodes/a/3");
    for (const finish of open) finish();
    await Promise.all(calls);
  });

  it("to guests are one per node, so that silent agents never take all places", async () => {
    const begun: string[] = [];
    const finish: (() => void)[] = [];
    const send = limited((request) => {
      begun.push(request.path);
      return new Promise((resolve) => finish.push(() => resolve(answer)));
    }, 2);
    const agent = "/nodes/a/qemu/1/agent/network-get-interfaces";
    const paths = [agent, agent.replace("1", "2"), "/nodes/a/qemu/1/pending"];
    const calls = paths.map((path) => send({ ...read, path }));
    await turns();
    assert.deepEqual(begun.toSorted(), [agent, "/nodes/a/qemu/1/pending"]);
    finish[begun.indexOf(agent)]?.();
    await turns();
    assert.equal(begun.at(-1), agent.replace("1", "2"));
    for (const end of finish) end();
    await Promise.all(calls);
  });

  it("give their place back when they fail", async () => {
    const send = limited(async ({ path }) => {
      if (path === "/nodes/a/1") throw new Error("broken");
      return answer;
    }, 1);
    await assert.rejects(send({ ...read, path: "/nodes/a/1" }));
    assert.equal(await send({ ...read, path: "/nodes/a/2" }), answer);
  });
});

async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}
