import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { plan, runPlan } from "../commands/plan.ts";
import type { Bench } from "../objects/testing.ts";
import { apiVersion, createPlanBench, group, planned, spec, standing } from "./testing.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createPlanBench();
});

describe("berth plan", () => {
  test("nothing would change: exit 0", async () => {
    await standing(bench);
    const { code, out } = await planned(bench, {});
    assert.deepEqual(out, ["= virtualmachine.berth.dev/web unchanged"]);
    assert.equal(code, 0);
  });

  test("a new object is made; one that cannot be had is refused before", async () => {
    const { code, out } = await planned(bench, {}, "new");
    assert.deepEqual([code, out], [2, ["+ virtualmachine.berth.dev/new created"]]);
    const refused = await planned(bench, { cpu: { cores: 2, model: "no such" } }, "new");
    assert.equal(refused.code, 3, refused.out.join("\n"));
  });

  const cases: readonly { reason: string; change: object; line: RegExp; code: number }[] = [
    {
      reason: "a description is changed live",
      change: { description: "of the shop" },
      line: /~ spec\.notes +nothing → "of the shop" +\(live\)/,
      code: 2,
    },
    {
      reason: "cores wait for a reboot",
      change: { cpu: { cores: 4 } },
      line: /~ spec\.cpu\.cores +2 → 4 +\(reboot\)/,
      code: 2,
    },
    {
      reason: "a disk grows live",
      change: { disks: [{ ...spec.disks[0], size: "12Gi" }, spec.disks[1]] },
      line: /~ spec\.disks\[root\]\.size +10Gi → 12Gi +\(live\)/,
      code: 2,
    },
    {
      reason: "a disk that would shrink is refused",
      change: { disks: [{ ...spec.disks[0], size: "5Gi" }, spec.disks[1]] },
      line: /cannot be changed in place|shrink|smaller/,
      code: 3,
    },
    {
      reason: "a disk whose entry is gone is kept",
      change: { disks: [spec.disks[0]] },
      line: /~ spec\.disks\[data\] +fast:vm-100-disk-1 → detached +\(live\)/,
      code: 2,
    },
    {
      reason: "a disk that is declared absent is destroyed with its data",
      change: {
        disks: [spec.disks[0], { ...spec.disks[1], state: "Absent", onDelete: "Delete" }],
      },
      line: /~ spec\.disks\[data\] +fast:vm-100-disk-1 → destroyed +\(destroys data\)/,
      code: 2,
    },
    {
      reason: "to stop it takes the power off",
      change: { powerState: "Stopped" },
      line: /~ spec\.powerState +Running → Stopped +\(power-off\)/,
      code: 2,
    },
    {
      reason: "what only says how Berth behaves is shown too",
      change: { driftPolicy: "Warn" },
      line: /~ spec\.driftPolicy +"Correct" → "Warn" +\(live\)/,
      code: 2,
    },
  ];
  for (const { reason, change, line, code } of cases) {
    test(reason, async () => {
      await standing(bench);
      const ran = await planned(bench, change);
      const text = [...ran.out, ...ran.notes].join("\n");
      assert.match(text, line);
      assert.equal(ran.code, code, text);
      const writes = bench.requests.filter((request) => /^(POST|PUT|PATCH|DELETE)/.test(request));
      assert.deepEqual(
        writes.filter((request) => !request.includes("dryRun=All")),
        [],
        "nothing is stored",
      );
    });
  }

  test("the hash names exactly this plan, and programs read it as JSON", async () => {
    await standing(bench);
    const hashOf = async (cores: number): Promise<string> => {
      const written = { ...spec, cpu: { cores } };
      const metadata = { name: "web" };
      bench.input = JSON.stringify({ apiVersion, kind: "VirtualMachine", metadata, spec: written });
      const { out } = await bench.run(plan, runPlan, ["-f", "-", "-o", "json"]);
      const { objects } = JSON.parse(out.join("\n"));
      return String(objects[0].plan.hash);
    };
    const [four, again, eight] = [await hashOf(4), await hashOf(4), await hashOf(8)];
    assert.equal(four, again);
    assert.notEqual(four, eight);
  });

  test("what the server itself refuses is refused, and other kinds are compared by their specs", async () => {
    bench.input = JSON.stringify({
      apiVersion,
      kind: "VMClass",
      metadata: { name: "x" },
      spec: { no: 1 },
    });
    assert.equal((await bench.run(plan, runPlan, ["-f", "-"])).code, 3);
    const classes = `${group}/namespaces/default/vmclasses`;
    const small = { apiVersion, kind: "VMClass", metadata: { name: "x" } };
    await bench.write("POST", classes, {
      ...small,
      spec: { cpu: { cores: 1 }, memory: { size: "1Gi" } },
    });
    bench.input = JSON.stringify({
      ...small,
      spec: { cpu: { cores: 2 }, memory: { size: "1Gi" } },
    });
    const { out, code } = await bench.run(plan, runPlan, ["-f", "-"]);
    assert.match(out.join("\n"), /~ spec\.cpu\.cores +1 → 2/);
    assert.equal(code, 2);
  });
});
