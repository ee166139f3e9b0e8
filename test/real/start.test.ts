import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { type Berth, repository, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect } from "./support/http.ts";
import "./support/cleanup.ts";

const secrets = "/api/v1/namespaces/default/secrets";
const classes = "/apis/berth.dev/v1alpha1/namespaces/default/vmclasses";

function vmClass(name: string): Record<string, unknown> {
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMClass",
    metadata: { name },
    spec: { cpu: { cores: 2 }, memory: { size: "2Gi" } },
  };
}

test("the first start prints one line and makes private files", async (t) => {
  const folder = temporaryFolder("start");
  const berth = await startBerth({ data: folder.path });
  t.after(() => folder.remove());
  const ready = berth.output().match(/^berth is ready.*$/gm);
  assert.equal(ready?.length, 1);
  assert.match(ready?.[0] ?? "", /https:\/\/127\.0\.0\.1:\d+/);
  assert.match(ready?.[0] ?? "", /kubeconfig/);
  assert.equal(statSync(folder.path).mode & 0o077, 0);
  for (const file of ["kubeconfig", "secrets.key", "pki/ca.key", "pki/server.key", "berth.db"]) {
    assert.equal(
      statSync(join(folder.path, file)).mode & 0o077,
      0,
      `${file} is readable by others`,
    );
  }
  assert.equal(await berth.stop(), 0);
});

test("a second process on the same folder is refused in one sentence", async (t) => {
  const folder = temporaryFolder("second");
  const berth = await startBerth({ data: folder.path });
  t.after(async () => {
    await berth.stop();
    folder.remove();
  });
  const second = await runBerth(["up", "--data", folder.path, "--port", "0"]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, new RegExp(folder.path));
  assert.equal(second.stderr.trim().split("\n").length, 1, second.stderr);
  const http = connect(berth);
  assert.equal((await http.ask({ path: "/readyz", token: null })).text, "ok");
  http.close();
});

test("what was stored is there after a clean stop, with the same address and credentials", async (t) => {
  const folder = temporaryFolder("again");
  t.after(() => folder.remove());
  const first = await startBerth({ data: folder.path });
  const http = connect(first);
  const created = await http.ask({ method: "POST", path: classes, body: vmClass("small") });
  assert.equal(created.status, 201, created.text);
  http.close();
  assert.equal(await first.stop(), 0);
  const second = await startBerth({ data: folder.path });
  t.after(() => second.stop());
  assert.equal(second.token, first.token);
  assert.equal(second.ca, first.ca);
  const again = connect(second);
  const found = bodyOf(await again.ask({ path: `${classes}/small` }));
  assert.deepEqual(found, bodyOf(created));
  again.close();
});

test("a port that is taken is one sentence", async (t) => {
  const folder = temporaryFolder("port");
  const other = temporaryFolder("port-other");
  const berth = await startBerth({ data: folder.path });
  t.after(async () => {
    await berth.stop();
    folder.remove();
    other.remove();
  });
  const port = new URL(berth.url).port;
  const second = await runBerth(["up", "--data", other.path, "--port", port]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, new RegExp(`port ${port}.*--port`));
  assert.doesNotMatch(second.stderr, /\n\s+at /);
});

test("Secrets are not readable on the disk, and not without their key", async (t) => {
  const folder = temporaryFolder("sealed");
  t.after(() => folder.remove());
  const word = "correct-horse-battery-staple";
  const berth = await startBerth({ data: folder.path });
  await createSecret(berth, word);
  assert.equal(await berth.stop(), 0);
  for (const file of ["berth.db", "berth.db-wal"]) {
    const path = join(folder.path, file);
    if (!existsSync(path)) continue;
    const bytes = readFileSync(path);
    assert.equal(bytes.includes(word), false, `${file} holds the Secret`);
    assert.equal(bytes.includes(Buffer.from(word).toString("base64")), false, file);
  }
  const key = join(folder.path, "secrets.key");
  const content = readFileSync(key);
  rmSync(key);
  const without = await runBerth(["up", "--data", folder.path, "--port", "0"]);
  assert.equal(without.code, 1);
  assert.match(without.stderr, /secrets\.key/);
  assert.equal(existsSync(key), false, "a new key must not be made over old Secrets");
  writeFileSync(key, content, { mode: 0o600 });
  const with_ = await startBerth({ data: folder.path });
  t.after(() => with_.stop());
  const http = connect(with_);
  const found = bodyOf(await http.ask({ path: `${secrets}/word` }));
  assert.equal(Buffer.from(found.data.word, "base64").toString(), word);
  http.close();
});

test("a data folder that cannot be written is one sentence", async (t) => {
  if (process.getuid?.() === 0) return t.skip("root can write everywhere");
  const folder = temporaryFolder("readonly");
  chmodSync(folder.path, 0o500);
  t.after(() => folder.remove());
  const refused = await runBerth(["up", "--data", join(folder.path, "data"), "--port", "0"]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /data/);
});

test("a damaged database is told, and not started from", async (t) => {
  const folder = temporaryFolder("damaged");
  t.after(() => folder.remove());
  const berth = await startBerth({ data: folder.path });
  await createSecret(berth, "x");
  assert.equal(await berth.stop(), 0);
  const path = join(folder.path, "berth.db");
  const bytes = readFileSync(path);
  bytes.fill(0xff, bytes.length / 2);
  writeFileSync(path, bytes);
  const refused = await runBerth(["up", "--data", folder.path, "--port", "0"]);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /berth restore/);
  assert.doesNotMatch(refused.stderr, /\n\s+at /);
});

for (const closesOutput of ["atOnce", "whenReady"] as const) {
  test(`goes on when the reader of its output goes away ${closesOutput}`, async (t) => {
    const folder = temporaryFolder("unread");
    t.after(() => folder.remove());
    const berth = await startBerth({ data: folder.path, closesOutput });
    const logged = (): string => readFileSync(join(folder.path, "berth.log"), "utf8");
    const http = connect(berth);
    const refused = await http.ask({ path: classes, token: "wrong" });
    assert.equal(refused.status, 401);
    assert.match(logged(), /requests without valid credentials/);
    const created = await http.ask({ method: "POST", path: classes, body: vmClass("small") });
    assert.equal(created.status, 201, created.text);
    http.close();
    assert.equal(await berth.stop(), 0);
    assert.match(logged(), /leads no longer/, "it was stopped, and had not ended before");
  });
}

test("a command whose reader goes away ends without a word", async (t) => {
  const folder = temporaryFolder("head");
  t.after(() => folder.remove());
  const path = join(folder.path, "stderr");
  const line = `"$0" "$1" crds 2>"$2" | head -n 1; echo "\${PIPESTATUS[0]}"`;
  const program = join(repository, "bin", "berth");
  const { stdout } = spawnSync("bash", ["-c", line, process.execPath, program, path]);
  assert.match(stdout.toString(), /^[^\n]*\n0\n$/);
  assert.equal(readFileSync(path, "utf8"), "");
});

async function createSecret(berth: Berth, word: string): Promise<void> {
  const http = connect(berth);
  const body = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "word" },
    stringData: { word },
  };
  const reply = await http.ask({ method: "POST", path: secrets, body });
  assert.equal(reply.status, 201, reply.text);
  http.close();
}
