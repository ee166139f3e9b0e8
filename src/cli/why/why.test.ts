import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, describe, test } from "node:test";
import { failureMeanings } from "../../api/index.ts";
import { claimName } from "../../controllers/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { runWhy, why } from "../commands/why.ts";
import { type Bench, createBench } from "../objects/testing.ts";
import { adviceOn } from "./hints.ts";
import { referencesOf } from "./references.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createBench();
});

const group = "/apis/berth.dev/v1alpha1";
const vms = `${group}/namespaces/default/virtualmachines`;
const apiVersion = "berth.dev/v1alpha1";

function machine(name: string): object {
  const spec = {
    hypervisorRef: { name: "pve" },
    source: { image: { name: "debian" } },
    cpu: { cores: 1 },
    memory: { size: "1Gi" },
    disks: [{ name: "root", size: "10Gi" }],
  };
  return { apiVersion, kind: "VirtualMachine", metadata: { name }, spec };
}

/** One that refers to nothing but its Hypervisor. */
function blankMachine(name: string): object {
  const spec = { hypervisorRef: { name: "pve" }, source: { blank: {} }, cpu: { cores: 1 } };
  const memory = { size: "1Gi" };
  return { apiVersion, kind: "VirtualMachine", metadata: { name }, spec: { ...spec, memory } };
}

async function makeHypervisor(more: object = {}): Promise<void> {
  const credentials = { secretRef: { namespace: "default", name: "pve" } };
  const spec = { type: "proxmox", endpoints: ["https://pve.example:8006"], credentials, ...more };
  const body = { apiVersion, kind: "Hypervisor", metadata: { name: "pve" }, spec };
  await bench.write("POST", `${group}/hypervisors`, body);
}

async function ask(name: string): Promise<string> {
  const { out, notes } = await bench.run(why, runWhy, [name]);
  return [...out, ...notes].join("\n");
}

function ready(status: string, reason: string, message: string): object {
  const lastTransitionTime = formatTime(bench.clock.nowMs() - 180_000);
  return { type: "Ready", status, reason, message, lastTransitionTime, observedGeneration: 1 };
}

async function setStatus(path: string, status: object): Promise<void> {
  await bench.write("PATCH", `${path}/status`, { status });
}

