import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createMetrics } from "../../runtime/index.ts";
import { operationMetrics } from "./operation-metrics.ts";
import { createReports, type FailureFacts, type Reports } from "./reports.ts";

const vm: KubeObject = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "VirtualMachine",
  metadata: { namespace: "default", name: "a" },
  status: { hypervisor: "pve" },
};
const operation = { id: "1", step: "Create", intent: "Make the machine 100.", attempt: 1 };

interface Desk {
  readonly clock: VirtualClock;
  readonly reports: Reports;
  readonly events: string[];
  readonly log: [string, string, object][];
  readonly text: () => Promise<string>;
}

function open(): Desk {
  const clock = new VirtualClock();
  const metrics = createMetrics();
  const events: string[] = [];
  const log: Desk["log"] = [];
  const reports = createReports({
    clock,
    events: {
      event: (_, { type, reason, message }) => void events.push(`${type} ${reason} ${message}`),
      stop: async () => undefined,
    },
    log: (...line) => void log.push(line),
    metrics: operationMetrics(metrics),
  });
  return { clock, reports, events, log, text: () => metrics.text() };
}

function facts(changes: Partial<FailureFacts>): FailureFacts {
  return { attempts: 1, isNew: false, isStalled: false, wasStalled: false, ...changes };
}

const failure = { category: "CreationFailed", message: "The task failed." } as const;

