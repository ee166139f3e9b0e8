import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import type { HypervisorDoctor, OwnTask } from "../../hypervisor/index.ts";
import type { Person } from "../connect/person.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";
import { resume, runWord } from "./words.ts";
import { runTakeover, takeover } from "./takeover.ts";

const hypervisors = "/apis/berth.dev/v1alpha1/hypervisors";
let bench: Bench;

beforeEach(async () => {
  bench = await createBench();
  const metadata = { name: "berth-system" };
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata };
  await bench.write("POST", "/api/v1/namespaces", namespace);
  await bench.write("POST", "/api/v1/namespaces/berth-system/configmaps", {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "installation" },
    data: { id: "7f3f3b52-90b4-4b6b-9d39-0c9f5a4be001" },
  });
  for (const name of ["pve", "lab"]) {
    await bench.write("POST", hypervisors, {
      apiVersion: "berth.dev/v1alpha1",
      kind: "Hypervisor",
      metadata: { name },
      spec: {
        type: "proxmox",
        endpoints: ["https://pve.example:8006"],
        credentials: { secretRef: { namespace: "berth-system", name } },
      },
    });
  }
  const otherRun = { epoch: 9, place: "laptop", startedAt: "2026-01-01T00:00:00Z" };
  await become("pve", "False", "Superseded", { otherRun, observedBy: "berth_1.1" });
  await become("lab", "True", "Connected", {});
});

async function become(
  name: string,
  status: string,
  ...[reason, more]: [string, object]
): Promise<void> {
  const lastTransitionTime = "2026-01-02T00:00:00Z";
  const ready = { type: "Ready", status, reason, message: "m", lastTransitionTime };
  await bench.write("PATCH", `${hypervisors}/${name}/status`, {
    status: { conditions: [ready], ...more },
  });
}

function personWho(types: string | undefined): Person {
  return {
    isPresent: types !== undefined,
    ask: async () => types ?? "",
    askSecretly: async () => "",
  };
}

/** What the hypervisor lists of Berth's credentials. */
let tasks: OwnTask[] = [];
let unread: string[] = [];
const doctor: HypervisorDoctor = {
  diagnose: async () => ({ findings: [] }),
  snapshot: async () => ({ ok: true, value: {} }),
  ownWork: async () => ({ ok: true, value: { tasks, unread } }),
  close: () => undefined,
};

/** What the controllers do once they are asked. */
let answer = (): Promise<void> => become("pve", "True", "Connected", {});

/** Runs it, with controllers that let this installation act once they are asked. */
async function take(types: string | undefined, ...args: string[]): Promise<Ran> {
  const work = (...[call, machine]: Parameters<Parameters<Bench["run"]>[1]>): Promise<number> =>
    runTakeover(call, machine, { person: personWho(types), createDoctor: () => doctor });
  const running = bench.run(takeover, work, args);
  for (let i = 0; i < 50; i++) await setImmediate();
  if ((await tokenOf("pve")) !== undefined) await answer();
  return running;
}

async function tokenOf(name: string): Promise<unknown> {
  const { metadata } = await bench.write("PATCH", `${hypervisors}/${name}`, {});
  return metadata.annotations?.["berth.dev/takeover-at"];
}

