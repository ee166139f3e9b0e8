import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import type { VirtualMachine } from "../../src/api/index.ts";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import { kubectlsToTry, type Kubectl, type Ran, runKubectl } from "./support/kubectl.ts";
import { parseMachine } from "./support/parse-machine.ts";
import "./support/cleanup.ts";

const kubectls = kubectlsToTry();
const folder = temporaryFolder("kubectl");

/** One kubectl in a namespace of its own, so that versions cannot help each other. */
class Session {
  readonly kubectl: Kubectl;
  readonly berth: Berth;
  readonly namespace: string;

  constructor(kubectl: Kubectl, berth: Berth) {
    this.kubectl = kubectl;
    this.berth = berth;
    this.namespace = kubectl.name.replaceAll(".", "-");
  }

  get base(): string[] {
    // Each version keeps its own discovery cache: an old one must not feed a new one.
    const cache = join(folder.path, `cache-${this.namespace}`);
    return [`--kubeconfig=${this.berth.kubeconfig}`, `--cache-dir=${cache}`, "-n", this.namespace];
  }

  run(args: readonly string[], options: Parameters<typeof runKubectl>[2] = {}): Promise<Ran> {
    return runKubectl(this.kubectl, [...this.base, ...args], options);
  }

  /** Runs it, insists on success and no warning, and returns what it printed. */
  async ok(
    args: readonly string[],
    options: Parameters<typeof runKubectl>[2] = {},
  ): Promise<string> {
    const ran = await this.run(args, options);
    assert.equal(ran.code, 0, `kubectl ${args.join(" ")}: ${ran.stderr}${ran.stdout}`);
    assert.doesNotMatch(ran.stderr, /warning/i, `kubectl ${args.join(" ")}`);
    return ran.stdout;
  }

  async machine(name: string): Promise<VirtualMachine> {
    return parseMachine(await this.ok(["get", "vm", name, "-o", "json"]));
  }

  /** Runs it, insists on refusal, and returns the complaint. */
  async refused(
    args: readonly string[],
    options: Parameters<typeof runKubectl>[2] = {},
  ): Promise<string> {
    const ran = await this.run(args, options);
    assert.notEqual(ran.code, 0, `kubectl ${args.join(" ")} was not refused: ${ran.stdout}`);
    return ran.stderr;
  }
}

function machine(name: string, spec: Record<string, unknown> = {}): string {
  return JSON.stringify({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name, labels: { app: "web" } },
    spec: {
      hypervisorRef: { name: "demo" },
      cpu: { cores: 2 },
      memory: { size: "2Gi" },
      source: { image: { name: "debian-12" } },
      disks: [{ name: "root", size: "20Gi" }],
      ...spec,
    },
  });
}

