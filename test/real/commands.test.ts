import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { type Berth, repository, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { startReplica } from "./support/controllers.ts";
import { bodyOf, connect } from "./support/http.ts";
import "./support/cleanup.ts";

const secrets = "/api/v1/namespaces/default/secrets";
const configMaps = "/api/v1/namespaces/default/configmaps";

async function startFilled(data: string): Promise<Berth> {
  const berth = await startBerth({ data });
  const http = connect(berth);
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s" },
    stringData: { a: "b" },
  };
  const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" } };
  assert.equal((await http.ask({ method: "POST", path: secrets, body: secret })).status, 201);
  assert.equal((await http.ask({ method: "POST", path: configMaps, body: configMap })).status, 201);
  http.close();
  return berth;
}

async function statusOf(berth: Berth, path: string): Promise<number> {
  const http = connect(berth);
  const { status } = await http.ask({ path });
  http.close();
  return status;
}

test("a backup of a running server without the key brings back all but the Secrets", async (t) => {
  const folder = temporaryFolder("backup");
  t.after(() => folder.remove());
  const [data, restored] = [join(folder.path, "data"), join(folder.path, "restored")];
  const file = join(folder.path, "copy.backup");
  const berth = await startFilled(data);
  const made = await runBerth(["backup", file, "--data", data]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /objects at revision/);
  assert.equal(statSync(file).mode & 0o077, 0);
  const key = readFileSync(join(data, "secrets.key"));
  assert.equal(readFileSync(file).includes(key.subarray(0, 40)), false, "the key is in the backup");
  const second = await runBerth(["backup", file, "--data", data]);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /exists/);
  await berth.stop();

  const back = await runBerth(["restore", file, "--data", restored]);
  assert.equal(back.code, 0, back.stderr);
  assert.match(back.stderr, /Secret default\/s cannot be read/);
  assert.match(back.stderr, /only observes.*berth takeover --all/);
  const again = await startBerth({ data: restored });
  t.after(() => again.stop());
  assert.equal(await statusOf(again, `${configMaps}/c`), 200);
  assert.equal(await statusOf(again, `${secrets}/s`), 404);
  assert.notEqual(again.token, berth.token);
});

test("a backup with the key brings back everything, credentials included", async (t) => {
  const folder = temporaryFolder("backup-key");
  t.after(() => folder.remove());
  const [data, restored] = [join(folder.path, "data"), join(folder.path, "restored")];
  const file = join(folder.path, "copy.backup");
  const berth = await startFilled(data);
  assert.equal(await berth.stop(), 0);
  const made = await runBerth(["backup", file, "--data", data, "--with-key"]);
  assert.equal(made.code, 0, made.stderr);
  const back = await runBerth(["restore", file, "--data", restored]);
  assert.equal(back.code, 0, back.stderr);
  assert.doesNotMatch(back.stderr, /cannot be read/);
  const again = await startBerth({ data: restored });
  t.after(() => again.stop());
  assert.equal(again.token, berth.token);
  assert.equal(again.ca, berth.ca);
  const http = connect(again);
  const found = bodyOf(await http.ask({ path: `${secrets}/s` }));
  http.close();
  assert.equal(found.data.a, "Yg==");
});

test("restore refuses what is not a backup, a damaged one, and a folder that is in use", async (t) => {
  const folder = temporaryFolder("restore-bad");
  t.after(() => folder.remove());
  const data = join(folder.path, "data");
  const file = join(folder.path, "copy.backup");
  const berth = await startFilled(data);
  t.after(() => berth.stop());
  assert.equal((await runBerth(["backup", file, "--data", data])).code, 0);
  const inUse = await runBerth(["restore", file, "--data", data]);
  assert.equal(inUse.code, 1);
  assert.match(inUse.stderr, /in use|not empty/);
  const noise = join(folder.path, "noise");
  writeFileSync(noise, "this is no backup");
  const missing = join(folder.path, "nowhere");
  const damaged = join(folder.path, "damaged");
  const bytes = readFileSync(file);
  bytes.fill(0xff, bytes.length / 2);
  writeFileSync(damaged, bytes);
  for (const bad of [noise, missing, damaged]) {
    const refused = await runBerth(["restore", bad, "--data", join(folder.path, "new")]);
    assert.equal(refused.code, 1, bad);
    assert.equal(refused.stderr.trim().split("\n").length, 1, refused.stderr);
    assert.doesNotMatch(refused.stderr, /\n\s+at /);
  }
});

