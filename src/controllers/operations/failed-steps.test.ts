import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { StatusFailure } from "../failures/index.ts";
import {
  declarationDigest,
  failedBefore,
  failedStepsOf,
  failureAgain,
  heldMs,
  heldStep,
  type HeldStep,
  withFailed,
  type FailedStep,
} from "./failed-steps.ts";
import { statusOf } from "../virtual-machine/index.ts";

const at = formatTime(0);
const refused: StatusFailure = {
  category: "PermissionDenied",
  message: "Not allowed.",
  cause: "403",
  step: "Start",
  attempts: 1,
  firstAt: at,
  lastAt: at,
  nextRetryAt: formatTime(600_000),
};
const odd: StatusFailure = { ...refused, category: "CreationFailed", step: "AddDisk", attempts: 3 };

function vmWith(failedSteps: readonly FailedStep[], generation = 2, word?: string): VirtualMachine {
  const said = word === undefined ? {} : { annotations: { [annotations.reconcileAt]: word } };
  return {
    metadata: { generation, ...said },
    status: { failedSteps: [...failedSteps] },
  } as unknown as VirtualMachine;
}

const started = withFailed(vmWith([]), "Start", { failure: refused, tried: "a" });

describe("steps that failed", () => {
  test("are counted apart, each by its step and its category", () => {
    const both = withFailed(vmWith(started), "AddDisk", { failure: odd, tried: undefined });
    const vm = vmWith(both);
    assert.equal(failedBefore(vm, "AddDisk", "CreationFailed")?.attempts, 3);
    assert.equal(failedBefore(vm, "Start", "PermissionDenied")?.attempts, 1);
    assert.equal(failedBefore(vm, "Start", "CreationFailed"), undefined);
    assert.equal(failedBefore(vm, undefined, "CreationFailed"), undefined);
  });

  test("have one entry each, the newest last, and the oldest goes where there are too many", () => {
    let vm = vmWith(started);
    for (const step of ["Create", "AddDisk", "Grow", "AddDisk"]) {
      vm = vmWith(withFailed(vm, step, { failure: odd, tried: undefined }));
    }
    const names = (): string[] => failedStepsOf(vm).map(({ step }) => step);
    assert.deepEqual(names(), ["Start", "Create", "Grow", "AddDisk"]);
    vm = vmWith(withFailed(vm, "Configure", { failure: odd, tried: undefined }));
    assert.deepEqual(names(), ["Create", "Grow", "AddDisk", "Configure"]);
  });

  test("no longer count under another declaration, or when a person asks for another try", () => {
    assert.equal(failedStepsOf(vmWith(started)).length, 1);
    assert.deepEqual(failedStepsOf(vmWith(started, 3)), []);
    assert.deepEqual(failedStepsOf(vmWith(started, 2, "now")), []);
  });

  test("count also after a person took a request away that was answered", () => {
    const vm = vmWith(started);
    vm.status = { ...vm.status, handledReconcileAt: "before" };
    assert.equal(failedStepsOf(vm).length, 1);
  });

  test("are held back where they were refused, and only for exactly the same", () => {
    const vm = vmWith(withFailed(vmWith(started), "AddDisk", { failure: odd, tried: "b" }));
    const heldIn = (step: string, tried: string): HeldStep | undefined => {
      return heldStep(vm, { step, tried }, 0);
    };
    assert.equal(heldIn("Start", "a")?.failed.category, "PermissionDenied");
    assert.equal(heldIn("Start", "c"), undefined);
    assert.notEqual(heldIn("AddDisk", "b")?.isStalled, true, "it is retried");
  });

  test("are held back until a person says something where they failed as often as they may", () => {
    const { nextRetryAt: _never, ...last } = odd;
    const vm = vmWith(withFailed(vmWith([]), "AddDisk", { failure: last, tried: "b" }));
    const { waitMs, isStalled } = heldStep(vm, { step: "AddDisk", tried: "c" }, 0) ?? {};
    assert.deepEqual([waitMs, isStalled], [Infinity, true]);
    assert.equal(heldStep(vm, { step: "Start", tried: "b" }, 0), undefined);
  });

  test("are held back until their time, and never longer than an hour and its spread", () => {
    const [one] = started;
    assert.ok(one !== undefined);
    assert.equal(heldMs(one, 0), 600_000);
    assert.ok(heldMs(one, 600_000) <= 0);
    assert.equal(heldMs(one, -86_400_000), 72 * 60_000, "the clock was set back");
  });

  test("are told again as they were, also when another failure was told meanwhile", () => {
    const [one] = started;
    assert.ok(one !== undefined);
    const vm = vmWith(started);
    const { cause: _cause, ...told } = refused;
    const declaration = declarationDigest(vm);
    assert.deepEqual(failureAgain(vm, one), { ...told, declaration });
    vm.status = { ...vm.status, failure: refused };
    assert.equal(failureAgain(vm, one), refused);
  });
});