describe("reports", () => {
  test("an operation is two Events, two lines of log and one duration", async () => {
    const { clock, reports, events, log, text } = open();
    reports.opened(operation);
    reports.operated(vm, { ...operation, task: "UPID:1" }, "task");
    clock.advance(2_000);
    reports.operated(vm, { ...operation, task: "UPID:1" }, "succeeded");
    assert.deepEqual(events, [
      "Normal CreateStarted Make the machine 100. (task UPID:1)",
      "Normal CreateDone Done: Make the machine 100.",
    ]);
    assert.deepEqual(log[1], [
      "info",
      "a step has ended",
      {
        object: "VirtualMachine default/a",
        hypervisor: "pve",
        operation: "1",
        step: "Create",
        attempt: 1,
        task: "UPID:1",
        outcome: "succeeded",
      },
    ]);
    const metrics = await text();
    assert.match(
      metrics,
      /operations_total\{kind="VirtualMachine",step="Create",outcome="done"\} 1/,
    );
    assert.match(metrics, /operation_seconds_sum\{kind="VirtualMachine",step="Create"\} 2$/m);
  });

  test("a lost reply is told, and its time goes on until what became of it is known", async () => {
    const { clock, reports, events, text } = open();
    reports.opened(operation);
    reports.operated(vm, operation, "unknown");
    assert.match(events[0] ?? "", /^Warning UnknownOutcome The reply was lost/);
    clock.advance(3_000);
    reports.operated(vm, operation, "succeeded");
    const metrics = await text();
    assert.match(metrics, /outcome="unknown"\} 1/);
    assert.match(metrics, /operation_seconds_count\{[^}]*\} 1$/m);
    assert.match(metrics, /operation_seconds_sum\{[^}]*\} 3$/m);
  });

  test("what was begun by an earlier process is counted, without a duration", async () => {
    const { reports, text } = open();
    reports.operated(vm, operation, "failed");
    const metrics = await text();
    assert.match(metrics, /outcome="failed"\} 1/);
    assert.doesNotMatch(metrics, /operation_seconds_count/);
  });

  test("a refused step that is tried again is told, and not as given up", () => {
    const { reports, events } = open();
    const refused = { category: "PermissionDenied", message: "It may not." } as const;
    reports.failed(vm, refused, facts({ step: "Start", attempts: 2, isStalled: true }));
    assert.deepEqual(events, ["Warning PermissionDenied It may not."]);
  });

  test("every failed attempt raises a count, and the stall at the end is one Event more", async () => {
    const { reports, events, text } = open();
    const step = "Create";
    reports.failed(vm, failure, facts({ step, isNew: true, retryInMs: 30_000 }));
    for (const attempts of [2, 3, 4]) {
      reports.failed(vm, failure, facts({ step, attempts, retryInMs: 60_000 }));
    }
    reports.failed(vm, failure, facts({ step, attempts: 5, isStalled: true }));
    const attempt = "Warning CreationFailed The task failed.";
    assert.deepEqual(events.slice(0, 5), Array(5).fill(attempt));
    assert.match(events[5] ?? "", /^Warning Stalled CreationFailed 5 times in a row/);
    assert.equal(events.length, 6);
    const metrics = await text();
    assert.match(metrics, /retries_total\{kind="VirtualMachine",category="CreationFailed"\} 4/);
    assert.match(metrics, /failures_total\{kind="VirtualMachine",category="CreationFailed"\} 5/);
  });

  test("an attempt that ends before its first step counts as well, and looking does not", async () => {
    const { reports, events, text } = open();
    const down = { category: "NodeUnhealthy", message: "No node." } as const;
    reports.failed(vm, down, facts({ isNew: true, retryInMs: 30_000 }));
    for (const attempts of [2, 3]) {
      reports.failed(vm, down, facts({ attempts, retryInMs: 60_000 }));
    }
    const lost = { category: "UnknownOutcome", message: "No reply." } as const;
    reports.failed(vm, lost, facts({ isNew: true, retryInMs: 1_000 }));
    reports.failed(vm, lost, facts({ attempts: 2, retryInMs: 2_000 }));
    const [attempt, look] = ["Warning NodeUnhealthy No node.", "Warning UnknownOutcome No reply."];
    assert.deepEqual(events, [attempt, attempt, attempt, look]);
    assert.match(
      await text(),
      /failures_total\{kind="VirtualMachine",category="NodeUnhealthy"\} 3/,
    );
  });

  test("the line of a failure names its work, our sentence and the hypervisor's words", () => {
    const { reports, log } = open();
    const refused = { ...failure, cause: "storage 'tank' is not online" };
    const work = { step: "Create", operation: { id: "7", task: "UPID:7" } };
    reports.failed(vm, refused, facts({ ...work, isNew: true, retryInMs: 30_000 }));
    reports.failed(vm, refused, facts({ ...work, attempts: 5, isStalled: true }));
    const named = {
      object: "VirtualMachine default/a",
      hypervisor: "pve",
      category: "CreationFailed",
      operation: "7",
      step: "Create",
      task: "UPID:7",
      detail: "The task failed.",
      cause: "storage 'tank' is not online",
    };
    assert.deepEqual(log, [
      ["warn", "has failed", { ...named, attempts: 1, retryInMs: 30_000 }],
      ["warn", "stalls", { ...named, attempts: 5, retryInMs: undefined }],
    ]);
  });

  test("the hypervisor is named before the status does, and where only the work knows it", () => {
    const { reports, log } = open();
    const { status: _, ...unplaced } = vm;
    const declared = { ...unplaced, spec: { hypervisorRef: { name: "lab" } } };
    reports.failed(declared, failure, facts({ isNew: true }));
    const source = { volume: { hypervisorRef: { name: "lab" } } };
    const image = { ...unplaced, kind: "VMImage", spec: { source } };
    reports.failed(image, failure, facts({ isNew: true }));
    reports.failed(unplaced, failure, facts({ isNew: true, hypervisor: "lab" }));
    const named = log.map(([, , about]) => "hypervisor" in about && about.hypervisor);
    assert.deepEqual(named, ["lab", "lab", "lab"]);
  });

  test("a wait that begins is one Event and one line, and no failure", async () => {
    const { reports, events, log, text } = open();
    const message = "Waits for the lock: backup.";
    reports.waits(vm, { for: "Lock", reason: "Waiting", message });
    assert.deepEqual(events, [`Normal Waiting ${message}`]);
    const about = { object: "VirtualMachine default/a", hypervisor: "pve" };
    assert.deepEqual(log, [["info", "waits", { ...about, for: "Lock", detail: message }]]);
    assert.doesNotMatch(await text(), /failures_total\{/);
  });

  test("a failure that stalls at once is one Event, and looking again is none", () => {
    const { reports, events } = open();
    reports.failed(vm, failure, facts({ isNew: true, isStalled: true }));
    reports.failed(vm, failure, facts({ isStalled: true, wasStalled: true }));
    assert.equal(events.length, 1);
  });

  test("something that is waited for is told when the wait begins, and not at every look", () => {
    const { reports, events } = open();
    const missing = { category: "DependencyNotReady", message: "No image." } as const;
    reports.failed(vm, missing, facts({ isNew: true }));
    for (let looks = 0; looks < 5; looks++) reports.failed(vm, missing, facts({}));
    assert.deepEqual(events, ["Warning DependencyNotReady No image."]);
  });

  test("what is on its way is no Warning and no failure; what fails on its way is", async () => {
    const { reports, events, log, text } = open();
    const message = "The image is being looked for.";
    const coming = { category: "DependencyNotReady", message, isUnderWay: true } as const;
    reports.failed(vm, coming, facts({ isNew: true }));
    reports.failed(vm, coming, facts({}));
    assert.deepEqual(events, [`Normal DependencyNotReady ${message}`]);
    assert.deepEqual(
      log.map(([level]) => level),
      ["info"],
    );
    assert.doesNotMatch(await text(), /failures_total\{/);
    const missing = { category: "DependencyNotReady", message: "No image." } as const;
    reports.failed(vm, missing, facts({ isNew: true }));
    assert.equal(events[1], "Warning DependencyNotReady No image.");
  });

  test("becoming Ready, ceasing to be, and another reason are told; the same is not", () => {
    const { reports, events } = open();
    const of = (status: string, reason: string): KubeObject => ({
      ...vm,
      status: { conditions: [{ type: "Ready", status, reason, message: `${reason}.` }] },
    });
    reports.became(of("True", "Connected"), vm);
    reports.became(of("True", "Connected"), of("True", "Connected"));
    reports.became(of("False", "NetworkError"), of("True", "Connected"));
    reports.became(of("False", "PermissionDenied"), of("False", "NetworkError"));
    assert.deepEqual(events, [
      "Normal Connected Connected.",
      "Warning NetworkError NetworkError.",
      "Warning PermissionDenied PermissionDenied.",
    ]);
  });
});