describe("why", () => {
  test("follows references to what is not there, the deepest first", async () => {
    await bench.write("POST", vms, machine("web"));
    const text = await ask("vm/web");
    const order = [
      "1. hypervisor.berth.dev/pve: NotFound",
      "2. vmimage.berth.dev/debian: NotFound",
    ];
    assert.deepEqual(
      order.map((line) => text.split("\n").indexOf(line) > 0),
      [true, true],
      text,
    );
    assert.match(text, /spec\.source\.image names it, and there is none in namespace default/);
    assert.match(text, /3\. virtualmachine\.berth\.dev\/web: NotObserved/);
  });

  test("says what holds a Hypervisor or a VMImage that is being deleted", async () => {
    await makeHypervisor();
    const path = `${group}/hypervisors/pve`;
    const finalizers = ["berth.dev/in-use"];
    await bench.write("PATCH", path, { metadata: { finalizers } });
    await bench.write("DELETE", path, {});
    const message =
      "The VirtualMachine default/web uses it. Delete it, or let it go with berth forget.";
    const held = { ...ready("True", "VirtualMachinesRemain", message), type: "InUse" };
    const connected = ready("True", "Connected", "");
    await setStatus(path, { observedGeneration: 1, conditions: [connected, held] });
    const text = await ask("hypervisor/pve");
    assert.match(text, /is being deleted for .*berth\.dev\/in-use/);
    assert.match(text, /hypervisor\.berth\.dev\/pve: VirtualMachinesRemain/);
    assert.match(text, /default\/web uses it\. Delete it/);
  });

  test("says when what a machine waits for is asked again", async () => {
    await makeHypervisor();
    await bench.write("POST", vms, blankMachine("web"));
    const at = (ms: number): string => formatTime(bench.clock.nowMs() + ms);
    const times = { attempts: 1, firstAt: at(-10_000), lastAt: at(-10_000) };
    const failure = { category: "NetworkError", message: "no answer", ...times };
    const conditions = [ready("Unknown", "Unreachable", "no answer")];
    await setStatus(`${group}/hypervisors/pve`, {
      conditions,
      failure: { ...failure, nextRetryAt: at(30_000) },
    });
    const waitingFor = { kind: "Dependency", name: "Hypervisor pve", since: at(-10_000) };
    await setStatus(`${vms}/web`, { conditions, failure, waitingFor });
    const text = await ask("vm/web");
    assert.match(text, /waiting since 10s for Hypervisor pve/);
    assert.match(text, /Berth goes on by itself when what it waits for is there/);
    assert.match(text, /hypervisor\.berth\.dev\/pve: next attempt in 30s/);
  });

  test("tells a failure in full, with the next attempt and what to do", async () => {
    await bench.write("POST", vms, machine("web"));
    const cause = "x".repeat(5000);
    const at = (ms: number): string => formatTime(bench.clock.nowMs() + ms);
    await setStatus(`${vms}/web`, {
      observedGeneration: 1,
      conditions: [ready("False", "CreationFailed", "could not create it")],
      failure: {
        category: "CreationFailed",
        message: "could not create it on node pve1",
        cause,
        step: "Create",
        attempts: 3,
        firstAt: at(-600_000),
        lastAt: at(-10_000),
        nextRetryAt: at(30_000),
        remedy: "free the storage",
      },
      operation: {
        id: "1",
        step: "Create",
        intent: "create web",
        attempt: 3,
        since: at(-60_000),
        deadline: at(60_000),
      },
    });
    const text = await ask("vm/web");
    assert.match(text, /^virtualmachine\.berth\.dev\/web is not ready for 3m:/);
    assert.ok(text.includes(cause), "the cause is not cut off");
    assert.match(text, /could not create it on node pve1\n/);
    assert.match(text, /3 times, first at/);
    assert.match(text, /What to do: free the storage/);
    assert.match(text, /next attempt in 30s/);
    assert.match(text, /no task is known yet: its effect may still arrive for 60s/);
    assert.equal(text.match(/CreationFailed/g)?.length, 1, "the condition does not repeat it");
  });

  test("does not call work late that goes on, and says what is done", async () => {
    await bench.write("POST", vms, machine("web"));
    const at = (ms: number): string => formatTime(bench.clock.nowMs() + ms);
    const times = { since: at(-120_000), deadline: at(-12_000) };
    const operation = { id: "1", step: "AddDisk", intent: "Make the disk.", attempt: 1, ...times };
    const conditions = [ready("False", "Creating", "Make the disk.")];
    const said = async (more: object): Promise<string> => {
      await setStatus(`${vms}/web`, { conditions, operation: { ...operation, ...more } });
      const text = await ask("vm/web");
      assert.doesNotMatch(text, /is due|may still arrive/);
      return text;
    };
    assert.match(await said({ task: "UPID:pve1:1:" }), /since 2m\n.*it runs .* as UPID:pve1:1:/);
    assert.match(await said({}), /attempt 1, since 2m/);
    assert.match(await said({ outcome: "Done" }), /done: AddDisk: Make the disk\./);
    assert.match(await said({ outcome: "Blocked", deadline: at(5_000) }), /attempt 1/);
  });

  test("names the Hypervisor that is only observed, also of a VM that is as declared", async () => {
    await bench.write("POST", vms, blankMachine("web"));
    await makeHypervisor();
    await bench.write("POST", "/api/v1/namespaces/default/secrets", {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "pve" },
    });
    const at = formatTime(bench.clock.nowMs());
    const message = "The Hypervisor pve is only observed, because another run acts on it.";
    const remedy = "run: berth takeover pve";
    const times = { attempts: 1, firstAt: at, lastAt: at };
    await setStatus(`${group}/hypervisors/pve`, {
      observedGeneration: 1,
      conditions: [ready("False", "Superseded", message)],
      failure: { category: "ConflictingController", message, remedy, ...times },
    });
    const conditions = [ready("True", "Succeeded", "It is as declared.")];
    await setStatus(`${vms}/web`, { observedGeneration: 1, conditions });
    const text = await ask("vm/web");
    assert.match(text, /web is ready, but this Berth only observes it:/);
    assert.match(text, /1\. hypervisor\.berth\.dev\/pve: Superseded \(ConflictingController\)/);
    assert.match(text, /What to do: run: berth takeover pve/);
    assert.doesNotMatch(text, /by itself/);
    assert.match(await ask("hypervisor/pve"), /only berth takeover pve lets this copy act/);
    const failure = { category: "DependencyNotReady", message, ...times };
    const plannedSteps = [{ effect: "Start", intent: "Start the machine." }];
    const held = { conditions: [ready("False", "DependencyNotReady", message)], failure };
    await setStatus(`${vms}/web`, { observedGeneration: 1, ...held, plannedSteps });
    const waits = await ask("vm/web");
    assert.match(waits, /only berth takeover pve lets this copy act/);
    assert.match(waits, /planned after that: Start the machine\./);
    assert.doesNotMatch(waits, /by itself/);
  });

  test("says what to do once, at the cause, and of the rest that it follows", async () => {
    await bench.write("POST", vms, machine("web"));
    const at = formatTime(bench.clock.nowMs());
    const times = { attempts: 1, firstAt: at, lastAt: at };
    const cause = "connect ECONNREFUSED";
    const message = "Could not ask for the version: not reachable.";
    await makeHypervisor({
      credentials: { secretRef: { namespace: "berth-system", name: "pve" } },
    });
    await setStatus(`${group}/hypervisors/pve`, {
      observedGeneration: 1,
      conditions: [ready("False", "NetworkError", message)],
      failure: { category: "NetworkError", message, cause, ...times },
    });
    const volume = { hypervisorRef: { name: "pve" }, id: "local:import/d.qcow2" };
    const spec = { source: { volume }, format: "qcow2" };
    const image = { apiVersion, kind: "VMImage", metadata: { name: "debian" }, spec };
    const images = `${group}/namespaces/default/vmimages`;
    await bench.write("POST", images, image);
    await setStatus(`${images}/debian`, {
      observedGeneration: 1,
      conditions: [ready("False", "NetworkError", message)],
      failure: { category: "NetworkError", message, cause, ...times },
    });
    await setStatus(`${vms}/web`, {
      observedGeneration: 1,
      conditions: [ready("Unknown", "Unreachable", message)],
      failure: { category: "NetworkError", message, cause, ...times },
    });
    const text = await ask("vm/web");
    assert.match(text, /\. hypervisor\.berth\.dev\/pve: NetworkError\n {3}Could not ask/);
    assert.match(text, /web: NetworkError\n.*\n {3}This follows from what stands above it\.\n/);
    assert.match(text, /vmimage\.berth\.dev\/debian: NetworkError\n.*\n {3}This follows from/);
    assert.equal(text.match(/Check that the hypervisor is up/g)?.length, 1, text);
    assert.match(text, /More about it: docs\/troubleshooting\/network-error\.md/);
  });

  test("names a file that is nowhere once, at the VM that looked for it", async () => {
    await bench.write("POST", vms, machine("web"));
    await makeHypervisor();
    const volume = { hypervisorRef: { name: "pve" }, id: "local:import/d.qcow2" };
    const spec = { source: { volume }, format: "qcow2" };
    const images = `${group}/namespaces/default/vmimages`;
    const image = { apiVersion, kind: "VMImage", metadata: { name: "debian" }, spec };
    await bench.write("POST", images, image);
    const conditions = [ready("Unknown", "NotListed", "The hypervisor does not list it.")];
    await setStatus(`${images}/debian`, { observedGeneration: 1, conditions });
    assert.match(await ask("vm/web"), /vmimage\.berth\.dev\/debian: NotListed/);
    const at = formatTime(bench.clock.nowMs());
    const message = "disks[root]: local:import/d.qcow2 is not on pve1.";
    const failure = { category: "ImageNotFound", message, attempts: 1, firstAt: at, lastAt: at };
    const missing = [ready("False", "ImageNotFound", message)];
    await setStatus(`${vms}/web`, { observedGeneration: 1, conditions: missing, failure });
    const text = await ask("vm/web");
    assert.doesNotMatch(text, /NotListed/);
    assert.match(text, /virtualmachine\.berth\.dev\/web: ImageNotFound/);
  });

  test("tells by its own word what a category alone does not say, and when it goes on", async () => {
    await bench.write("POST", vms, machine("web"));
    const at = formatTime(bench.clock.nowMs());
    const message = "The disk is too small.";
    await setStatus(`${vms}/web`, {
      observedGeneration: 1,
      conditions: [ready("False", "TooSmall", message)],
      failure: { category: "ConfigurationError", message, attempts: 1, firstAt: at, lastAt: at },
    });
    const text = await ask("vm/web");
    assert.match(text, /web: TooSmall \(ConfigurationError\)/);
    assert.match(text, /Berth looks by itself whether it is/);
  });

  test("tells what happened, in order, from the Events", async () => {
    const { metadata } = await bench.write("POST", vms, machine("web"));
    const event = (name: string, reason: string, ago: number): object => ({
      apiVersion: "v1",
      kind: "Event",
      metadata: { name, namespace: "default" },
      involvedObject: {
        apiVersion,
        kind: "VirtualMachine",
        namespace: "default",
        name: "web",
        uid: metadata.uid,
      },
      reason,
      message: `about ${reason}`,
      type: "Normal",
      firstTimestamp: formatTime(bench.clock.nowMs() - ago),
      lastTimestamp: formatTime(bench.clock.nowMs() - ago),
      count: 1,
    });
    await bench.write("POST", "/api/v1/namespaces/default/events", event("b", "Second", 5000));
    await bench.write("POST", "/api/v1/namespaces/default/events", event("a", "First", 9000));
    const text = await ask("vm/web");
    assert.match(
      text,
      /What happened:\n {2}9s +Normal +First +about First\n {2}5s +Normal +Second/,
    );
  });

  test("puts what the object and its Claim keep between the Events, in order", async () => {
    const at = (ms: number): string => formatTime(bench.clock.nowMs() + ms);
    const systemId = "pve-root-ca:AA";
    await makeHypervisor({ systemId });
    const made = await bench.write("POST", vms, machine("web"));
    bench.clock.advance(600_000);
    await bench.write("POST", `${group}/claims`, {
      apiVersion,
      kind: "Claim",
      metadata: { name: claimName(systemId, "100") },
      spec: {
        hypervisor: { name: "pve", systemId },
        externalId: "100",
        state: "Bound",
        origin: "Created",
        identity: "00000000-0000-4000-8000-000000000001",
        installation: "00000000-0000-4000-8000-000000000002",
        owner: { namespace: "default", name: "web", uid: made.metadata.uid },
        reservedAt: at(-500_000),
        boundAt: at(-400_000),
      },
    });
    const guest = { reason: "Succeeded", message: "It answers.", observedGeneration: 1 };
    await setStatus(`${vms}/web`, {
      observedGeneration: 1,
      hypervisor: "pve",
      externalId: "100",
      plan: { hash: "abc", changes: [{ field: "mark", to: "ours", effect: "Live" }] },
      conditions: [
        ready("False", "CreationFailed", "no"),
        { ...guest, type: "AgentReady", status: "True", lastTransitionTime: at(-300_000) },
      ],
      failure: {
        category: "CreationFailed",
        message: "Could not grow it.",
        step: "Grow",
        attempts: 2,
        firstAt: at(-200_000),
        lastAt: at(-100_000),
        nextRetryAt: at(30_000),
      },
      operation: {
        id: "1",
        step: "Grow",
        intent: "Grow root.",
        attempt: 3,
        since: at(-5_000),
        task: "UPID:1",
      },
    });
    const text = await ask("vm/web");
    const [, rows = ""] = text.split("What happened:\n");
    const found = rows.split("\n").map((row) => row.trim().split(/ {2,}/).slice(2).join(": "));
    assert.deepEqual(found, [
      "Declared: the object was made",
      `Claimed: the id 100 was reserved by the Claim ${claimName(systemId, "100")}`,
      "Claimed: Berth's mark was read back from the machine 100",
      "AgentReady: the agent in the guest answers",
      "Failed at Grow: Could not grow it.",
      "Grow: Grow root. (task UPID:1)",
    ]);
    assert.match(
      text,
      /planned, and waits for your approval:\n +~ mark {2}nothing → ours {2}\(live\)/,
    );
  });

  test("says that all is well where it is", async () => {
    const spec = { cpu: { cores: 1 }, memory: { size: "1Gi" } };
    const body = { apiVersion, kind: "VMClass", metadata: { name: "small" }, spec };
    await bench.write("POST", `${group}/namespaces/default/vmclasses`, body);
    assert.equal(await ask("vmclass/small"), "vmclass.berth.dev/small is as it should be.");
  });

  test("refuses a name that is not there, and no name at all", async () => {
    assert.match(await ask("vm/nope"), /virtualmachines.berth.dev "nope" not found/);
    assert.match(await ask("vm"), /name one object/);
  });
});

