import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import type { Bench } from "../objects/testing.ts";
import { apiVersion, createPlanBench, group, planFile, spec, standing, vmOf } from "./testing.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createPlanBench();
});

const { cpu: _cpu, memory: _memory, ...unsized } = spec;
const byClass = { classRef: { name: "small" }, cpu: undefined, memory: undefined };

function classOf(memory: string): object {
  const metadata = { name: "small" };
  return {
    apiVersion,
    kind: "VMClass",
    metadata,
    spec: { cpu: { cores: 2 }, memory: { size: memory } },
  };
}

function networkOf(vlan: number): object {
  const metadata = { name: "office" };
  return { apiVersion, kind: "VMNetwork", metadata, spec: { bridge: "vmbr0", vlan } };
}

async function withClass(): Promise<void> {
  await bench.write("POST", `${group}/namespaces/default/vmclasses`, classOf("2Gi"));
}

describe("a VMClass that changes", () => {
  test("shows what becomes of machines that no document declares", async () => {
    await withClass();
    await standing(bench, { name: "c1", change: byClass });
    await standing(bench, { name: "own", externalId: "101" });
    const { out, code } = await planFile(bench, classOf("4Gi"));
    const text = out.join("\n");
    assert.match(text, /^~ vmclass\.berth\.dev\/small changed$/m);
    assert.match(text, /~ spec\.memory\.size +"2Gi" → "4Gi"$/m, "of a class no cost is claimed");
    assert.match(
      text,
      /^~ virtualmachine\.berth\.dev\/c1 changed, because of vmclass\.berth\.dev\/small$/m,
    );
    assert.match(text, /~ spec\.memory\.sizeBytes .*\(reboot\)/);
    assert.doesNotMatch(text, /\/own/, "a machine of another size is not concerned");
    assert.equal(code, 2);
  });

  test("is the one by which a machine in the same file is judged, and it is told once", async () => {
    await withClass();
    await standing(bench, { name: "c1", change: byClass });
    const { out } = await planFile(bench, vmOf("c1", byClass), classOf("4Gi"));
    const machines = out.filter((line) => line.includes("virtualmachine"));
    assert.deepEqual(machines, ["~ virtualmachine.berth.dev/c1 changed"]);
    assert.match(out.join("\n"), /~ spec\.memory\.sizeBytes .*\(reboot\)/);
  });

  test("leaves out machines that say the size themselves", async () => {
    await withClass();
    const change = { ...byClass, memory: { size: "3Gi" } };
    await standing(bench, { name: "c1", change });
    const { out } = await planFile(bench, classOf("4Gi"));
    assert.doesNotMatch(out.join("\n"), /virtualmachine/);
  });

  test("is drift to a machine whose drift is left alone", async () => {
    await withClass();
    await standing(bench, { name: "c1", change: { ...byClass, driftPolicy: "Warn" } });
    const { out } = await planFile(bench, classOf("4Gi"));
    assert.match(out.join("\n"), /c1 unchanged, because of/);
    assert.match(out.join("\n"), /with driftPolicy Warn the machine stays as it is/);
  });

  test("that is new serves a machine of the same file", async () => {
    const vm = { apiVersion, kind: "VirtualMachine", metadata: { name: "new" } };
    const declared = { ...vm, spec: { ...unsized, classRef: { name: "small" } } };
    const { out, code } = await planFile(bench, classOf("2Gi"), declared);
    assert.deepEqual(out, [
      "+ vmclass.berth.dev/small created",
      "+ virtualmachine.berth.dev/new created",
    ]);
    assert.equal(code, 2);
  });
});

