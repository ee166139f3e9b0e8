import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, type VirtualMachine } from "../../api/index.ts";
import type { Operation, PastTask } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import {
  conflictOf,
  flapOf,
  recentOf,
  reportedFlap,
  withConflict,
  withoutStep,
  withRecent,
  type Flap,
  type RecentStep,
} from "./flapping.ts";
import type { Step, StepName } from "./steps.ts";

const nowMs = Date.parse("2026-11-16T12:00:00Z");
const minuteMs = 60_000;

// The operation of a power step is not looked into.
const operation = { kind: "powerOn" } as unknown as Operation;
const step = (name: StepName): Step => ({ name, operation, intent: name });
/** It belongs to the creation of the VM. */
const firstStart: Step = { ...step("Start"), fields: [] };
const setting = (...fields: string[]): Step => {
  const changed = { kind: "configure", shape: {} } as unknown as Operation;
  return { name: "Configure", operation: changed, intent: "Configure", fields };
};
const disks = (name: "Attach" | "AddDisk", disk: string): Step => {
  const kind = name === "Attach" ? "attach" : "addDisk";
  return { name, operation: { kind, disk: { name: disk } } as unknown as Operation, intent: name };
};
const create = (fields?: readonly string[]): Step => {
  const made = { kind: "create" } as unknown as Operation;
  return { name: "Create", operation: made, intent: "Create", ...(fields ? { fields } : {}) };
};

const bare: VirtualMachine = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "VirtualMachine",
  metadata: { name: "web", namespace: "default", generation: 1 },
  spec: {} as VirtualMachine["spec"],
};

/** The VM after these steps, so many minutes ago. */
function after(steps: readonly (readonly [Step, number])[], vm = bare): VirtualMachine {
  const status: NonNullable<VirtualMachine["status"]> = {};
  const made = { ...vm, status };
  for (const [one, ago] of steps) {
    const at = formatTime(nowMs - ago * minuteMs);
    const recent = withRecent(status.recentSteps ?? [], { vm: made, step: one, at });
    status.recentSteps = [...recent];
  }
  return made;
}

const starts = (...ago: number[]): (readonly [Step, number])[] => {
  return ago.map((minutes) => [step("Start"), minutes] as const);
};

function annotated(vm: VirtualMachine, name: "reconcileAt" | "restartAt"): VirtualMachine {
  const metadata = { ...vm.metadata, annotations: { [annotations[name]]: "now" } };
  return { ...vm, metadata };
}

const edited = (vm: VirtualMachine): VirtualMachine => {
  return { ...vm, metadata: { ...vm.metadata, generation: 2 } };
};