const stories: Record<string, (session: Session) => Promise<void>> = {
  "api-resources lists the kinds with short names": async (session) => {
    const listed = await session.ok(["api-resources"]);
    assert.match(listed, /virtualmachines\s+vm,bvm\s+berth\.dev\/v1alpha1\s+true\s+VirtualMachine/);
    assert.match(listed, /namespaces\s+ns\s+v1\s+false\s+Namespace/);
    assert.match(await session.ok(["api-versions"]), /berth\.dev\/v1alpha1/);
  },

  "apply creates, is repeatable, and changes": async (session) => {
    const input = machine("web");
    assert.match(await session.ok(["apply", "-f", "-"], { input }), /web created/);
    assert.match(await session.ok(["apply", "-f", "-"], { input }), /web unchanged/);
    const bigger = machine("web", { memory: { size: "4Gi" } });
    assert.match(await session.ok(["apply", "-f", "-"], { input: bigger }), /web configured/);
    const stored = await session.machine("web");
    assert.equal(stored.spec.memory?.size, "4Gi");
    assert.equal(stored.metadata.generation, 2);
  },

  "diff shows what apply would change, and changes nothing": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("differs") });
    const input = machine("differs", { memory: { size: "8Gi" } });
    const ran = await session.run(["diff", "-f", "-"], { input });
    assert.equal(ran.code, 1, ran.stderr);
    assert.match(ran.stdout, /\+\s+size: 8Gi/);
    assert.match(await session.ok(["get", "vm", "differs", "-o", "yaml"]), /size: 2Gi/);
  },

  "get prints tables, forms and selections": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("tabled") });
    const table = await session.ok(["get", "vm", "tabled"]);
    assert.match(
      table,
      /NAME\s+HYPERVISOR\s+NODE\s+ID\s+POWER\s+ADDRESS\s+SYNCED\s+READY\s+REASON\s+AGE/,
    );
    assert.match(table, /tabled\s+demo\s+.*\d+s/);
    assert.match(
      await session.ok(["get", "vm", "-o", "name"]),
      /virtualmachine\.berth\.dev\/tabled/,
    );
    assert.equal(
      await session.ok(["get", "vm", "tabled", "-o", "jsonpath={.spec.hypervisorRef.name}"]),
      "demo",
    );
    assert.match(await session.ok(["get", "vm", "-l", "app=web"]), /tabled/);
    assert.doesNotMatch(await session.ok(["get", "vm", "-l", "app!=web", "-o", "name"]), /tabled/);
    const byField = ["get", "vm", "--field-selector", "metadata.name=tabled", "-o", "name"];
    assert.equal(await session.ok(byField), "virtualmachine.berth.dev/tabled\n");
    assert.match(
      await session.ok(["get", "vm", "-A"]),
      new RegExp(`${session.namespace}\\s+tabled`),
    );
    assert.match(await session.ok(["get", "berth", "-o", "name"]), /virtualmachine.*tabled/);
    assert.match(await session.ok(["get", "vm", "-o", "wide", "--show-labels"]), /app=web/);
    assert.match(await session.ok(["get", "vm", "--chunk-size=1", "-o", "name"]), /tabled/);
  },

  "get -w shows what happens": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("watched") });
    const child = spawn(session.kubectl.path, [...session.base, "get", "vm", "watched", "-w"]);
    let printed = "";
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
    const closed = new Promise((resolve) => child.once("close", resolve));
    await until(
      () => /watched\s+demo/.test(printed),
      () => printed,
    );
    await session.ok([
      "patch",
      "vm",
      "watched",
      "--subresource=status",
      "--type=merge",
      "-p",
      JSON.stringify({ status: { node: "pve2" } }),
    ]);
    await until(
      () => /watched\s+demo\s+pve2/.test(printed),
      () => printed,
    );
    child.kill();
    await closed;
  },

  "explain reads well": async (session) => {
    const source = await session.ok(["explain", "vm.spec.source"]);
    for (const field of ["image", "clone", "importedDisk", "blank"]) {
      assert.match(source, new RegExp(`${field}\\s+<`), source);
    }
    assert.match(source, /DESCRIPTION:\n\s+\S+/);
    assert.match(await session.ok(["explain", "vm", "--recursive"]), /hypervisorRef/);
    assert.match(await session.ok(["explain", "secret.stringData"]), /stringData/);
  },

  "wait sees a condition become true, and gives up in time": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("waited") });
    const waiting = ["wait", "--for=condition=Ready", "vm/waited"];
    const late = await session.run([...waiting, "--timeout=1s"], { timeoutMs: 10_000 });
    assert.equal(late.code, 1);
    assert.match(late.stderr, /timed out/);
    const done = session.run([...waiting, "--timeout=20s"]);
    await session.ok([
      "patch",
      "vm",
      "waited",
      "--subresource=status",
      "--type=merge",
      "-p",
      JSON.stringify({ status: { conditions: [readyCondition()] } }),
    ]);
    assert.equal((await done).code, 0);
  },

  "describe shows the object and its events": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("described") });
    const uid = await session.ok(["get", "vm", "described", "-o", "jsonpath={.metadata.uid}"]);
    await session.ok(["create", "-f", "-"], { input: eventOf(session.namespace, uid) });
    const described = await session.ok(["describe", "vm", "described"]);
    assert.match(described, /Hypervisor Ref:/);
    assert.match(described, /Normal\s+Tested\s+.*it was tested/);
    assert.match(await session.ok(["get", "events"]), /Tested/);
  },

  "patch takes JSON and merge patches, and refuses strategic ones": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("patched") });
    await session.ok([
      "patch",
      "vm",
      "patched",
      "--type=merge",
      "-p",
      '{"spec":{"cpu":{"cores":4}}}',
    ]);
    const operations = JSON.stringify([
      { op: "test", path: "/spec/cpu/cores", value: 4 },
      { op: "add", path: "/metadata/annotations", value: { a: "b" } },
    ]);
    await session.ok(["patch", "vm", "patched", "--type=json", "-p", operations]);
    const stored = await session.machine("patched");
    assert.equal(stored.spec.cpu?.cores, 4);
    assert.equal(stored.metadata.annotations?.a, "b");
    const complaint = await session.refused(["patch", "vm", "patched", "-p", "{}"]);
    assert.match(complaint, /strategic|media type/i);
  },

  "edit, label, annotate and replace": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("edited") });
    const editor = join(folder.path, "editor.sh");
    writeFileSync(editor, '#!/bin/sh\nsed -i "s/cores: 2/cores: 8/" "$1"\n', { mode: 0o755 });
    await session.ok(["edit", "vm", "edited"], { env: { KUBE_EDITOR: editor, EDITOR: editor } });
    await session.ok(["label", "vm", "edited", "tier=front"]);
    await session.ok(["annotate", "vm", "edited", "example.com/note=hello"]);
    const stored = await session.machine("edited");
    assert.equal(stored.spec.cpu?.cores, 8);
    assert.equal(stored.metadata.labels?.tier, "front");
    assert.equal(stored.metadata.annotations?.["example.com/note"], "hello");
    assert.equal(stored.metadata.generation, 2, "labels and annotations are no new generation");
    await session.ok(["label", "vm", "edited", "tier-"]);
    const input = JSON.stringify({ ...stored, spec: { ...stored.spec, cpu: { cores: 3 } } });
    const complaint = await session.refused(["replace", "-f", "-"], { input });
    assert.match(complaint, /the object has been modified/);
  },

  "scale goes through the scale subresource": async (session) => {
    const input = JSON.stringify({
      apiVersion: "berth.dev/v1alpha1",
      kind: "VMSet",
      metadata: { name: "workers" },
      spec: { replicas: 1, template: { spec: JSON.parse(machine("x")).spec } },
    });
    await session.ok(["apply", "-f", "-"], { input });
    assert.match(await session.ok(["scale", "vmset/workers", "--replicas=3"]), /scaled/);
    assert.equal(
      await session.ok(["get", "vmset", "workers", "-o", "jsonpath={.spec.replicas}"]),
      "3",
    );
    const guarded = ["scale", "vmset/workers", "--current-replicas=1", "--replicas=5"];
    assert.match(await session.refused(guarded), /Expected replicas/);
  },

  "create makes built-in objects, whatever body it sends": async (session) => {
    await session.ok(["create", "secret", "generic", "token", "--from-literal=a=b"]);
    assert.equal(await session.ok(["get", "secret", "token", "-o", "jsonpath={.data.a}"]), "Yg==");
    await session.ok(["create", "configmap", "settings", "--from-literal=k=v"]);
    await session.ok(["create", "serviceaccount", "robot"]);
    const patch = '{"metadata":{"finalizers":["example.com/a"]}}';
    await session.ok(["patch", "configmap", "settings", "-p", patch]);
    await session.ok([
      "patch",
      "configmap",
      "settings",
      "--type=json",
      "-p",
      '[{"op":"remove","path":"/metadata/finalizers"}]',
    ]);
    assert.match(await session.ok(["get", "secret,configmap,sa"]), /Opaque\s+1/);
    const dry = ["create", "configmap", "ghost", "--from-literal=k=v", "--dry-run=server"];
    assert.match(await session.ok(dry), /dry run/);
    assert.match(await session.refused(["get", "configmap", "ghost"]), /not found/);
  },

  "delete waits for finalizers, and takes owned objects along": async (session) => {
    await session.ok(["apply", "-f", "-"], { input: machine("owner") });
    const uid = await session.ok(["get", "vm", "owner", "-o", "jsonpath={.metadata.uid}"]);
    await session.ok(["create", "-f", "-"], { input: ownedBy("owner", uid) });
    await session.ok([
      "patch",
      "vm",
      "owner",
      "--type=merge",
      "-p",
      '{"metadata":{"finalizers":["berth.dev/test"]}}',
    ]);
    const deleting = session.run(["delete", "vm", "owner", "--timeout=20s"]);
    await until(
      async () =>
        (await session.ok([
          "get",
          "vm",
          "owner",
          "-o",
          "jsonpath={.metadata.deletionTimestamp}",
        ])) !== "",
    );
    await session.ok([
      "patch",
      "vm",
      "owner",
      "--type=merge",
      "-p",
      '{"metadata":{"finalizers":null}}',
    ]);
    assert.equal((await deleting).code, 0);
    await until(async () => (await session.run(["get", "configmap", "owned"])).code !== 0);
    await session.ok(["delete", "vm", "--all", "--cascade=foreground", "--wait=true"]);
    assert.equal(await session.ok(["get", "vm", "-o", "name"]), "");
  },

  "mistakes are told in one sentence": async (session) => {
    const unknown = machine("bad", { colour: "red" });
    assert.match(
      await session.refused(["apply", "-f", "-"], { input: unknown }),
      /unknown field "spec\.colour"/,
    );
    const two = machine("bad", { source: { image: { name: "a" }, blank: {} } });
    assert.match(await session.refused(["apply", "-f", "-"], { input: two }), /exactly one/i);
    assert.match(await session.refused(["get", "vm", "nobody"]), /"nobody" not found/);
  },

  "auth can-i and whoami": async (session) => {
    assert.match(await session.ok(["auth", "can-i", "create", "vm"]), /^yes/);
    // kubectl 1.27 asks for a version of the API that Kubernetes dropped since.
    if (session.kubectl.name === "kubectl.1.27") return;
    assert.match(await session.ok(["auth", "whoami"]), /admin/);
  },
};