describe("when the other copy last acted", () => {
  const began = (time: string, more: Partial<OwnTask> = {}): OwnTask => {
    const sinceMs = Date.parse(time);
    return { does: "Start", target: "of 101 on pve1", sinceMs, isRunning: false, ...more };
  };
  const shown = async (): Promise<string> => {
    const { notes } = await take("no", "pve");
    return notes.find((line) => / task /.test(line)) ?? notes.join("\n");
  };

  beforeEach(async () => {
    [tasks, unread] = [[], []];
    const ref = { namespace: "berth-system", name: "pve" };
    await bench.write("POST", "/api/v1/namespaces/berth-system/secrets", {
      apiVersion: "v1",
      kind: "Secret",
      metadata: ref,
    });
    await bench.write("PATCH", `${hypervisors}/pve`, { spec: { systemId: "sys" } });
  });

  /** This run wrote the last epoch that the installation recorded: it has acted. */
  async function recordOwnEpoch(at: string): Promise<void> {
    const epochs = JSON.stringify({ sys: { number: 8, run: "berth_1.1", at } });
    const path = "/api/v1/namespaces/berth-system/configmaps/installation";
    await bench.write("PATCH", path, { data: { epochs } });
  }

  test("is told from the newest task of Berth's credentials since that copy was started", async () => {
    tasks = [began("2026-01-01T09:00:00Z"), began("2026-01-01T08:00:00Z", { does: "Stop" })];
    assert.equal(
      await shown(),
      "  the other copy last began a task at 2026-01-01T09:00:00Z: Start of 101 on pve1",
    );
    tasks = [began("2026-01-01T09:00:00Z", { isRunning: true })];
    assert.match(await shown(), /Start of 101 on pve1, which still runs$/);
  });

  test("is not known where it began none since, and it says since when", async () => {
    tasks = [began("2025-12-31T23:00:00Z")];
    assert.match(await shown(), /no task of the other copy is known since 2026-01-01T00:00:00Z/);
    unread = ["pve3"];
    assert.match(await shown(), /Not asked: pve3$/);
  });

  test("leaves out what this run may have begun itself while it acted", async () => {
    await recordOwnEpoch("2025-12-01T00:00:00Z");
    tasks = [began("2026-01-01T12:00:00Z")];
    assert.match(
      await shown(),
      /at 2026-01-01T12:00:00Z \(before this copy stopped, so it may be its own\): Start/,
    );
    tasks = [began("2026-01-02T00:10:00Z"), ...tasks];
    assert.match(await shown(), /last began a task at 2026-01-02T00:10:00Z: Start/);
    tasks = [began("2025-12-31T12:00:00Z")];
    assert.match(await shown(), /no task of the other copy is known since 2026-01-01T00:00:00Z/);
  });

  test("is not known where the hypervisor cannot be asked", async () => {
    await bench.write("DELETE", "/api/v1/namespaces/berth-system/secrets/pve", {});
    const { notes } = await take("no", "pve");
    assert.match(notes.join("\n"), /last acted is not known: there is no Secret berth-system\/pve/);
  });
});

