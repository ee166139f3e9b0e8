import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import type { Happening } from "../objects/events.ts";
import { timelineRows, type TimelineParts } from "./timeline.ts";

const at = "2026-01-02T03:04:05Z";
const nowMs = Date.parse(at) + 60_000;

function event(reason: string, more: Partial<Happening> = {}): Happening {
  const type = "Normal";
  return { type, reason, message: "", from: "", count: 1, firstAt: at, lastAt: at, ...more };
}

function object(status: object): KubeObject {
  const metadata = { name: "web", creationTimestamp: at };
  return { apiVersion: "berth.dev/v1alpha1", kind: "VirtualMachine", metadata, status };
}

function reasons(parts: TimelineParts): string[] {
  return timelineRows(parts, nowMs).map(([, , reason]) => reason);
}

describe("a timeline within one second", () => {
  test("tells causes before what follows from them", () => {
    const types = ["AgentReady", "Running", "Provisioned"];
    const conditions = types.map((type) => ({ type, status: "True", lastTransitionTime: at }));
    const spec = { externalId: "100", reservedAt: at, boundAt: at };
    const claim = { kind: "Claim", metadata: { name: "c" }, spec } as never;
    const told = ["Reserved", "CreateStarted", "CreateDone", "AddDiskDone", "StartDone"];
    const events = [...told, "Succeeded"].map((reason) => event(reason));
    assert.deepEqual(reasons({ object: object({ conditions }), events, claim }), [
      "Declared",
      "Reserved",
      "Claimed",
      "CreateStarted",
      "CreateDone",
      "Claimed",
      "AddDiskDone",
      "Provisioned",
      "StartDone",
      "Running",
      "Succeeded",
      "AgentReady",
    ]);
  });

  test("tells a failure and an open operation once, by their Events if there are any", () => {
    const failure = {
      category: "NodeUnhealthy",
      message: "No.",
      attempts: 2,
      firstAt: at,
      lastAt: at,
    };
    const operation = { step: "Create", intent: "Make it.", since: at, task: "UPID:1" };
    const started = event("CreateStarted", { message: "Make it. (task UPID:1)" });
    const parts = { object: object({ failure, operation }) };
    assert.deepEqual(reasons({ ...parts, events: [] }), ["Declared", "Create", "Failed"]);
    const all = [started, event("NodeUnhealthy", { count: 2 })];
    assert.deepEqual(reasons({ ...parts, events: all }), [
      "Declared",
      "CreateStarted",
      "NodeUnhealthy",
    ]);
    const older = [event("NodeUnhealthy", { count: 1, lastAt: "2026-01-02T03:00:00Z" })];
    assert.deepEqual(
      reasons({ ...parts, events: older }),
      ["NodeUnhealthy", "Declared", "Create", "Failed"],
      "an Event that missed an attempt does not hide it",
    );
  });
});