describe("steps that failed, in the status", () => {
  const made = { ...vmWith(started), spec: { powerState: "Running" } } as unknown as VirtualMachine;
  const working = { is: "working", reason: "Unlocking", message: "Clear it." } as const;
  const operation = {
    id: "o",
    step: "DestroyPlaceholder",
    intent: "Clear it.",
    attempt: 1,
    since: at,
  };

  test("stay while another step is done, though another failure or none is told", () => {
    const status = statusOf(made, { state: working, operation }, 0);
    assert.equal(status.failure, undefined);
    assert.deepEqual(status.failedSteps, started);
    const failed = { is: "failed", failure: odd, isStalled: false } as const;
    assert.deepEqual(statusOf(made, { state: failed }, 0).failedSteps, started);
  });

  test("go when all is as declared", () => {
    const resting = { is: "resting", drift: [], pending: [], isApplied: true } as const;
    assert.equal(statusOf(made, { state: resting }, 0).failedSteps, undefined);
  });
});

describe("a step that failed is held back", () => {
  const step = "AddDisk";
  const later = { nextRetryAt: formatTime(120_000) };
  const waitOf = (failure: StatusFailure, tried: string, nowMs: number): number | undefined => {
    const vm = vmWith(withFailed(vmWith([]), step, { failure, tried: "a" }));
    return heldStep(vm, { step, tried }, nowMs)?.waitMs;
  };

  test("until its retry, with whatever arguments it is tried", () => {
    const failure = { ...odd, ...later };
    assert.equal(waitOf(failure, "a", 20_000), 100_000);
    assert.equal(waitOf(failure, "b", 20_000), 100_000);
    assert.equal(waitOf(failure, "a", 120_000), undefined);
    assert.equal(heldStep(vmWith(started), { step, tried: "a" }, 0), undefined, "another step");
  });

  test("no longer than it was, where the clock was set back", () => {
    assert.equal(waitOf({ ...odd, ...later }, "a", -3_600_000), 120_000);
  });

  test("only with the same arguments where a person has to mend it", () => {
    const failure = { ...refused, ...later };
    assert.equal(waitOf(failure, "a", 20_000), 100_000);
    assert.equal(waitOf(failure, "b", 20_000), undefined);
  });

  test("for good after its last attempt, until the declaration changes", () => {
    const { nextRetryAt: _nextRetryAt, ...last } = odd;
    assert.equal(waitOf(last, "b", 3_600_000), Infinity);
    const failed = withFailed(vmWith([]), step, { failure: last, tried: "a" });
    assert.equal(heldStep(vmWith(failed), { step, tried: "a" }, 0)?.isStalled, true);
    assert.equal(heldStep(vmWith(failed, 3), { step, tried: "a" }, 0), undefined);
    assert.equal(heldStep(vmWith(failed, 2, "now"), { step, tried: "a" }, 0), undefined);
  });
});
