import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { data, driverOn, ScriptedServer, upid } from "./fixture.ts";
import { parseUpid } from "./wire/upid.ts";
import { pathPart } from "./wire/wire.ts";

const file = { node: "pve1", storage: "local", fileName: "debian.qcow2" };
const own = upid("imgcopy", "");
const startMs = parseUpid(own)?.startMs ?? 0;

function log(fileName: string, node = "pve1"): string[] {
  return [
    "starting file import from: /var/tmp/pveupload-1",
    `target node: ${node}`,
    `target file: /var/lib/vz/import/${fileName}`,
  ];
}

/** What is recalled of a cluster with one upload. */
async function recall(
  lines: readonly string[],
  { task = own, ended = {} }: { task?: string; ended?: object } = {},
): Promise<string[]> {
  const node = parseUpid(task)?.node ?? "";
  const server = new ScriptedServer({
    "GET /cluster/tasks": data([{ upid: task, type: "imgcopy", ...ended }]),
    [`GET /nodes/${node}/tasks/${pathPart(task)}/log`]: data(
      lines.map((t, index) => ({ n: index + 1, t })),
    ),
  });
  const answer = await driverOn(server).recall(file, startMs, { does: "Upload" });
  assert(answer.ok, JSON.stringify(answer));
  return answer.value.map(({ task: found }) => found);
}

describe("an upload that is recalled", () => {
  it("is the one whose log names the file, whichever node was contacted", async () => {
    assert.deepEqual(await recall(log("debian.qcow2")), [own]);
    const elsewhere = own.replace(":pve1:", ":pve2:");
    assert.deepEqual(await recall(log("debian.qcow2"), { task: elsewhere }), [elsewhere]);
    const ended = { endtime: 1, status: "OK" };
    assert.deepEqual(await recall(log("debian.qcow2"), { ended }), [own]);
  });

  it("is not that of another file, nor of the same file on another node", async () => {
    assert.deepEqual(await recall(log("other.qcow2")), []);
    assert.deepEqual(await recall(log("debian.qcow2", "pve2")), []);
  });

  it("is not that of somebody else", async () => {
    const task = own.replace(/:[^:]+:$/, ":root@pam:");
    assert.deepEqual(await recall(log("debian.qcow2"), { task }), []);
  });

  it("may be one that computes its checksum, and does not name its file yet", async () => {
    const lines = log("").slice(0, 1);
    assert.deepEqual(await recall(lines), [own]);
    assert.deepEqual(await recall(lines, { ended: { endtime: 1, status: "unexpected" } }), []);
  });
});
