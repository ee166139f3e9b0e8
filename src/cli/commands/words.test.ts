import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { isJsonObject } from "../../kernel/json.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";
import type { Command } from "../command.ts";
import { adopt, runAdopt } from "./adopt.ts";
import {
  cancel,
  forget,
  pause,
  restart,
  resume,
  retry,
  runCancel,
  runForget,
  runWord,
} from "./words.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createBench();
  await bench.write("POST", vms, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name: "web", finalizers: ["berth.dev/machine"] },
    spec: {
      hypervisorRef: { name: "pve" },
      source: { blank: {} },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
    },
  });
});

const vms = "/apis/berth.dev/v1alpha1/namespaces/default/virtualmachines";
const operation = {
  id: "op-1",
  step: "AddDisk",
  intent: "Copy the image.",
  attempt: 1,
  since: "2026-01-02T03:04:05Z",
};

function word(command: Command, ...args: string[]): Promise<Ran> {
  return bench.run(command, (call, machine) => runWord(call, machine, command), args);
}

async function annotationsOf(name = "web"): Promise<Record<string, unknown>> {
  const { metadata } = await bench.write("PATCH", `${vms}/${name}`, {});
  return metadata.annotations ?? {};
}

async function writeStatus(status: object): Promise<void> {
  await bench.write("PATCH", `${vms}/web/status`, { status });
}

