import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { StatusFailure } from "../failures/index.ts";
import {
  digestOf,
  failedBefore,
  failedStepsOf,
  failureAgain,
  heldMs,
  refusalOf,
  withFailed,
  type FailedStep,
} from "./failed-steps.ts";
import { statusOf } from "./status.ts";

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

  test("are held back where they were refused, and only for exactly the same", () => {
    const vm = vmWith(withFailed(vmWith(started), "AddDisk", { failure: odd, tried: "b" }));
    assert.equal(refusalOf(vm, { step: "Start", tried: "a" })?.category, "PermissionDenied");
    assert.equal(refusalOf(vm, { step: "Start", tried: "c" }), undefined);
    assert.equal(refusalOf(vm, { step: "AddDisk", tried: "b" }), undefined, "it is retried");
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
    assert.deepEqual(failureAgain(vm, one), told);
    vm.status = { ...vm.status, failure: refused };
    assert.equal(failureAgain(vm, one), refused);
  });
});

describe("steps that failed, in the status", () => {
  const made = { ...vmWith(started), spec: { powerState: "Running" } } as unknown as VirtualMachine;
  const working = { is: "working", reason: "Unlocking", message: "Clear it." } as const;
  const operation = { id: "o", step: "ClearHusk", intent: "Clear it.", attempt: 1, since: at };

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

describe("the digest of what is done", () => {
  const claim = { externalId: "100", state: "Reserved" };
  const basis = { node: "pve1", version: "1" };
  const operation = { kind: "power", claim, at: basis, to: "Start" };
  const digest = (change: object): string => digestOf({ ...operation, ...change } as never);

  test("is the same when only the machine's version or its Claim's state is another", () => {
    const later = { at: { ...basis, version: "2" }, claim: { ...claim, state: "Bound" } };
    assert.equal(digest({}), digest(later));
  });

  test("is another when something else is to be done, or to another machine, or elsewhere", () => {
    assert.notEqual(digest({}), digest({ to: "PowerOff" }));
    assert.notEqual(digest({}), digest({ claim: { ...claim, externalId: "101" } }));
    assert.notEqual(digest({}), digest({ at: { ...basis, node: "pve2" } }));
  });
});