function readyCondition(): Record<string, string> {
  return {
    type: "Ready",
    status: "True",
    reason: "Tested",
    message: "",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
}

function eventOf(namespace: string, uid: string): string {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `described.${uid.slice(0, 8)}` },
    involvedObject: {
      apiVersion: "berth.dev/v1alpha1",
      kind: "VirtualMachine",
      name: "described",
      namespace,
      uid,
    },
    reason: "Tested",
    message: "it was tested",
    type: "Normal",
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    source: { component: "test" },
  });
}

function ownedBy(owner: string, uid: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: {
      name: "owned",
      ownerReferences: [
        { apiVersion: "berth.dev/v1alpha1", kind: "VirtualMachine", name: owner, uid },
      ],
    },
  });
}

async function until(
  condition: () => boolean | Promise<boolean>,
  shown: () => string = () => "",
): Promise<void> {
  const deadlineMs = Date.now() + 20_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadlineMs, `it did not happen within 20 seconds: ${shown()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test(
  "kubectl",
  { skip: kubectls.length === 0 ? "no kubectl on this machine" : false },
  async (t) => {
    const berth = await startBerth({ data: folder.path, args: ["--serve-all"] });
    t.after(async () => {
      await berth.stop();
      folder.remove();
    });
    for (const kubectl of kubectls) {
      await t.test(kubectl.name, async (version) => {
        const session = new Session(kubectl, berth);
        await session.ok(["create", "namespace", session.namespace]);
        for (const [story, play] of Object.entries(stories)) {
          await version.test(story, () => play(session));
        }
        // kubectl itself warns here, about namespaces in general.
        const gone = await session.run(["delete", "namespace", session.namespace, "--timeout=20s"]);
        assert.equal(gone.code, 0, gone.stderr);
        assert.match(await session.refused(["get", "ns", session.namespace]), /not found/);
      });
    }
  },
);
