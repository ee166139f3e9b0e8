import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Release } from "../../../sim/index.ts";
import { openClinic, tokenId, type Clinic } from "./testing.ts";

const minuteMs = 60_000;
const releases: readonly Release[] = ["7.4", "8.4", "9.2"];

interface Begun {
  readonly node: string;
  readonly user: string;
  readonly minutesAgo: number;
  readonly isRunning?: boolean;
}

/** A task that somebody began. */
function begin({ model, clock }: Clinic, { node, user, minutesAgo, isRunning }: Begun): void {
  const startMs = clock.nowMs() - minutesAgo * minuteMs;
  const seconds = Math.floor(startMs / 1000).toString(16);
  const upid = `UPID:${node}:00001234:00ABCDEF:${seconds.toUpperCase()}:qmstart:101:${user}:`;
  const common = { pid: 4660, pstart: 1, startMs, log: [], warnings: 0 };
  const ended = { endMs: startMs + 1000, exitStatus: "OK" };
  const task = { upid, node, type: "qmstart", id: "101", user, ...common };
  const found = model.cluster.state.nodes.find(({ name }) => name === node);
  found?.tasks.push(isRunning === true ? task : { ...task, ...ended });
}

/** What was begun within the last half hour, as one text each. */
async function shown(clinic: Clinic): Promise<readonly string[]> {
  const sinceMs = clinic.clock.nowMs() - 30 * minuteMs;
  const work = await clinic.settle(clinic.doctor().ownWork(sinceMs));
  assert.ok(work.ok, JSON.stringify(work));
  const nowMs = Math.floor(clinic.clock.nowMs() / minuteMs);
  return [
    ...work.value.tasks.map(({ does, target, sinceMs: at, isRunning }) => {
      const ago = nowMs - Math.floor(at / minuteMs);
      return `${does} ${target} ${ago}${isRunning ? " running" : ""}`;
    }),
    ...work.value.unread.map((node) => `unread ${node}`),
  ];
}

describe("the work of Berth's own credentials", () => {
  for (const release of releases) {
    it(`is what its token began on any node, the newest first, on ${release}`, async () => {
      const clinic = openClinic({ release });
      begin(clinic, { node: "pve1", user: tokenId, minutesAgo: 20 });
      begin(clinic, { node: "pve2", user: tokenId, minutesAgo: 10 });
      begin(clinic, { node: "pve1", user: tokenId, minutesAgo: 40 });
      begin(clinic, { node: "pve2", user: "root@pam", minutesAgo: 5 });
      begin(clinic, { node: "pve2", user: `${tokenId}2`, minutesAgo: 5 });
      assert.deepEqual(await shown(clinic), ["Start of 101 on pve2 10", "Start of 101 on pve1 20"]);
      assert.ok(clinic.requests.every((request) => request.startsWith("GET ")));
    });
  }

  it("names the nodes that could not be asked", async () => {
    const clinic = openClinic();
    begin(clinic, { node: "pve1", user: tokenId, minutesAgo: 1 });
    const away = clinic.model.cluster.state.nodes.find(({ name }) => name === "pve2");
    if (away !== undefined) away.isOnline = false;
    assert.deepEqual(await shown(clinic), ["Start of 101 on pve1 1", "unread pve2"]);
  });
});
