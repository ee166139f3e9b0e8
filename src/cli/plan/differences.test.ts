import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { beforeEach, describe, test } from "node:test";
import type { Bench } from "../objects/testing.ts";
import { createPlanBench, group, planFile, planned, standing, vmOf } from "./testing.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createPlanBench();
});

const core = "/api/v1/namespaces/default";

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

describe("what is not in a spec", () => {
  test("of a Secret only the names are shown of what differs", async () => {
    const metadata = { name: "pve" };
    const secret = { apiVersion: "v1", kind: "Secret", metadata };
    const before = { same: base64("s"), token: base64("old-value"), gone: base64("gone-value") };
    await bench.write("POST", `${core}/secrets`, { ...secret, data: before });
    // What was not applied before is not taken away by applying something else.
    const stringData = { token: "new-value", added: "more-value" };
    const annotated = { ...secret, metadata: { ...metadata, annotations: { note: "of-a-note" } } };
    const { out, code } = await planFile(bench, { ...annotated, stringData });
    const text = out.join("\n");
    assert.match(text, /~ data\[token\] +\(not shown\) → \(not shown\)$/m);
    assert.match(text, /~ data\[added\] +nothing → \(not shown\)$/m);
    assert.match(text, /~ metadata\.annotations\[note\] +nothing → \(not shown\)$/m);
    assert.doesNotMatch(text, /same|last-applied|-value|of-a-note/);
    for (const value of ["old-value", "new-value", "more-value"]) {
      assert.ok(!text.includes(base64(value)), value);
    }
    assert.equal(code, 2);
  });

  test("the same Secret again is unchanged", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "pve" } };
    await bench.write("POST", `${core}/secrets`, { ...secret, data: { token: base64("a") } });
    const { out, code } = await planFile(bench, { ...secret, stringData: { token: "a" } });
    assert.deepEqual([code, out], [0, ["= secret/pve unchanged"]]);
  });

  test("of a ConfigMap too, and whether it may change again", async () => {
    const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "m" } };
    await bench.write("POST", `${core}/configmaps`, { ...map, data: { "a.b": "old-value" } });
    const { out, code } = await planFile(bench, {
      ...map,
      data: { "a.b": "new-value" },
      immutable: true,
    });
    const text = out.join("\n");
    assert.match(text, /~ data\[a\.b\] +\(not shown\) → \(not shown\)$/m);
    assert.match(text, /~ immutable +nothing → true$/m);
    assert.doesNotMatch(text, /-value/);
    assert.equal(code, 2);
  });

  test("labels and annotations of a machine are shown, and that it is paused", async () => {
    await standing(bench);
    const annotations = { "berth.dev/paused": "true" };
    const metadata = { name: "web", labels: { app: "shop" }, annotations };
    const { out, code } = await planFile(bench, { ...vmOf("web"), metadata });
    const text = out.join("\n");
    assert.match(text, /~ metadata\.labels\[app\] +nothing → "shop" +\(live\)/);
    assert.match(text, /~ metadata\.annotations\[berth\.dev\/paused\] +nothing → "true" +\(live\)/);
    assert.match(text, /it is paused/);
    assert.equal(code, 2);
  });

  test("the word to restart costs a reboot", async () => {
    await standing(bench);
    const metadata = { name: "web", annotations: { "berth.dev/restart-at": "now" } };
    const { out } = await planFile(bench, { ...vmOf("web"), metadata });
    assert.match(out.join("\n"), /restart-at\] +nothing → "now" +\(reboot\)/);
  });
});

