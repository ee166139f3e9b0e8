import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { proxmoxDriver } from "./driver.ts";
import { data, error, scriptClock, tokenId, upid } from "./fixture.ts";
import { parseUpid } from "./wire/upid.ts";
import type { PveRequest, Send } from "./wire/wire.ts";

const task = upid("imgcopy", "");
const startMs = parseUpid(task)?.startMs ?? 0;
const ended = { upid: task, endtime: startMs / 1000 + 60, status: "OK" };
const other = { ...ended, upid: task.replace("imgcopy", "imgdel") };

/** When the task ran, by the clock of `node`; that of pve2 is 100 s ahead. */
async function span(reply: ReturnType<typeof data>, node = "pve1") {
  const requests: PveRequest[] = [];
  const send: Send = (request) => {
    requests.push(request);
    const isTime = request.path.endsWith("/time");
    const aheadMs = request.path.includes("pve2") ? 100_000 : 0;
    const time = Math.floor((scriptClock.nowMs() + aheadMs) / 1000);
    return Promise.resolve(isTime ? data({ time }) : reply);
  };
  const random = { uuid: () => "", number: () => 0 } as never;
  const driver = proxmoxDriver({ send, tokenId, clock: scriptClock, random });
  return { requests, answer: await driver.span?.(task, node) };
}

describe("when a task ran", () => {
  it("is what the list of its node says, asked for by the second in which it began", async () => {
    const { answer, requests } = await span(data([other, ended]));
    const value = { startedMs: startMs, endedMs: startMs + 60_000 };
    assert.deepEqual(answer, { ok: true, value });
    const [{ path, params } = { path: "", params: undefined }] = requests;
    assert.equal(requests.length, 1, "one clock needs no conversion");
    assert.equal(path, "/nodes/pve1/tasks");
    assert.deepEqual([params?.["since"], params?.["source"]], [startMs / 1000, "all"]);
  });

  it("is converted to the clock of another node that has the file", async () => {
    const { answer } = await span(data([ended]), "pve2");
    assert(answer?.ok === true && answer.value !== undefined);
    const { startedMs, endedMs = 0 } = answer.value;
    assert.ok(Math.abs(startedMs - startMs - 100_000) <= 2_000, String(startedMs - startMs));
    assert.equal(endedMs - startedMs, 60_000);
  });

  it("has no end while the node has not noticed it", async () => {
    for (const row of [{ upid: task }, { ...ended, status: "RUNNING" }]) {
      assert.deepEqual((await span(data([row]))).answer, {
        ok: true,
        value: { startedMs: startMs },
      });
    }
  });

  it("is not known of a task that is not listed, and not told where nobody answers", async () => {
    assert.deepEqual((await span(data([other]))).answer, { ok: true, value: undefined });
    assert.equal((await span(error(595, "No route"))).answer?.ok, false);
  });
});