describe("why, for every category", () => {
  const nexts: Readonly<Record<string, RegExp>> = {
    retry: /next attempt in 30s \(/,
    look: /next attempt in 30s \(/,
    wait: /Berth goes on by itself when what it waits for is there/,
    stall: /nothing is tried before this is mended; Berth looks by itself whether it is/,
  };

  for (const [category, policy] of Object.entries(categoryPolicies)) {
    test(`${category}: the cause whole, what follows, and what to do`, async () => {
      await makeHypervisor();
      const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "pve" } };
      await bench.write("POST", "/api/v1/namespaces/default/secrets", secret);
      const well = ready("True", "Connected", "It answers.");
      await setStatus(`${group}/hypervisors/pve`, { observedGeneration: 1, conditions: [well] });
      await bench.write("POST", vms, blankMachine("web"));
      const at = (ms: number): string => formatTime(bench.clock.nowMs() + ms);
      const message = `This is a ${category}.`;
      const isTimed = policy.next === "retry" || policy.next === "look";
      await setStatus(`${vms}/web`, {
        observedGeneration: 1,
        conditions: [ready("False", category, message)],
        failure: {
          category,
          message,
          cause: `${"y".repeat(8000)}\nlast line`,
          attempts: 2,
          firstAt: at(-60_000),
          lastAt: at(-10_000),
          ...(isTimed ? { nextRetryAt: at(30_000) } : {}),
        },
      });
      const text = await ask("vm/web");
      assert.match(text, new RegExp(`web: ${category}\\n {3}${message}\\n`));
      assert.ok(
        text.includes("y".repeat(8000)) && text.includes("last line"),
        "nothing is cut off",
      );
      assert.match(text, /2 times, first at .*, last at /);
      assert.match(text, nexts[policy.next] ?? /never/);
      const { hint = "", page = "" } = adviceOn(category) ?? {};
      assert.ok(text.includes(`What to do: ${hint}`) && text.includes(page), text);
      assert.equal(text.split(hint).length, 2, "it is said once");
    });
  }
});

