import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import type { Orphan } from "../../api/index.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { commands } from "../commands/index.ts";
import { runComplete } from "../commands/complete.ts";
import { orphans, runOrphans } from "../commands/orphans.ts";
import type { Person } from "../connect/person.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";

const path = "/apis/berth.dev/v1alpha1/orphans";
const volume = "local-zfs:vm-200-disk-0";
let bench: Bench;

beforeEach(async () => {
  bench = await createBench();
});

async function found(
  name: string,
  spec: Partial<Orphan["spec"]>,
  status: Orphan["status"] = {},
): Promise<void> {
  const body = { apiVersion: "berth.dev/v1alpha1", kind: "Orphan", metadata: { name } };
  const made = await bench.write("POST", path, {
    ...body,
    spec: { hypervisor: "lab", kind: "Volume", externalId: volume, ...spec },
  });
  const seen = { ownership: "Unattributed", allowedDecisions: ["Keep", "Destroy"], ...status };
  await bench.write("PUT", `${path}/${name}/status`, { ...made, status: seen });
}

async function decided(name: string): Promise<unknown> {
  const { items } = (await bench.write("GET", path, {})) as unknown as { items: KubeObject[] };
  return items.find(({ metadata }) => metadata.name === name)?.["spec"];
}

function nobody(): Person {
  const ask = (): Promise<string> => Promise.reject(new Error("nobody is there"));
  return { isPresent: false, ask, askSecretly: ask };
}

function typing(answer: string): Person {
  return { ...nobody(), isPresent: true, ask: async () => answer };
}

function run(args: readonly string[], person = nobody()): Promise<Ran> {
  return bench.run(orphans, (call, machine) => runOrphans(call, machine, person), args);
}

describe("berth orphans list", () => {
  it("shows each with whose it is, its size and age, and what they take together", async () => {
    await found("o-1", {}, { size: String(10 * 1024 ** 3), evidence: ["Nobody knows it."] });
    await found("o-2", { kind: "Machine", externalId: "104" }, { ownership: "Ours", size: "512" });
    const { code, out, notes } = await run([]);
    assert.equal(code, 0);
    assert.match(out[0] ?? "", /^HYPERVISOR +KIND +ID +OWNERSHIP +SIZE +AGE +DECISION +STATUS$/);
    assert.match(out[1] ?? "", /^lab +Machine +104 +Ours +512 B /);
    assert.match(out[2] ?? "", /^lab +Volume +local-zfs:vm-200-disk-0 +Unattributed +10 GiB /);
    assert.deepEqual(notes, ["2 orphans, 10 GiB (10737418752 bytes)"]);
  });

  it("counts what was destroyed apart from what is still there", async () => {
    await found("o-1", {}, { size: "2048", reclaimed: "2048" });
    await found("o-2", { kind: "Machine", externalId: "104" }, { size: "512" });
    const { notes } = await run([]);
    assert.deepEqual(notes, ["1 orphan, 512 B (512 bytes); 1 destroyed, 2 KiB reclaimed"]);
  });

  it("does not say that nothing is on a Hypervisor that there is not", async () => {
    await found("o-1", { hypervisor: "former" });
    const { code, notes } = await run(["--hypervisor", "nosuch"]);
    assert.deepEqual([code, notes], [1, ['hypervisors.berth.dev "nosuch" not found']]);
    assert.equal((await run(["--hypervisor", "former"])).code, 0);
  });

  it("shows why one counts as that when it is named", async () => {
    await found("o-1", {}, { size: "1024", evidence: ["Nobody knows it."], node: "pve1" });
    const { out } = await run(["list", volume]);
    assert.deepEqual(out, [
      `Volume ${volume} on lab, pve1`,
      "  whose:   Unattributed",
      "  size:    1 KiB, age 0s",
      "  why:     Nobody knows it.",
      "  may be:  Keep, Destroy",
    ]);
  });

  it("gives programs the objects", async () => {
    await found("o-1", {});
    const { out } = await run(["list", "-o", "json"]);
    const { items } = JSON.parse(out.join("\n")) as { items: KubeObject[] };
    assert.deepEqual(
      items.map(({ metadata }) => metadata.name),
      ["o-1"],
    );
    assert.deepEqual((await run(["list", "-o", "name"])).out, ["orphan.berth.dev/o-1"]);
  });
});