describe("words of people", () => {
  test("pause and resume write and take back one annotation", async () => {
    assert.deepEqual((await word(pause, "vm/web")).out, ["virtualmachine.berth.dev/web paused"]);
    assert.deepEqual(await annotationsOf(), { "berth.dev/paused": "true" });
    await word(resume, "vm", "web");
    assert.deepEqual(await annotationsOf(), {});
  });

  test("retry and restart write the time, so that each is another word", async () => {
    await word(retry, "vm/web");
    await word(restart, "vm/web");
    assert.deepEqual(await annotationsOf(), {
      "berth.dev/reconcile-at": "2026-01-02T03:04:05Z",
      "berth.dev/restart-at": "2026-01-02T03:04:05Z",
    });
  });

  test("restart is refused, and retry says what it does, where this copy only observes", async () => {
    const hypervisors = "/apis/berth.dev/v1alpha1/hypervisors";
    await bench.write("POST", hypervisors, {
      apiVersion: "berth.dev/v1alpha1",
      kind: "Hypervisor",
      metadata: { name: "pve" },
      spec: {
        type: "proxmox",
        endpoints: ["https://pve.example:8006"],
        credentials: { secretRef: { namespace: "berth-system", name: "pve" } },
      },
    });
    const lastTransitionTime = "2026-01-02T00:00:00Z";
    const ready = { type: "Ready", status: "False", reason: "Superseded", message: "m" };
    const conditions = [{ ...ready, lastTransitionTime }];
    await bench.write("PATCH", `${hypervisors}/pve/status`, { status: { conditions } });
    const refused = await word(restart, "vm/web");
    assert.deepEqual([refused.code, refused.out], [1, []]);
    assert.match(refused.notes.join("\n"), /only observes hypervisor\/pve.*nothing was requested/);
    assert.match(refused.notes.join("\n"), /berth takeover pve/);
    assert.deepEqual(await annotationsOf(), {}, "it would restart at a later takeover");
    for (const name of ["vm/web", "hypervisor/pve"]) {
      const { code, out } = await word(retry, name);
      assert.equal(code, 0);
      assert.match(out.join("\n"), /is observed again.*nothing is tried before berth takeover pve/);
    }
    await word(pause, "vm/web");
    assert.match((await word(retry, "vm/web")).out.join("\n"), /takeover pve/);
  });

  test("retry and restart of a paused machine say that they wait until it is resumed", async () => {
    const of = "virtualmachine.berth.dev/web";
    assert.deepEqual((await word(retry, "vm/web")).out, [`${of} is tried again`]);
    assert.deepEqual((await word(restart, "vm/web")).out, [`${of} restarts`]);
    await word(pause, "vm/web");
    const later = "when it is resumed";
    const tried = (await word(retry, "vm/web")).out;
    assert.deepEqual(tried, [`${of} is paused: it is tried again ${later}`]);
    const restarted = (await word(restart, "vm/web")).out;
    assert.deepEqual(restarted, [`${of} is paused: it restarts ${later}`]);
    assert.deepEqual((await word(resume, "vm/web")).out, [`${of} resumed`]);
  });

  test("what is not there, of another kind or not named is refused", async () => {
    assert.equal((await word(pause, "vm/none")).code, 1);
    assert.match((await word(pause, "ns/default")).notes.join(), /for VirtualMachine, and not/);
    assert.equal((await word(pause, "vm")).code, 64);
  });

  test("cancel names the open operation, and ends with what was seen", async () => {
    const idle = await bench.run(cancel, runCancel, ["vm/web"]);
    assert.match(idle.notes.join(), /nothing is under way/);
    await writeStatus({ operation, externalId: "100", node: "pve1" });
    const running = bench.run(cancel, runCancel, ["vm/web"]);
    for (let i = 0; i < 20; i++) await setImmediate();
    assert.equal((await annotationsOf())["berth.dev/cancel"], "op-1");
    await writeStatus({ operation: null, powerState: "Stopped" });
    const { code, out } = await running;
    assert.equal(code, 0);
    assert.match(out.join(), /cancelled and paused; seen: machine 100 on pve1, Stopped, 0 disks/);
  });

  test("cancel ends the next step too, where the work had gone on to it", async () => {
    await writeStatus({ operation });
    const running = bench.run(cancel, runCancel, ["vm/web"]);
    for (let i = 0; i < 20; i++) await setImmediate();
    await writeStatus({ operation: { ...operation, id: "op-2", intent: "Start the machine." } });
    for (let i = 0; i < 20; i++) await setImmediate();
    assert.equal((await annotationsOf())["berth.dev/cancel"], "op-2");
    await writeStatus({ operation: null });
    const { code, out, notes } = await running;
    assert.equal(code, 0);
    assert.match(out.join(), /cancelled and paused/);
    assert.deepEqual(notes.slice(0, 2), ["Ends: Copy the image.", "Ends: Start the machine."]);
  });

  test("cancel leaves alone what somebody resumed meanwhile", async () => {
    await writeStatus({ operation });
    const running = bench.run(cancel, runCancel, ["vm/web"]);
    for (let i = 0; i < 20; i++) await setImmediate();
    await word(resume, "vm/web");
    await writeStatus({ operation: { ...operation, id: "op-2" } });
    const { code, notes } = await running;
    assert.equal(code, 1);
    assert.match(notes.join(), /was resumed meanwhile/);
    assert.equal((await annotationsOf())["berth.dev/cancel"], undefined);
  });

  test("cancel that is not heeded in time says that the object is paused", async () => {
    await writeStatus({ operation });
    const running = bench.run(cancel, runCancel, ["vm/web", "--timeout", "5s"]);
    for (let i = 0; i < 20; i++) await setImmediate();
    bench.clock.advance(5_000);
    const { code, notes } = await running;
    assert.equal(code, 1);
    assert.match(notes.join(), /is paused, and its work has not ended yet/);
  });

  test("forget needs a reason, keeps it, deletes, and says so once the object is gone", async () => {
    assert.equal((await bench.run(forget, runForget, ["vm/web"])).code, 64);
    const running = bench.run(forget, runForget, ["vm/web", "--reason", "burned down"]);
    for (let i = 0; i < 20; i++) await setImmediate();
    const { metadata } = await bench.write("PATCH", `${vms}/web`, {});
    assert.equal(metadata.annotations?.["berth.dev/forget"], "burned down");
    assert.ok(metadata.deletionTimestamp);
    await bench.write("PATCH", `${vms}/web`, { metadata: { finalizers: null } });
    const { code, out } = await running;
    assert.equal(code, 0);
    assert.deepEqual(out, ["virtualmachine.berth.dev/web forgotten"]);
  });

  test("forget does not call forgotten what is not gone in time", async () => {
    const args = ["vm/web", "--reason", "burned down", "--timeout", "5s"];
    const running = bench.run(forget, runForget, args);
    for (let i = 0; i < 20; i++) await setImmediate();
    bench.clock.advance(5_000);
    const { code, out, notes } = await running;
    assert.equal(code, 1);
    assert.deepEqual(out, ["virtualmachine.berth.dev/web is being let go"]);
    assert.match(notes.join(), /not gone yet; that goes on/);
  });
});