test("berth user adds, lists and removes, and each role gets what it may", async (t) => {
  const folder = temporaryFolder("user");
  const berth = await startFilled(folder.path);
  t.after(async () => {
    await berth.stop();
    folder.remove();
  });
  const data = ["--data", folder.path];
  const tokens = new Map<string, string>();
  for (const role of ["admin", "edit", "view"]) {
    const added = await runBerth(["user", "add", `a-${role}`, "--role", role, ...data]);
    assert.equal(added.code, 0, added.stderr);
    tokens.set(role, parse(added.stdout).users[0].user.token);
  }
  const http = connect(berth);
  t.after(() => http.close());
  const may = async (role: string, method: string, path: string): Promise<number> => {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `by-${role}` } };
    const token = tokens.get(role) ?? null;
    const reply = await http.ask({ method, path, token, ...(method === "POST" ? { body } : {}) });
    return reply.status;
  };
  const system = "/api/v1/namespaces/berth-system/secrets";
  const table: [string, string, Record<string, number>][] = [
    ["GET", configMaps, { admin: 200, edit: 200, view: 200 }],
    ["POST", configMaps, { admin: 201, edit: 201, view: 403 }],
    ["GET", secrets, { admin: 200, edit: 200, view: 403 }],
    ["GET", system, { admin: 200, edit: 403, view: 403 }],
    ["GET", "/apis/berth.dev/v1alpha1/hypervisors", { admin: 200, edit: 200, view: 200 }],
  ];
  for (const [method, path, expected] of table) {
    for (const [role, status] of Object.entries(expected)) {
      assert.equal(await may(role, method, path), status, `${role} ${method} ${path}`);
    }
  }
  assert.match((await runBerth(["user", "list", ...data])).stdout, /a-view\s+view\s+\(all\)/);
  const removed = await runBerth(["user", "remove", "a-view", ...data]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.equal(await may("view", "GET", configMaps), 401);
  const twice = await runBerth(["user", "remove", "a-view", ...data]);
  assert.equal(twice.code, 1);
  assert.match(twice.stderr, /there is no user a-view/);
});

test("berth user says what to do when nothing runs", async (t) => {
  const folder = temporaryFolder("user-none");
  t.after(() => folder.remove());
  const none = await runBerth(["user", "list", "--data", folder.path]);
  assert.equal(none.code, 1);
  assert.match(none.stderr, /berth up/);
  const berth = await startBerth({ data: folder.path });
  await berth.stop();
  const stopped = await runBerth(["user", "list", "--data", folder.path]);
  assert.equal(stopped.code, 1);
  assert.match(stopped.stderr, /cannot be reached/);
});

test("berth crds prints one document per served kind, and all with --all", async () => {
  const served = parseAllDocuments((await runBerth(["crds"])).stdout);
  const all = parseAllDocuments((await runBerth(["crds", "--all"])).stdout);
  assert.equal(served.length, 7);
  assert.equal(all.length, 12);
  for (const document of all) assert.equal(document.get("kind"), "CustomResourceDefinition");
});

test("berth controller waits for its turn while another leads, and ends when asked", async (t) => {
  const folder = temporaryFolder("controller");
  t.after(() => folder.remove());
  const berth = await startBerth({ data: folder.path });
  t.after(() => berth.stop());
  const replica = startReplica(berth.kubeconfig);
  // Longer than it takes to start, and to look at the lease for a second time.
  const waited = new Promise((resolve) => setTimeout(() => resolve("it waits"), 6_000));
  assert.equal(await Promise.race([replica.exited, waited]), "it waits", replica.output());
  assert.match(replica.output(), /controllers are running against https:/);
  assert.equal(await replica.stop(), 0, replica.output());
});

test("help and version are there for people and for pipes", async () => {
  const help = await runBerth(["help"]);
  assert.equal(help.code, 0);
  for (const name of ["up", "crds", "user", "backup", "restore"]) {
    assert.match(help.stdout, new RegExp(`^  ${name} `, "m"));
    const explained = await runBerth([name, "--help"]);
    assert.equal(explained.code, 0);
    assert.match(explained.stdout, new RegExp(`^Usage: berth ${name}`));
  }
  assert.match((await runBerth(["--version"])).stdout, /^berth \d+\.\d+\.\d+/);
  const berth = join(repository, "bin", "berth");
  const piped = execFileSync("sh", ["-c", `"${process.execPath}" "${berth}" crds | head -1`]);
  assert.equal(piped.toString(), "apiVersion: apiextensions.k8s.io/v1\n");
  const full = spawnSync("sh", ["-c", `"${process.execPath}" "${berth}" crds > /dev/full`]);
  assert.equal(full.status, 1);
  assert.match(full.stderr.toString(), /^berth: the output cannot be written: ENOSPC[^\n]*\n$/);
});