describe("berth orphans destroy", () => {
  it("changes nothing unless somebody says so, and shows what it would do", async () => {
    await found("o-1", {}, { size: "1024", evidence: ["Nobody knows it."] });
    const { code, out, notes } = await run(["destroy", volume]);
    assert.equal(code, 0);
    assert.ok(out.some((line) => line.includes("Nobody knows it.")));
    assert.match(notes.join("\n"), /with all data: 1 orphan, 1 KiB \(1024 bytes\)\nNothing was ch/);
    assert.deepEqual(await decided("o-1"), {
      hypervisor: "lab",
      kind: "Volume",
      externalId: volume,
    });
  });

  it("writes the decision with the id for --yes, or when the person types the id", async () => {
    await found("o-1", {}, { observation: "0123456789abcdef" });
    await found("o-2", { externalId: "local-zfs:vm-201-disk-0" });
    assert.equal((await run(["destroy", volume, "--yes", "--wait=false"])).code, 0);
    const second = ["destroy", "local-zfs:vm-201-disk-0", "--wait=false"];
    assert.match((await run(second, typing("yes"))).notes.join(), /Nothing was changed/);
    await run(second, typing("local-zfs:vm-201-disk-0"));
    for (const name of ["o-1", "o-2"]) {
      const { decision, confirm, externalId } = (await decided(name)) as Orphan["spec"];
      assert.deepEqual([decision, confirm], ["Destroy", externalId]);
    }
    // It goes along what the person was shown: another thing of the same id is not meant.
    assert.equal(((await decided("o-1")) as Orphan["spec"]).observation, "0123456789abcdef");
  });

  it("refuses what nobody can tell the owner of by anything but its id", async () => {
    await found("o-1", {});
    const { code, notes } = await run(["destroy", "o-1", "--yes"]);
    assert.equal(code, 1);
    assert.match(notes.join(), /nobody can tell whose local-zfs:vm-200-disk-0 is/);
    assert.equal(((await decided("o-1")) as Orphan["spec"]).decision, undefined);
  });

  it("refuses what may not be destroyed, with the way to do it by hand", async () => {
    const status = { allowedDecisions: ["Keep" as const], command: "On pve1: qm unlock 104" };
    await found("o-1", { kind: "Husk", externalId: "104" }, status);
    const { code, notes } = await run(["destroy", "104", "--yes"]);
    assert.equal(code, 1);
    assert.match(notes.join(), /Husk 104 cannot be decided as Destroy. On pve1: qm unlock 104/);
  });

  it("says what was reclaimed, and fails where it is stuck", async () => {
    await found("o-1", {}, { reclaimed: "2048" });
    const good = await run(["destroy", volume, "--yes"]);
    assert.ok(good.out.includes(`${volume}: destroyed, 2 KiB (2048 bytes) reclaimed`));
    const said = {
      reason: "NotAllowed",
      message: "It runs.",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    await found(
      "o-2",
      { externalId: "local-zfs:vm-9-disk-0" },
      {
        observedGeneration: 2,
        conditions: [
          { type: "Ready", status: "False", ...said },
          { type: "Stalled", status: "True", ...said },
        ],
      },
    );
    const bad = await run(["destroy", "local-zfs:vm-9-disk-0", "--yes"]);
    assert.equal(bad.code, 1);
    assert.match(bad.notes.join("\n"), /NotAllowed: It runs\./);
  });
});

describe("an Orphan that goes while its end is waited for", () => {
  /** Whoever takes it away does so as soon as the decision is written. */
  async function ranUntilGone(args: readonly string[]): Promise<Ran> {
    const running = run(args);
    for (let turn = 0; turn < 1000; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const spec = (await decided("o-1")) as Orphan["spec"];
      if (spec.decision !== undefined) break;
    }
    await bench.write("DELETE", `${path}/o-1`, {});
    return running;
  }

  it("was not destroyed, unless it says what was reclaimed", async () => {
    await found("o-1", {});
    const { code, out, notes } = await ranUntilGone(["destroy", volume, "--yes"]);
    assert.equal(code, 1);
    assert.match(notes.join("\n"), /vm-200-disk-0: not destroyed by Berth, and no orphan any more/);
    assert.deepEqual(
      out.filter((line) => line.includes("done")),
      [],
    );
  });

  it("was adopted if its machine is declared, and not otherwise", async () => {
    const args = ["adopt", "104", "--as", "default/web"];
    const machine = { kind: "Machine" as const, externalId: "104" };
    await found("o-1", machine, { allowedDecisions: ["Adopt"] });
    const failed = await ranUntilGone(args);
    assert.equal(failed.code, 1);
    assert.match(failed.notes.join("\n"), /104: not adopted, and no orphan any more/);
    await found("o-1", machine, { allowedDecisions: ["Adopt"] });
    await bench.write("POST", "/apis/berth.dev/v1alpha1/namespaces/default/virtualmachines", {
      apiVersion: "berth.dev/v1alpha1",
      kind: "VirtualMachine",
      metadata: { name: "web" },
      spec: { hypervisorRef: { name: "lab" }, adopt: "Only", externalId: "104" },
    });
    const { code, out } = await ranUntilGone(args);
    assert.deepEqual([code, out], [0, ["104: adopted as default/web"]]);
  });
});

describe("berth orphans adopt and keep", () => {
  it("write the decision, for one machine and with the object that it becomes", async () => {
    const allowedDecisions = ["Keep" as const, "Adopt" as const];
    await found("o-1", { kind: "Machine", externalId: "104" }, { allowedDecisions });
    assert.equal((await run(["adopt", "104"])).code, 64);
    await run(["adopt", "104", "--as", "prod/web", "--wait=false"]);
    const { decision, adoptAs } = (await decided("o-1")) as Orphan["spec"];
    assert.deepEqual([decision, adoptAs], ["Adopt", { namespace: "prod", name: "web" }]);
    assert.equal((await run(["keep", "104"])).code, 0);
    const kept = (await decided("o-1")) as Orphan["spec"];
    assert.deepEqual([kept.decision, kept.adoptAs], ["Keep", undefined]);
  });

  it("refuse an object that has no name or one word too many, and write nothing", async () => {
    await found("o-1", { kind: "Machine", externalId: "104" }, { allowedDecisions: ["Adopt"] });
    for (const word of ["a/b/c", "a/", "/b", ""]) {
      const { code, notes } = await run(["adopt", "104", "--as", word]);
      assert.deepEqual([code, notes], [64, [`--as ${word} is not NAMESPACE/NAME`]]);
    }
    assert.equal(((await decided("o-1")) as Orphan["spec"]).decision, undefined);
  });

  it("say of a volume how its data is kept", async () => {
    await found("o-1", {});
    const { code, notes } = await run(["adopt", volume, "--as", "web"]);
    assert.equal(code, 1);
    assert.match(notes.join(), /cannot be decided as Adopt: .*importedDisk with mode: Take/);
  });

  it("name what is not there, and which of several is meant", async () => {
    assert.match((await run(["keep", "999"])).notes.join(), /there is no Orphan 999/);
    await found("o-1", { hypervisor: "lab" });
    await found("o-2", { hypervisor: "rack" });
    assert.match((await run(["keep", volume])).notes.join(), /means several .*--hypervisor/);
    assert.equal((await run(["keep", volume, "--hypervisor", "rack"])).code, 0);
    assert.equal((await run(["burn", volume])).code, 64);
  });
});

it("completes what can be done, and the ids", async () => {
  await found("o-1", {});
  const complete = async (...words: string[]): Promise<string[]> => {
    const [command] = commands.filter(({ name }) => name === "__complete");
    assert.ok(command);
    const work = (
      call: Parameters<typeof runComplete>[0],
      machine: Parameters<typeof runComplete>[1],
    ) => {
      return runComplete(call, machine, commands);
    };
    return (await bench.run(command, work, ["--", ...words])).out;
  };
  assert.deepEqual(await complete("orphans", "de"), ["destroy"]);
  assert.deepEqual(await complete("orphans", "destroy", "local"), [volume]);
});

it("tells sizes as people read them", () => {
  assert.deepEqual(
    [0, 1023, 1536, 10 * 1024 ** 3, 1.5 * 1024 ** 4].map((bytes) => humanBytes(bytes)),
    ["0 B", "1023 B", "1.5 KiB", "10 GiB", "1.5 TiB"],
  );
});