describe("what counts only until the machine first stood", () => {
  const image = { image: { name: "debian", disk: "root" } };
  const imported = { importedDisk: { diskId: "fast:vm-9-disk-0" } };
  const inline = (text: string): object => ({ cloudInit: { userData: { inline: text } } });
  const hash = (end: string): object => ({
    cloudInit: { user: { passwordHash: `$6$salt$${end}` } },
  });
  const named = (name: string): object => ({ cloudInit: { user: { name } } });
  const cases: readonly { field: string; from: object; to: object; shows?: RegExp }[] = [
    {
      field: "spec.source",
      from: { source: imported },
      to: { source: { importedDisk: { diskId: "fast:vm-8-disk-0" } } },
      shows: /vm-9-disk.*vm-8-disk/,
    },
    {
      field: "spec.source",
      from: { source: image },
      to: { source: { image: { name: "fedora" } } },
      shows: /debian.*fedora/,
    },
    { field: "spec.cloudInit.userData", from: inline("hushed-a"), to: inline("hushed-b") },
    { field: "spec.cloudInit.userData", from: {}, to: inline("hushed-b") },
    { field: "spec.cloudInit.user", from: hash("hushedA"), to: hash("hushedB") },
    { field: "spec.cloudInit.user", from: named("hushed-a"), to: named("hushed-b") },
  ];
  for (const [index, { field, from, to, shows }] of cases.entries()) {
    test(`an edit of ${field} is refused and named (${index})`, async () => {
      await standing(bench, { change: from });
      const { out, code } = await planned(bench, to);
      const text = out.join("\n");
      assert.match(text, /^! virtualmachine\.berth\.dev\/web is refused$/m);
      const line = out.find((one) => one.startsWith(`  ~ ${field} `)) ?? "";
      assert.match(line, /\(refused\)$/, text);
      assert.match(line, shows ?? /\(not shown\)/);
      assert.doesNotMatch(text, /hushed/);
      assert.match(text, /cannot be changed in place: spec\./);
      assert.equal(code, 3);
    });
  }

  test("what the machine was really made from counts, not an edit that was refused", async () => {
    // Somebody edited the source before; Berth refused that, and the Claim still knows.
    const edited = { image: { name: "fedora" } };
    const said = '{"image":{"disk":"root","name":"debian"}}';
    const digest = createHash("sha256").update(said).digest("hex").slice(0, 16);
    const createdFrom = [{ field: "spec.source", digest }];
    await standing(bench, { change: { source: edited }, createdFrom });
    const again = await planned(bench, { source: image });
    assert.equal(again.code, 2, again.out.join("\n"));
    assert.match(again.out.join("\n"), /~ spec\.source\.image\.name +"fedora" → "debian"/);
    const still = await planned(bench, { source: edited, cpu: { cores: 4 } });
    assert.equal(still.code, 3, still.out.join("\n"));
  });
});

test("fields that no machine notices are listed where nothing else changes", async () => {
  await standing(bench);
  const { out, code } = await planned(bench, { externalId: "100" });
  assert.match(out.join("\n"), /~ spec\.externalId +nothing → "100"/);
  assert.equal(code, 2);
});

test("a machine that does not stand yet shows what differs, and no secret of it", async () => {
  const change = { cloudInit: { user: { passwordHash: "$6$salt$hushedA" } } };
  await bench.write("POST", `${group}/namespaces/default/virtualmachines`, vmOf("web", change));
  const { out, code } = await planned(bench, {
    cpu: { cores: 4 },
    cloudInit: { user: { passwordHash: "$6$salt$hushedB" } },
  });
  const text = out.join("\n");
  assert.match(text, /~ spec\.cpu\.cores +2 → 4$/m);
  assert.match(text, /~ spec\.cloudInit\.user\.passwordHash +\(not shown\) → \(not shown\)$/m);
  assert.doesNotMatch(text, /hushed/);
  assert.equal(code, 2);
});

test("starting a machine that is stopped costs nobody anything", async () => {
  await standing(bench, { change: { powerState: "Stopped" }, status: { powerState: "Stopped" } });
  const { out } = await planned(bench, { powerState: "Running" });
  assert.match(out.join("\n"), /~ spec\.powerState +Stopped → Running +\(live\)\n.*is started/);
});
