import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { missingReports } from "./plan.ts";
import { validFor } from "./watch.ts";

const place = { hypervisor: "east", node: "pve1" };

function vmWith(uid: string, category: string, more: object = {}): VirtualMachine {
  const at = "1970-01-01T00:00:00Z";
  const failure = { category, attempts: 1, firstAt: at, lastAt: at, message: "No." };
  const spec = { hypervisorRef: { name: "east" } };
  return { metadata: { uid }, spec, status: { node: "pve1", failure, ...more } } as never;
}

describe("how long an observation of a file counts", () => {
  const missed = vmWith("1", "ImageNotFound");

  it("is a quarter of an hour, and seconds when a VM reports that it is missing", () => {
    assert.equal(validFor("", undefined), 15 * 60_000);
    assert.equal(validFor(missingReports([missed], place), undefined), 3_000);
    assert.equal(validFor(missingReports([missed], place), ""), 3_000);
  });

  it("is a minute where the file was there in spite of the same report", () => {
    const checked = missingReports([missed], place);
    assert.equal(validFor(missingReports([missed], place), checked), 60_000);
    const both = [vmWith("2", "ImageNotFound"), missed];
    assert.equal(validFor(missingReports(both, place), checked), 3_000, "another VM reports it");
    assert.equal(missingReports(both, place), missingReports(both.toReversed(), place));
  });

  it("does not depend on other failures, or on VMs at other places", () => {
    const others = [
      vmWith("1", "DependencyNotReady"),
      vmWith("2", "ImageNotFound", { node: "pve2" }),
    ];
    assert.equal(missingReports(others, place), "");
    assert.equal(missingReports([missed], { ...place, hypervisor: "west" }), "");
    assert.notEqual(missingReports(others, { hypervisor: "east" }), "", "shared storage");
  });
});
