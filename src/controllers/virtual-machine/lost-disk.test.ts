import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Machine } from "../../hypervisor/index.ts";
import { claim, declared, gib, machine } from "./fixture.ts";
import type { PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";

/** What is said where the place of the disk root is empty, and the VM has this one undeclared. */
function told(other?: { readonly sizeBytes: number; readonly isOwn?: boolean }): string {
  const { sizeBytes = 0, isOwn = true } = other ?? {};
  const at = { storage: "store", sizeBytes };
  const disk = { ...at, slot: "d8", volume: "store:other", bus: "scsi" } as const;
  const volume = { ...at, id: "store:other", role: "Disk", state: "Attached", isOwn } as const;
  const found = other === undefined ? [] : [{ disk, volume }];
  const lists = { disks: found.map((one) => one.disk), volumes: found.map((one) => one.volume) };
  const seen: Machine = { ...machine, ...lists };
  const input: PlanInput = { declared, claim, seen: { at: "ours", machine: seen }, nowMs: 0 };
  const next = planVm(input);
  assert.ok(next.do === "fail", JSON.stringify(next));
  assert.equal(next.failure.category, "Missing");
  return `${next.failure.message} ${next.failure.remedy}`;
}

describe("a disk that left its place", () => {
  it("is told with its volume and its place", () => {
    assert.match(
      told(),
      /: d0 is empty, and the VM does not have its volume store:root \(10Gi\)\./,
    );
    assert.match(told(), /Attach the disk as d0 of VM 100 again on the hypervisor, or remove/);
    assert.doesNotMatch(told(), /not declared|another name/);
  });

  it("may be an undeclared one under another name, which is told", () => {
    for (const [sizeBytes, size] of [
      [10 * gib, "10Gi"],
      [12 * gib, "12Gi"],
    ] as const) {
      const text = told({ sizeBytes });
      assert.ok(text.includes(`Attached and not declared: d8 (store:other, ${size}).`), text);
      assert.match(text, /If d8 is this disk under another name, detach it and attach it as d0/);
    }
  });

  it("is none that is smaller, or that bears the id of another VM", () => {
    assert.doesNotMatch(told({ sizeBytes: 9 * gib }), /d8/);
    assert.doesNotMatch(told({ sizeBytes: 10 * gib, isOwn: false }), /d8/);
  });
});