describe("berth adopt", () => {
  const changes = [
    { field: "spec.cpu.cores", from: "2", to: "4", effect: "Reboot", note: "At the next restart." },
  ];

  test("shows the plan, and approves exactly it", async () => {
    assert.match((await bench.run(adopt, runAdopt, ["vm/web"])).out.join(), /nothing to approve/);
    await writeStatus({ plan: { hash: "abc123", changes } });
    const shown = await bench.run(adopt, runAdopt, ["vm/web", "--print"]);
    assert.deepEqual(shown.out, [
      "  ~ spec.cpu.cores  2 → 4  (reboot)",
      "      At the next restart.",
      "  plan abc123",
    ]);
    assert.deepEqual(await annotationsOf(), {});
    await bench.run(adopt, runAdopt, ["vm/web"]);
    assert.deepEqual(await annotationsOf(), { "berth.dev/approve": "abc123" });
  });

  test("a mark is written back only by the word for it", async () => {
    const mark = [{ field: "mark", to: "the mark of default/web", effect: "Live" }];
    await writeStatus({ plan: { hash: "abc123", changes: mark } });
    assert.match((await bench.run(adopt, runAdopt, ["vm/web"])).notes.join(), /--restamp/);
    assert.deepEqual(await annotationsOf(), {});
    await bench.run(adopt, runAdopt, ["vm/web", "--restamp"]);
    assert.deepEqual(await annotationsOf(), { "berth.dev/approve": "abc123" });
    await writeStatus({ plan: { hash: "def456", changes } });
    const other = await bench.run(adopt, runAdopt, ["vm/web", "--restamp"]);
    assert.match(other.notes.join(), /is another one/);
  });

  const asked = ["500", "--hypervisor", "pve", "--name", "old"];

  test("prints no manifest for a Hypervisor that there is not", async () => {
    const { code, out, notes } = await bench.run(adopt, runAdopt, asked);
    assert.deepEqual([code, out], [1, []]);
    assert.deepEqual(notes, ['hypervisors.berth.dev "pve" not found']);
  });

  test("prints one without a server, and says that nobody was asked", async () => {
    bench.files.clear();
    const { code, out, notes } = await bench.run(adopt, runAdopt, asked);
    assert.equal(code, 0);
    assert.match(out.join("\n"), /externalId: "500"/);
    assert.match(notes.join(), /not known whether there is a Hypervisor pve: no server is known/);
    const named = await bench.run(adopt, runAdopt, [...asked, "--data", "nowhere"]);
    assert.deepEqual([named.code, named.out], [1, []]);
  });

  test("prints a manifest for a machine that nobody declared", async () => {
    await makeHypervisor();
    const { out, notes } = await bench.run(adopt, runAdopt, asked);
    assert.deepEqual(notes, []);
    bench.input = out.join("\n");
    assert.match(bench.input, /externalId: "500"\n {2}adopt: Only/);
    const made = await bench.write("POST", vms, {
      apiVersion: "berth.dev/v1alpha1",
      kind: "VirtualMachine",
      metadata: { name: "old" },
      spec: {
        hypervisorRef: { name: "pve" },
        externalId: "500",
        adopt: "Only",
        deletionPolicy: "Retain",
      },
    });
    assert.ok(isJsonObject(made["spec"]), "such a manifest is accepted");
  });
});

async function makeHypervisor(): Promise<void> {
  const credentials = { secretRef: { namespace: "default", name: "pve" } };
  const spec = { type: "proxmox", endpoints: ["https://pve.example:8006"], credentials };
  const body = { apiVersion: "berth.dev/v1alpha1", kind: "Hypervisor", metadata: { name: "pve" } };
  await bench.write("POST", "/apis/berth.dev/v1alpha1/hypervisors", { ...body, spec });
}