test("what rests until a person does something says what that is", async () => {
  await makeHypervisor();
  await bench.write("POST", vms, blankMachine("web"));
  const said = [
    ["Paused", /What to do: .*berth resume/],
    ["RestartRequired", /What to do: .*berth restart/],
  ] as const;
  for (const [reason, hint] of said) {
    const conditions = [ready("False", reason, "It rests.")];
    await setStatus(`${vms}/web`, { observedGeneration: 1, conditions });
    assert.match(await ask("vm/web"), hint);
  }
});

test("every category of failure has a meaning, something to do, and a page that explains it", () => {
  const folder = new URL("../../../docs/troubleshooting/README.md", import.meta.url);
  const index = readFileSync(folder, "utf8");
  for (const category of Object.keys(failureMeanings)) {
    const { hint = "", page = "" } = adviceOn(category) ?? {};
    assert.ok(hint.length > 10, category);
    const text = readFileSync(new URL(`../../../${page}`, import.meta.url), "utf8");
    assert.ok(text.startsWith(`# ${category}\n`), page);
    assert.match(index, new RegExp(`\\(${page.split("/").at(-1)}\\)`), "in the index");
  }
  assert.equal(adviceOn("Succeeded"), undefined);
});

test("references are found wherever the spec has them, each once", () => {
  const found = referencesOf({
    apiVersion,
    kind: "X",
    metadata: {
      name: "x",
      namespace: "n",
      ownerReferences: [{ apiVersion, kind: "VMSet", name: "s", uid: "u" }],
    },
    spec: {
      hypervisorRef: { name: "h" },
      template: { hypervisorRef: { name: "h" } },
      networks: [{ networkRef: { name: "lan" } }],
      auth: { secretRef: { namespace: "other", name: "token" } },
      otherRef: { name: "not followed" },
    },
  });
  assert.deepEqual(
    found.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`),
    ["Hypervisor n/h", "VMNetwork n/lan", "Secret other/token", "VMSet n/s"],
  );
});