const flaps: readonly (readonly [string, VirtualMachine, Step, boolean])[] = [
  ["three starts within ten minutes", after(starts(9, 5, 1)), step("Start"), true],
  ["two starts", after(starts(5, 1)), step("Start"), false],
  ["three starts, the first of them long ago", after(starts(11, 5, 1)), step("Start"), false],
  [
    "three starts within ten minutes, needed later",
    after(starts(14, 9.5, 4.9)),
    step("Start"),
    true,
  ],
  ["three starts within ten minutes, long ago", after(starts(30, 25, 21)), step("Start"), false],
  [
    "the start that ends the creation, and two that put it right",
    after([[firstStart, 7], ...starts(4, 1)]),
    step("Start"),
    false,
  ],
  ["another step than the three", after(starts(9, 5, 1)), step("Shutdown"), false],
  ["an edit since", edited(after(starts(9, 5, 1))), step("Start"), false],
  [
    "a person who asked for another try since",
    annotated(after(starts(9, 5, 1)), "reconcileAt"),
    step("Start"),
    false,
  ],
  [
    "a person who asked for a restart since",
    annotated(after(starts(9, 5, 1)), "restartAt"),
    step("Start"),
    false,
  ],
  [
    "an orderly restart by force",
    after([
      [step("Shutdown"), 3],
      [step("PowerOff"), 2],
      [step("Start"), 1],
    ]),
    step("Start"),
    false,
  ],
  [
    "both directions of a fight",
    after([
      [step("Start"), 6],
      [step("Shutdown"), 5],
      [step("Start"), 4],
      [step("Shutdown"), 3],
      [step("Start"), 2],
    ]),
    step("Start"),
    true,
  ],
  [
    "one who pauses and stops it in turn",
    after([
      [step("Resume"), 5],
      [step("Start"), 4],
      [step("Resume"), 3],
    ]),
    step("Start"),
    true,
  ],
  [
    "the same setting three times",
    after([5, 4, 3].map((ago) => [setting("tags"), ago] as const)),
    setting("tags"),
    true,
  ],
  [
    "the same setting three times, each time with another one",
    after([
      [setting("tags", "name"), 5],
      [setting("cpu.cores", "tags"), 4],
      [setting("tags", "memory.sizeBytes"), 3],
    ]),
    setting("notes", "tags"),
    true,
  ],
  [
    "three settings, each of them once",
    after([
      [setting("name"), 5],
      [setting("cpu.cores"), 4],
      [setting("memory.sizeBytes"), 3],
    ]),
    setting("name", "cpu.cores", "memory.sizeBytes"),
    false,
  ],
  [
    "switching off for a setting that is changed back",
    after([5, 4, 3].map((ago) => [setting("cpu.cores"), ago] as const)),
    { ...step("Shutdown"), fields: ["cpu.cores"] },
    true,
  ],
  [
    "switching off for another setting",
    after([5, 4, 3].map((ago) => [setting("cpu.cores"), ago] as const)),
    { ...step("Shutdown"), fields: ["cpu.numa"] },
    false,
  ],
  [
    "a disk that is detached again",
    after([5, 4, 3].map((ago) => [disks("Attach", "data"), ago] as const)),
    disks("Attach", "data"),
    true,
  ],
  [
    "another disk",
    after([5, 4, 3].map((ago) => [disks("Attach", "data"), ago] as const)),
    disks("Attach", "logs"),
    false,
  ],
  [
    "a VM that is deleted again",
    after([5, 4, 3].map((ago) => [create(["onMissing"]), ago] as const)),
    create(["onMissing"]),
    true,
  ],
  [
    "a VM that never existed",
    after([5, 4, 3].map((ago) => [create(), ago] as const)),
    create(),
    false,
  ],
  [
    "starts of a VM that was created again each time",
    after([9, 7, 5].flatMap((ago) => [[create(["onMissing"]), ago] as const, ...starts(ago - 1)])),
    step("Start"),
    false,
  ],
  ["a clock that was set back by an hour", after(starts(-60, -61, -62)), step("Start"), false],
  [
    "a step that nobody can undo",
    after([5, 4, 3].map((ago) => [disks("AddDisk", "data"), ago] as const)),
    disks("AddDisk", "data"),
    false,
  ],
];

describe("whether somebody keeps undoing what Berth does", () => {
  for (const [says, vm, next, isFlapping] of flaps) {
    it(`${says}: ${isFlapping ? "yes" : "no"}`, () => {
      assert.equal(flapOf(vm, next, nowMs) !== undefined, isFlapping);
    });
  }

  it("keeps three times of each of sixteen fields at most, the newest", () => {
    const ago = Array.from({ length: 20 }, (_, i) => 20 - i);
    const [one, ...others] = after(starts(...ago)).status?.recentSteps ?? [];
    assert.deepEqual(others, []);
    assert.deepEqual(
      one?.times,
      [3, 2, 1].map((minutes) => formatTime(nowMs - minutes * minuteMs)),
    );
    const fields = Array.from({ length: 20 }, (_, i) => `disks[d${i}].cache`);
    const kept = after(fields.map((field) => [setting(field), 1] as const)).status?.recentSteps;
    assert.deepEqual(
      kept?.map(({ field }) => field),
      fields.slice(4),
    );
    const atOnce = after([[setting(...fields), 1]]).status?.recentSteps ?? [];
    assert.equal(atOnce.length, 16);
  });

  it("does not count a step that had no effect", () => {
    const recentOfStarts = (...ago: number[]): readonly RecentStep[] => {
      return after(starts(...ago)).status?.recentSteps ?? [];
    };
    const recent = recentOfStarts(9, 5, 1);
    const since = formatTime(nowMs - 5 * minuteMs);
    assert.equal(withoutStep(recent, { step: "Start", since })[0]?.times.length, 2);
    assert.deepEqual(withoutStep(recent, { step: "Shutdown", since }), recent);
    const [only] = recentOfStarts(1);
    assert.deepEqual(
      only && withoutStep([only], { step: "Start", since: only.times[0] ?? "" }),
      [],
    );
  });

  it("stays a conflict until the declaration changes, or all is as declared", () => {
    const vm = after(starts(9, 5, 1));
    const flap = flapOf(vm, step("Start"), nowMs);
    assert.ok(flap !== undefined);
    const recentSteps = [...withConflict(vm.status?.recentSteps ?? [], flap)];
    const told = { ...vm, status: { ...vm.status, recentSteps } };
    assert.deepEqual(reportedFlap(told), flap);
    assert.equal(reportedFlap(edited(told)), undefined);
    assert.equal(reportedFlap(annotated(told, "reconcileAt")), undefined);
    assert.equal(reportedFlap(vm), undefined);
    assert.deepEqual(recentOf(recentSteps, true), vm.status?.recentSteps);
    assert.deepEqual(recentOf(recentSteps, false), recentSteps);
  });
});

