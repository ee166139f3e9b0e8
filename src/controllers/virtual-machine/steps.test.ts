import assert from "node:assert/strict";
import { test } from "node:test";
import { currentStep, stepTraits, traitsOf, type StepName } from "./steps.ts";

function meant(step: StepName, category: "Missing" | "ImageNotFound"): string | undefined {
  return stepTraits[step].meaning?.({ category, message: "not there" }).category;
}

test("what was to go and is missing has to be observed: it may be gone", () => {
  for (const step of ["Destroy", "DestroyDiskHolder", "DestroyPlaceholder"] as const) {
    assert.equal(meant(step, "Missing"), "UnknownOutcome", step);
  }
  assert.equal(meant("Start", "Missing"), "Missing");
});

test("a step that reads no image does not wait for one", () => {
  assert.equal(meant("Start", "ImageNotFound"), "CreationFailed");
  assert.equal(meant("AddDisk", "ImageNotFound"), "ImageNotFound");
  assert.equal(meant("Create", "ImageNotFound"), "ImageNotFound");
});

test("what an attempt left behind is cleaned up: nobody deletes the VM", () => {
  assert.equal(traitsOf("RemoveVolume").reason, "CleaningUp");
  assert.equal(traitsOf("Destroy").reason, "Deleting");
});

test("a step in a record of 0.1 is the same step under its new name", () => {
  assert.equal(currentStep("MakeKeeper"), "CreateDiskHolder");
  assert.equal(traitsOf("MakeKeeper"), stepTraits.CreateDiskHolder);
  assert.equal(traitsOf("HandOver"), stepTraits.TransferDisk);
  assert.equal(currentStep("AddDisk"), "AddDisk");
});
