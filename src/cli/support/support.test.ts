import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { support } from "../commands/support.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";
import { redactObject } from "./redact-object.ts";
import { runSupport, type SupportTools } from "./run.ts";
import { tarOf } from "./tar.ts";

let bench: Bench;
let written: Map<string, Uint8Array>;

beforeEach(async () => {
  bench = await createBench();
  written = new Map();
});

const tools: SupportTools = {
  doctor: {
    folderFormat: () => undefined,
    writeNew: () => undefined,
    createDoctor: () => ({
      diagnose: async () => ({ findings: [] }),
      snapshot: async () => ({ ok: true, value: {} }),
      ownWork: async () => ({ ok: true, value: { tasks: [], unread: [] } }),
      close: () => undefined,
    }),
  },
  fileSizes: () => ({ "berth.db": 4096 }),
  writeNew: (path, content) => {
    if (written.has(path)) throw Object.assign(new Error("exists"), { code: "EEXIST" });
    written.set(path, content);
  },
  system: () => ({ node: "v24" }),
};

async function run(...args: string[]): Promise<Ran & { text: string }> {
  const ran = await bench.run(support, (call, machine) => runSupport(call, machine, tools), args);
  return { ...ran, text: [...ran.out, ...ran.notes].join("\n") };
}

/** The files of an archive, as any tar finds them: by the sizes in the headers. */
function untar(archive: Buffer): Map<string, string> {
  const files = new Map<string, string>();
  for (let at = 0; archive[at] !== 0;) {
    const header = archive.subarray(at, at + 512);
    const text = (from: number, to: number): string => {
      return header.subarray(from, to).toString("ascii").replace(/\0.*$/s, "");
    };
    const size = Number.parseInt(text(124, 136), 8);
    const blank = Buffer.from(header).fill(" ", 148, 156);
    const sum = blank.reduce((total, byte) => total + byte, 0);
    assert.equal(Number.parseInt(text(148, 156), 8), sum, "the sum of a header");
    assert.equal(text(257, 263), "ustar");
    files.set(text(0, 100), archive.subarray(at + 512, at + 512 + size).toString());
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}

describe("support", () => {
  test("collects what there is, and prints what is in it", async () => {
    bench.files.set("/home/.berth/berth.log", "one\ntwo\n");
    const { code, text } = await run("--out", "bundle.tar.gz");
    assert.equal(code, 0, text);
    const files = untar(gunzipSync(written.get("/home/bundle.tar.gz") ?? assert.fail(text)));
    const contents = files.get("berth-support/CONTENTS.txt") ?? "";
    assert.ok(text.includes(contents.trim()), "what is printed is in it too");
    assert.match(contents, /^versions\.json +\d+ bytes$/m);
    assert.match(contents, /^objects\/virtualmachines\.json +\d+ bytes$/m);
    assert.match(contents, /^metrics\.txt +not there: /m);
    assert.match(contents, /^doctor\.json +\d+ bytes$/m);
    assert.equal(files.get("berth-support/log.txt"), "one\ntwo\n");
    assert.match(files.get("berth-support/files.json") ?? "", /"berth.db": 4096/);
    const namespaces = JSON.parse(files.get("berth-support/objects/namespaces.json") ?? "");
    assert.equal(namespaces.items[0].metadata.name, "default");
    assert.match(text, /Look into it before you send it/);
    assert.match((await run("--out", "bundle.tar.gz")).text, /exists: name another by --out FILE/);
  });

  test("is made without a server too, and says so", async () => {
    bench.machine = {
      ...bench.machine,
      dial: () => ({
        send: () => Promise.reject(Object.assign(new Error("gone"), { code: "ECONNRESET" })),
        close: () => undefined,
      }),
    };
    const { code, text } = await run();
    assert.equal(code, 0, text);
    assert.match(
      text,
      /server\.json +not there: the connection to https:\/\/berth.test:7443 broke/,
    );
    assert.match(text, /All of it is in berth-support-2026-01-02T030405Z\.tar\.gz/);
    assert.equal(written.size, 1);
  });

  test("has the shape of Secrets, and nothing that they hold", async () => {
    const data = { token: Buffer.from("hunter2").toString("base64") };
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "hunter2" };
    await bench.write("POST", "/api/v1/namespaces/default/secrets", {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s", annotations },
      data,
    });
    const { text } = await run("--out", "b");
    const files = untar(gunzipSync(written.get("/home/b") ?? assert.fail(text)));
    const all = [...files.values()].join("\n");
    assert.doesNotMatch(all, /hunter2/);
    assert.ok(!all.includes(data.token));
    const secrets = files.get("berth-support/objects/secrets.json") ?? "";
    assert.match(secrets, /"token": "\[redacted\] \(12 characters\)"/);
  });

  test("an object keeps its references and loses what a guest is given", () => {
    const userData = { inline: "#cloud-config\npassword: hunter2" };
    const shown = redactObject({
      kind: "VirtualMachine",
      metadata: { name: "a", managedFields: [{}], annotations: { note: "https://u:hunter2@x/" } },
      spec: {
        source: { image: { name: "debian" } },
        cloudInit: { userData, user: { passwordHash: "$6$hunter2", name: "ops" } },
        credentials: { secretRef: { name: "kept", key: "userData" } },
        urls: ["https://x/a?token=hunter2"],
      },
    });
    const text = JSON.stringify(shown);
    assert.doesNotMatch(text, /hunter2|managedFields/);
    assert.match(text, /"secretRef":\{"name":"kept","key":"userData"\}/);
    assert.match(text, /"name":"ops"/);
    assert.match(text, /"image":\{"name":"debian"\}/);
  });

  test("an archive holds files of every length", () => {
    const lengths = [0, 1, 511, 512, 513, 5_000];
    const files = lengths.map((length) => ({ path: `f/${length}`, content: "x".repeat(length) }));
    const found = untar(tarOf(files, 0));
    assert.deepEqual(
      [...found].map(([path, content]) => [path, content.length]),
      lengths.map((length) => [`f/${length}`, length]),
    );
  });
});