describe("berth takeover", () => {
  test("shows the other copy, and writes only when the installation's name is typed", async () => {
    const wrong = await take("pve", "pve");
    assert.equal(wrong.code, 1);
    assert.match(wrong.notes.join("\n"), /epoch 9, runs on laptop, was started at 2026-01-01/);
    assert.match(wrong.notes.join("\n"), /since 2026-01-02T00:00:00Z/);
    assert.match(wrong.notes.join("\n"), /nothing was changed/);
    assert.equal(await tokenOf("pve"), undefined);
    const { out } = await take("7f3f3b52", "pve");
    assert.deepEqual(out, ["hypervisor/pve taken over"]);
    assert.equal(await tokenOf("pve"), "2026-01-02T03:04:05.000Z berth_1.1");
  });

  test("takes the name as an option where nobody can be asked, and never without it", async () => {
    const silent = await take(undefined, "pve");
    assert.match(silent.notes.join("\n"), /--confirm 7f3f3b52/);
    assert.equal(await tokenOf("pve"), undefined);
    await take(undefined, "hypervisor/pve", "--confirm", "7f3f3b52");
    assert.notEqual(await tokenOf("pve"), undefined);
  });

  test("leaves alone what this installation acts on already", async () => {
    const { out, notes } = await take("7f3f3b52", "lab");
    assert.deepEqual(out, ["nothing to take over"]);
    assert.match(notes.join("\n"), /lab: this installation acts on it, and no other/);
    await take("7f3f3b52", "--all");
    assert.equal(await tokenOf("lab"), undefined);
    assert.notEqual(await tokenOf("pve"), undefined);
  });

  test("says that nobody knows who acts on what cannot be used", async () => {
    await become("lab", "False", "CredentialsMissing", {});
    await become("pve", "True", "Connected", {});
    for (const which of ["lab", "--all"]) {
      const { out, notes, code } = await take("7f3f3b52", which);
      assert.deepEqual([out, code], [["nothing to take over"], 1]);
      assert.match(notes.join("\n"), /lab: who acts on it is not known.*CredentialsMissing/);
    }
  });

  describe("shows what will be done to VMs", () => {
    const vms = "/apis/berth.dev/v1alpha1/namespaces/default/virtualmachines";
    const steps: Record<string, object> = {
      old: { effect: "Delete", intent: "Destroy it." },
      web: { effect: "Restart", intent: "Ask the guest to shut down, within 60 s." },
      db: { effect: "Stop", intent: "Switch the machine off." },
      api: { effect: "Start", intent: "Start the machine." },
      big: { effect: "Change", intent: "Change cpu.cores from 3 to 1." },
      new: { effect: "Create", intent: "Create the VM." },
      odd: {
        effect: "Create",
        intent: "Create the VM.",
        blockedBy: "OrphanedVolumes: vm-9-disk-0.",
      },
    };

    async function declare(name: string, status: object): Promise<void> {
      const spec = { hypervisorRef: { name: "pve" }, source: { blank: {} }, cpu: { cores: 1 } };
      await bench.write("POST", vms, {
        apiVersion: "berth.dev/v1alpha1",
        kind: "VirtualMachine",
        metadata: { name },
        spec: { ...spec, memory: { size: "1Gi" } },
      });
      await bench.write("PATCH", `${vms}/${name}/status`, { status });
    }

    async function shown(): Promise<string[]> {
      const { notes } = await take("no", "pve");
      return notes.filter((line) => /^ {2}(\d+ VM| {2}|nothing)/.test(line));
    }

    const at = "2026-01-01T00:00:00Z";
    const observed = { observedGeneration: 1, plannedSteps: [] };

    test("each kind of change by itself, with ids and nodes", async () => {
      for (const [name, step] of Object.entries(steps)) {
        const placed = name === "big" ? { externalId: "107", node: "pve1" } : {};
        await declare(name, { ...observed, ...placed, plannedSteps: [step] });
      }
      assert.deepEqual(await shown(), [
        "  1 VM will be deleted:",
        "    default/old: Destroy it.",
        "  1 VM will be restarted:",
        "    default/web: Ask the guest to shut down, within 60 s.",
        "  1 VM will be shut down:",
        "    default/db: Switch the machine off.",
        "  1 VM will be started:",
        "    default/api: Start the machine.",
        "  1 VM will be changed:",
        "    default/big (id 107 on pve1): Change cpu.cores from 3 to 1.",
        "  1 VM will be created:",
        "    default/new: Create the VM.",
        "  1 VM will not be touched until what is said here is fixed:",
        "    default/odd: OrphanedVolumes: vm-9-disk-0.",
      ]);
    });

    test("not those that are as declared, and those that are stalled with the reason", async () => {
      const times = { attempts: 1, firstAt: at, lastAt: at };
      const failure = { category: "Missing", message: "The VM 101 is gone.", ...times };
      await declare("same", observed);
      // Its generation is newer than the one that was applied: that alone changes nothing.
      await declare("w0", { ...observed, appliedGeneration: 0, externalId: "101", failure });
      assert.deepEqual(await shown(), [
        "  nothing is planned that changes a VM",
        "  1 VM will not be touched until what is said here is fixed:",
        "    default/w0 (id 101): Missing: The VM 101 is gone.",
      ]);
    });

    test("nor what nobody knows: a VM that this copy has not observed", async () => {
      await declare("unseen", { observedGeneration: 1, externalId: "101" });
      const lines = await shown();
      assert.match(lines.join("\n"), /1 VM not observed by this copy.*\n +default\/unseen/);
    });
  });

  test("needs a Hypervisor or --all, and not both", async () => {
    assert.equal((await take("7f3f3b52")).code, 64);
    assert.equal((await take("7f3f3b52", "pve", "--all")).code, 64);
  });

  test("says so where Berth was restarted before it took over", async () => {
    const usual = answer;
    answer = () => become("pve", "False", "Superseded", { observedBy: "berth_2.1" });
    const { code, notes } = await take("7f3f3b52", "pve");
    answer = usual;
    assert.equal(code, 1);
    assert.match(notes.join("\n"), /restarted before it took over. Run berth takeover again/);
  });

  test("is not what resume does", async () => {
    const work = bench.run(resume, (call, machine) => runWord(call, machine, resume), [
      "hypervisor/pve",
    ]);
    assert.equal((await work).code, 1);
    assert.equal(await tokenOf("pve"), undefined);
  });
});