const flapped = (name: string, ...fields: string[]): Flap => {
  return { step: name, fields, sinceMs: nowMs - 9 * minuteMs };
};
const starting = flapped("Start", "powerState");

const task = (does: PastTask["does"], user = "eve@pam", isOurs = false): PastTask => {
  return { does, user, isOurs, sinceMs: nowMs };
};

describe("who the other is", () => {
  const vm = after(starts(9, 5, 1));

  it("is named where its tasks undo the step", () => {
    const past = [task("Stop"), task("Stop"), task("Start", "berth", true)];
    const failure = conflictOf(vm, starting, past);
    assert.equal(failure?.category, "ConflictingController");
    assert.match(failure.message, /^The user eve@pam of the hypervisor keeps changing the power/);
    assert.match(failure.remedy ?? "", /berth retry vm\/web -n default/);
  });

  it("is nobody where no task undid it: the guest does so itself", () => {
    assert.equal(conflictOf(vm, starting, [task("Start", "berth", true)]), undefined);
    assert.equal(conflictOf(vm, starting, [task("Migrate")]), undefined);
  });

  it("is somebody where the hypervisor cannot tell", () => {
    assert.match(conflictOf(vm, starting, undefined)?.message ?? "", /^Somebody keeps/);
  });

  it("may have the same credentials, if this object did not ask for that work", () => {
    const past = [task("Stop", "berth", true)];
    assert.match(conflictOf(vm, starting, past)?.message ?? "", /^The user berth /);
    const own = after([[step("Shutdown"), 4], ...starts(3, 2, 1)]);
    assert.equal(conflictOf(own, starting, past), undefined);
  });

  const messages: readonly (readonly [Flap, readonly PastTask[] | undefined, RegExp])[] = [
    [flapped("Configure", "tags"), [], /^Somebody keeps changing spec\.tags .* not record who/],
    [flapped("Configure", "tags"), [task("Configure")], /^The user eve@pam .* needed again\.$/],
    [flapped("Configure", "tags"), [task("Restore")], /^The user eve@pam/],
    [flapped("Configure", "tags"), undefined, /This hypervisor does not record who/],
    [flapped("Attach", "disks[data]"), [], /keeps detaching spec\.disks\[data\] of this VM:/],
    [flapped("Migrate", "placement"), [task("Migrate")], /^The user eve@pam .*spec\.placement/],
    [flapped("Migrate", "placement"), [task("Migrate", "berth", true)], /shows no other user/],
    [flapped("Create", "onMissing"), [task("Destroy")], /^The user eve@pam .* deleting this VM:/],
    [flapped("Grow", "disks[data].size"), [task("Restore")], /^The user eve@pam/],
    [flapped("MoveDisk", "disks[data].storage"), [task("MoveDisk")], /^The user eve@pam/],
  ];
  for (const [flap, past, says] of messages) {
    it(`is told of ${flap.step}: ${String(says)}`, () => {
      assert.match(conflictOf(vm, flap, past)?.message ?? "", says);
    });
  }
});
