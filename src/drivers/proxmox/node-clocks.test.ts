import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { proxmoxDriver } from "./driver.ts";
import { claim, data, error, tokenId } from "./fixture.ts";
import type { PveReply, PveRequest } from "./wire/wire.ts";

/** Some nodes with one task of ours, whose clocks differ from Berth's as a test says. */
class Nodes {
  readonly clock = new VirtualClock();
  readonly requests: PveRequest[] = [];
  readonly aheadMs = new Map([
    ["pve1", 0],
    ["pve2", 0],
  ]);
  /** How long a reply about a time takes. */
  slowMs = 0;
  /** What Berth's own clock was set forward by. */
  setMs = 0;
  refusal: PveReply | undefined;
  #tasks: string[] = [];
  readonly driver = proxmoxDriver({
    send: (request) => Promise.resolve(this.#answer(request)),
    tokenId,
    clock: {
      nowMs: () => this.clock.nowMs() + this.setMs,
      monotonicMs: () => this.clock.monotonicMs(),
      bootId: this.clock.bootId,
      after: (ms, act) => this.clock.after(ms, act),
    },
    random: { number: () => 0, bytes: (count) => new Uint8Array(count), uuid: () => "" },
  });

  begin(node: string): void {
    const seconds = Math.floor(this.#timeOf(node) / 1000);
    const start = seconds.toString(16).toUpperCase().padStart(8, "0");
    this.#tasks.push(`UPID:${node}:00001234:00ABCDEF:${start}:qmstart:1000101:${tokenId}:`);
  }

  get asked(): number {
    return this.requests.filter(({ path }) => path.endsWith("/time")).length;
  }

  #timeOf(node: string): number {
    return this.clock.nowMs() + (this.aheadMs.get(node) ?? 0);
  }

  #answer(request: PveRequest): PveReply {
    this.requests.push(request);
    const [, , node = "", what] = request.path.split("/");
    if (what === "time") {
      if (this.refusal !== undefined) return this.refusal;
      const time = Math.floor(this.#timeOf(node) / 1000);
      this.clock.advance(this.slowMs);
      return data({ timezone: "UTC", time, localtime: time });
    }
    const since = Number(request.params?.["since"]);
    const listed = this.#tasks.filter((upid) => {
      return upid.split(":")[1] === node && Number.parseInt(upid.split(":")[4] ?? "", 16) >= since;
    });
    return data(listed.map((upid) => ({ upid })));
  }

  /** How long after the moment asked for each task began, in seconds. */
  async recall(node: string, sinceMs: number): Promise<number[] | string> {
    const found = await this.driver.recall({ ...claim, node }, sinceMs);
    if (!found.ok) return found.failure.message;
    return found.value.map((task) => Math.round((task.sinceMs - sinceMs) / 1000));
  }
}

describe("the clock of a node", () => {
  for (const aheadMs of [-600_000, -61_400, -900, 0, 900, 61_400, 600_000]) {
    it(`that is ${aheadMs} ms ahead hides no task, and makes none of an old one`, async () => {
      const nodes = new Nodes();
      nodes.aheadMs.set("pve1", aheadMs);
      nodes.begin("pve1");
      nodes.clock.advance(20_000);
      const sinceMs = nodes.clock.nowMs();
      nodes.clock.advance(300);
      nodes.begin("pve1");
      const found = await nodes.recall("pve1", sinceMs);
      assert(Array.isArray(found) && found.length === 1, JSON.stringify(found));
      assert(Math.abs(found[0] ?? 99) <= 2, JSON.stringify(found));
    });
  }

  it("is that of the node which runs the task, where nodes differ", async () => {
    const nodes = new Nodes();
    nodes.aheadMs.set("pve1", -300_000).set("pve2", 300_000);
    const sinceMs = nodes.clock.nowMs();
    nodes.begin("pve1");
    nodes.begin("pve2");
    for (const node of ["pve1", "pve2"]) {
      const found = await nodes.recall(node, sinceMs);
      assert(Array.isArray(found) && found.length === 1, `${node}: ${JSON.stringify(found)}`);
    }
  });

  it("is asked for once in half a minute, and again when it may have been set", async () => {
    const nodes = new Nodes();
    await nodes.recall("pve1", nodes.clock.nowMs());
    nodes.clock.advance(20_000);
    await nodes.recall("pve1", nodes.clock.nowMs());
    assert.equal(nodes.asked, 1);
    nodes.aheadMs.set("pve1", -120_000);
    nodes.clock.advance(20_000);
    const sinceMs = nodes.clock.nowMs();
    nodes.begin("pve1");
    const found = await nodes.recall("pve1", sinceMs);
    assert(Array.isArray(found) && found.length === 1, JSON.stringify(found));
    assert.equal(nodes.asked, 2);
  });

  it("is known also when Berth's own clock was set since it was asked", async () => {
    const nodes = new Nodes();
    await nodes.recall("pve1", nodes.clock.nowMs());
    nodes.setMs = 3_600_000;
    const sinceMs = nodes.clock.nowMs() + nodes.setMs;
    nodes.begin("pve1");
    const found = await nodes.recall("pve1", sinceMs);
    assert(Array.isArray(found) && found.length === 1, JSON.stringify(found));
    assert.equal(nodes.asked, 1);
  });

  it("gives no time to a task where the reply that told it was too slow", async () => {
    const nodes = new Nodes();
    nodes.begin("pve1");
    nodes.slowMs = 20_000;
    const found = await nodes.recall("pve1", nodes.clock.nowMs());
    assert.match(String(found), /clock of pve1 cannot be read well enough: its reply took 20 s/);
  });

  it("gives no time to a task where nobody tells it", async () => {
    const nodes = new Nodes();
    nodes.refusal = error(403, "Permission check failed (/nodes/pve1, Sys.Audit)");
    nodes.begin("pve1");
    assert.equal(typeof (await nodes.recall("pve1", 0)), "string");
  });
});
