import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { parse } from "yaml";
import { type Berth, repository, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect } from "./support/http.ts";
import { findKubectls, runKubectl } from "./support/kubectl.ts";
import "./support/cleanup.ts";

const folder = temporaryFolder("cli");
const firstVm = join(repository, "examples", "first-vm.yaml");
let berth: Berth;

before(async () => {
  berth = await startBerth({ data: join(folder.path, "data"), args: ["--serve-all"] });
});
after(async () => {
  await berth.stop();
  folder.remove();
});

type Ran = Awaited<ReturnType<typeof runBerth>>;

function run(...args: string[]): Promise<Ran> {
  return runBerth([...args, "--data", berth.data]);
}

async function ok(...args: string[]): Promise<string> {
  const ran = await run(...args);
  assert.equal(ran.code, 0, `berth ${args.join(" ")}: ${ran.stderr}${ran.stdout}`);
  return ran.stdout;
}

function file(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

/** A table without its ages, which go on, and without spaces at the ends of lines. */
function shown(table: string): string {
  return table.replaceAll(/ +$/gm, "").replaceAll(/[0-9]+[sm]([0-9]+s)?$/gm, "AGO");
}

/** Every kind of value that two encoders might write differently. */
const awkward = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: awkward
  labels: { app: x }
data:
  "10": ten
  "9": nine
  html: 1 < 2 && 3 > 2
  text: |
    two
    lines "quoted" \\ ü 世
`;

for (const kubectl of findKubectls().filter(({ name }) => /1\.(27|33)$/.test(name))) {
  test(`what ${kubectl.name} applied is unchanged for berth, and the other way round`, async () => {
    const base = ["--kubeconfig", berth.kubeconfig, "--cache-dir", join(folder.path, kubectl.name)];
    const apply = async (path: string): Promise<string> => {
      const ran = await runKubectl(kubectl, [...base, "apply", "-f", path]);
      assert.equal(ran.code, 0, ran.stderr);
      return ran.stdout;
    };
    const path = file("awkward.yaml", `${awkward}---\n${readFileSync(firstVm, "utf8")}`);
    const names = [
      "configmap/awkward",
      "vmimage.berth.dev/debian-12",
      "virtualmachine.berth.dev/first",
    ];
    const all = (how: string): string => names.map((name) => `${name} ${how}\n`).join("");
    assert.equal(await apply(path), all("created"));
    assert.equal(await ok("apply", "-f", path), all("unchanged"));
    await ok("delete", "-f", path);
    assert.equal(await ok("apply", "-f", path), all("created"));
    assert.equal(await apply(path), all("unchanged"));
    const shorter = file("shorter.yaml", awkward.replace('  "9": nine\n', ""));
    assert.equal(await ok("apply", "-f", shorter), "configmap/awkward configured\n");
    assert.equal(await apply(shorter), "configmap/awkward unchanged\n");
    const theirs = await runKubectl(kubectl, [...base, "get", "cm,ns"]);
    assert.equal(shown(await ok("get", "cm,ns")), shown(theirs.stdout));
    await ok("delete", "-f", path);
  });
}

test("a person's first minutes: apply, get, describe, why, edit, wait, delete", async () => {
  await ok("apply", "-f", firstVm);
  assert.match(await ok("get", "vm"), /^NAME +HYPERVISOR .*\nfirst +demo/);
  assert.equal(parse(await ok("get", "vm", "first", "-o", "yaml")).spec.cpu.cores, 2);
  assert.match(await ok("describe", "vm", "first"), /^Name: +first\nNamespace: +default/);
  assert.match(await ok("why", "vm/first"), /hypervisor\.berth\.dev\/demo: NotFound/);
  const editor = file("editor.sh", '#!/bin/sh\nsed -i "s/cores: 2/cores: 4/" "$1"\n');
  chmodSync(editor, 0o755);
  const edited = await withEnvironment({ KUBE_EDITOR: editor }, () => ok("edit", "vm", "first"));
  assert.equal(edited, "virtualmachine.berth.dev/first edited\n");
  assert.equal(await ok("get", "vm/first", "-o", "jsonpath={.spec.cpu.cores}"), "4\n");
  const waiting = await run("wait", "vm/first", "--for=condition=Ready", "--timeout=1s");
  assert.equal(waiting.code, 1);
  assert.match(waiting.stderr, /timed out waiting for condition Ready=True/);
  assert.equal(
    await ok("delete", "vm,vmimg", "--all"),
    ['virtualmachine.berth.dev "first" deleted', 'vmimage.berth.dev "debian-12" deleted\n'].join(
      "\n",
    ),
  );
});

test("a watch prints rows as they come, and Ctrl-C ends it cleanly", async () => {
  const program = join(repository, "bin", "berth");
  const args = [program, "get", "cm", "-w", "--data", berth.data, "--no-headers"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  const seen = Promise.withResolvers<void>();
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
    if (printed.includes("watched")) seen.resolve();
  });
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  const http = connect(berth);
  const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "watched" } };
  await http.ask({ method: "POST", path: "/api/v1/namespaces/default/configmaps", body });
  http.close();
  await seen.promise;
  child.kill("SIGINT");
  assert.equal(await closed, 0);
  assert.doesNotMatch(printed, /\n\s+at /);
});

test("wrong input is one sentence and an exit code", async () => {
  const wrong = file(
    "wrong",
    readFileSync(berth.kubeconfig, "utf8").replace(/token: .*/, "token: x"),
  );
  const table: [string[], number, RegExp][] = [
    [["get", "nothing", "--data", berth.data], 1, /doesn't have a resource type "nothing"/],
    [["get", "vm", "--kubeconfig", wrong], 1, /does not know you/],
    [["get", "vm", "--kubeconfig", join(folder.path, "none")], 1, /there is no .*none/],
    [["get", "vm", "--kubeconfig", folder.path], 1, /is a folder, not a file/],
    [["get", "vm", "-o", "xml", "--data", berth.data], 64, /there is no output "xml"/],
    [["apply", "--data", berth.data], 64, /-f FILE is missing/],
    [["delete", "vm", "--data", berth.data], 64, /say which/],
    [["wait", "vm/x", "--for=ready", "--data", berth.data], 64, /--for must be/],
  ];
  for (const [args, code, says] of table) {
    const ran = await runBerth(args);
    assert.equal(ran.code, code, args.join(" "));
    assert.match(ran.stderr, says);
    assert.equal(ran.stderr.trim().split("\n").length, 1, ran.stderr);
  }
});

test("the completion scripts are understood by their shells and complete names", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    assert.match((await runBerth(["completion", shell])).stdout, /__complete --/);
  }
  const script = file("berth.bash", (await runBerth(["completion", "bash"])).stdout);
  const stub = `berth() { "${process.execPath}" "${join(repository, "bin", "berth")}" "$@"; }`;
  const ask = `COMP_WORDS=(berth get --data "${berth.data}" virt); COMP_CWORD=4; _berth`;
  const lines = [stub, `source "${script}"`, ask, 'echo "${COMPREPLY[@]}"'];
  const child = spawn("bash", ["-c", lines.join("\n")], { stdio: ["ignore", "pipe", "inherit"] });
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  await new Promise((resolve) => child.once("close", resolve));
  assert.equal(printed, "virtualmachines\n");
});

test("what a list has beyond a page is shown too", async () => {
  const http = connect(berth);
  const names = Array.from({ length: 620 }, (_, i) => `page-${i}`);
  for (const name of names) {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels: { many: "y" } } };
    const path = "/api/v1/namespaces/default/configmaps";
    assert.equal(bodyOf(await http.ask({ method: "POST", path, body })).metadata.name, name);
  }
  http.close();
  const listed = await ok("get", "cm", "-l", "many=y", "-o", "name");
  assert.equal(listed.trim().split("\n").length, names.length);
  assert.equal((await ok("get", "cm", "-l", "many=y")).trim().split("\n").length, names.length + 1);
});

async function withEnvironment<Result>(
  variables: Record<string, string>,
  work: () => Promise<Result>,
): Promise<Result> {
  const environment = { ...process.env };
  Object.assign(process.env, variables);
  try {
    return await work();
  } finally {
    process.env = environment;
  }
}
