import assert from "node:assert/strict";
import { test } from "node:test";
import type { Fetched } from "../fetcher.ts";
import { Stage } from "../fixture.ts";
import { ProxmoxModel } from "../model.ts";

const content = "/nodes/pve1/storage/local";

/** A cluster that gets whatever is asked for. */
function stageWith(fetched: Fetched): Stage {
  const stage = new Stage();
  const { clock, random } = stage;
  const text = stage.model.save();
  stage.model = ProxmoxModel.load(text, { clock, random, fetch: async () => fetched });
  return stage;
}

const file: Fetched = { kind: "file", sizeBytes: 1_000, sha256: "ab", mimeType: "x" };
const download = { content: "iso", filename: "a.iso", url: "http://192.0.2.9/a.iso" };

function names(stage: Stage): string[] {
  const volumes = stage.model.cluster.state.volumes["pve1:/var/lib/vz"] ?? [];
  return volumes.map(({ name }) => name).filter((name) => name.startsWith("iso/"));
}

test("a download has its final name only when it is whole: a kill before leaves nothing", async () => {
  const stage = stageWith(file);
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "rename",
  });
  assert.equal(await stage.does("POST", `${content}/download-url`, download), "unexpected status");
  assert.deepEqual(names(stage), []);
  assert.equal(await stage.does("POST", `${content}/download-url`, download), "OK");
  assert.deepEqual(names(stage), ["iso/a.iso"]);
});

test("a download does not replace a file, and is refused if its checksum is another", async () => {
  const stage = stageWith(file);
  const wrong = { ...download, checksum: "cd", "checksum-algorithm": "sha256" };
  const end = await stage.does("POST", `${content}/download-url`, wrong);
  assert.equal(end, "checksum mismatch: got 'ab' != expect 'cd'");
  assert.deepEqual(names(stage), []);
  assert.equal(await stage.does("POST", `${content}/download-url`, download), "OK");
  const again = await stage.does("POST", `${content}/download-url`, download);
  assert.match(again, /^refusing to override existing file/);
  const same = { ...download, checksum: "ab", "checksum-algorithm": "sha256" };
  assert.equal(await stage.does("POST", `${content}/download-url`, same), "OK");
});

test("an address that does not answer fails the task, not the call", async () => {
  const stage = stageWith({ kind: "unreachable" });
  const end = await stage.does("POST", `${content}/download-url`, download);
  assert.equal(end, "download failed: exit code 4");
});

test("an upload that is killed in the middle leaves half a file under its real name", async () => {
  const stage = new Stage();
  const { status, data } = await upload(stage, "b.iso", "0123456789");
  assert.equal(status, 200);
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "copy upload",
  });
  assert.equal(await stage.taskEnd(data), "unexpected status");
  assert.equal(stage.model.volume("pve1", "local:iso/b.iso")?.sizeBytes, 5);
  const again = await upload(stage, "b.iso", "0123456789");
  assert.equal(await stage.taskEnd(again.data), "OK");
  assert.equal(stage.model.volume("pve1", "local:iso/b.iso")?.sizeBytes, 10);
});

async function upload(
  stage: Stage,
  filename: string,
  text: string,
): Promise<{ status: number; data: unknown }> {
  const boundary = "limit";
  const field = `Content-Disposition: form-data; name="content"\r\n\r\niso`;
  const part = `Content-Disposition: form-data; name="filename"; filename="${filename}"`;
  const parts = [field, `${part}\r\n\r\n${text}`].map((each) => `--${boundary}\r\n${each}\r\n`);
  const body = `${parts.join("")}--${boundary}--\r\n`;
  const authorization = "PVEAPIToken=berth@pve!berth=00000000-0000-4000-8000-000000000001";
  const type = `multipart/form-data; boundary=${boundary}`;
  const reply = await stage.settle(
    stage.model.send({
      method: "POST",
      path: `/api2/json${content}/upload`,
      headers: { authorization, "content-type": type },
      body,
      via: "pve1",
    }),
  );
  const read: { data?: unknown } = JSON.parse(reply.body);
  return { status: reply.status, data: read.data };
}
