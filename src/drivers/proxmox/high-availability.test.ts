import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { seenGuard } from "./high-availability.ts";

describe("what high availability says of a machine", () => {
  it("is followed in time, whatever it does now", () => {
    assert.deepEqual(seenGuard("117", "Running", "starting"), {
      requested: "Running",
      detail: "starting",
    });
  });

  it("is followed no more once it has given up, and a person is told how to go on", () => {
    const { remedy = "" } = seenGuard("117", "Running", "error");
    assert.match(remedy, /ha-manager set vm:117 --state disabled/);
    assert.match(remedy, /ha-manager set vm:117 --state started/);
  });
});