test("a VMNetwork that changes shows its machines in all namespaces", async () => {
  const networks = [{ name: "lan", networkRef: { name: "office" } }];
  await bench.write("POST", `${group}/vmnetworks`, networkOf(10));
  const metadata = { name: "team" };
  await bench.write("POST", "/api/v1/namespaces", {
    apiVersion: "v1",
    kind: "Namespace",
    metadata,
  });
  await standing(bench, { name: "a", change: { networks } });
  await standing(bench, { name: "b", externalId: "101", namespace: "team", change: { networks } });
  const { out } = await planFile(bench, networkOf(20));
  const text = out.join("\n");
  assert.match(text, /^~ virtualmachine\.berth\.dev\/a changed, because of vmnetwork/m);
  assert.match(text, /^~ virtualmachine\.berth\.dev\/b in team changed, because of vmnetwork/m);
  assert.equal(out.filter((line) => /networks\[lan\]\.vlan +10 → 20 +\(/.test(line)).length, 2);
});

test("a machine that several change is told once, with all of them", async () => {
  const networks = [{ name: "lan", networkRef: { name: "office" } }];
  await withClass();
  await bench.write("POST", `${group}/vmnetworks`, networkOf(10));
  await standing(bench, { name: "c1", change: { ...byClass, networks } });
  const { out } = await planFile(bench, classOf("4Gi"), networkOf(20));
  const told = out.filter((line) => line.includes("/c1"));
  const causes = "vmclass.berth.dev/small and vmnetwork.berth.dev/office";
  assert.deepEqual(told, [`~ virtualmachine.berth.dev/c1 changed, because of ${causes}`]);
});

test("another default storage moves no disk that stands", async () => {
  const disks = spec.disks.map(({ storage: _storage, ...disk }) => disk);
  await bench.write("PATCH", `${group}/hypervisors/pve`, {
    spec: { defaults: { storage: "fast" } },
  });
  await standing(bench, { change: { disks } });
  await bench.write("PATCH", `${group}/hypervisors/pve`, {
    spec: { defaults: { storage: "slow" } },
  });
  const { out } = await planFile(bench, vmOf("web", { disks, description: "of the shop" }));
  assert.doesNotMatch(out.join("\n"), /slow/);
  const named = [{ ...disks[0], storage: "slow" }, disks[1]];
  const moved = await planFile(bench, vmOf("web", { disks: named }));
  assert.match(moved.out.join("\n"), /~ spec\.disks\[root\]\.storage +fast → slow/);
});

describe("a missing right", () => {
  test("to write is no refusal: it cannot be told, exit 1", async () => {
    await standing(bench);
    bench.user = { name: "eve", uid: "1", groups: ["berth:view", "system:authenticated"] };
    const { out, code } = await planFile(bench, vmOf("web", { cpu: { cores: 4 } }));
    assert.match(out.join("\n"), /^\? .* cannot be told\n.*cannot patch resource/);
    assert.equal(code, 1);
    const made = await planFile(bench, vmOf("new"));
    assert.match(made.out.join("\n"), /cannot be told\n.*cannot create resource/);
    assert.equal(made.code, 1);
  });

  test("to read its Claim leaves open what an edit costs, and says what differs", async () => {
    await standing(bench);
    const groups = ["berth:edit:default", "system:authenticated"];
    bench.user = { name: "eve", uid: "1", groups };
    const { out, code } = await planFile(bench, vmOf("web", { cpu: { cores: 4 } }));
    assert.match(out.join("\n"), /^\? virtualmachine\.berth\.dev\/web cannot be told/);
    assert.match(out.join("\n"), /~ spec\.cpu\.cores +2 → 4$/m);
    assert.match(out.join("\n"), /what this costs cannot be told: .*cannot get resource "claims"/);
    assert.equal(code, 1);
    assert.equal((await planFile(bench, vmOf("web"))).code, 0, "where nothing differs, nothing");
  });

  test("to read its Claim does not make a machine unchanged whose class changes", async () => {
    await withClass();
    await standing(bench, { name: "c1", change: byClass });
    const groups = ["berth:edit:default", "system:authenticated"];
    bench.user = { name: "eve", uid: "1", groups };
    const { out, code } = await planFile(bench, classOf("4Gi"), vmOf("c1", byClass));
    assert.match(out.join("\n"), /^\? virtualmachine\.berth\.dev\/c1 cannot be told$/m);
    assert.equal(code, 1);
  });

  test("counts less than what the server itself refuses", async () => {
    await standing(bench);
    bench.user = { name: "eve", uid: "1", groups: ["berth:view", "system:authenticated"] };
    const unknown = { apiVersion: "no.such/v1", kind: "Thing", metadata: { name: "x" } };
    assert.equal((await planFile(bench, vmOf("web"), unknown)).code, 3);
  });
});
