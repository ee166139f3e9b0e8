import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { fieldErrorMessage } from "../../kernel/status.ts";
import { eventResource } from "./event.ts";

const native = eventResource.native;
assert(native?.prepare && native.validate && native.cells);
const { prepare, validate, cells } = native;

function event(namespace: string, fields: object): KubeObject {
  const involvedObject = { kind: "VirtualMachine", name: "web", namespace: "prod" };
  const metadata = { name: "web.1", namespace };
  return { apiVersion: "v1", kind: "Event", metadata, involvedObject, ...fields };
}

function problems(object: KubeObject): string[] {
  const errors = validate(prepare(object, undefined), undefined);
  return errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`);
}

const elsewhere = (namespace: string): string[] => [
  `involvedObject.namespace: Invalid value: "${namespace}": does not match event.namespace`,
];

describe("an Event of the older form", () => {
  test("lies in the namespace of its object", () => {
    assert.deepEqual(problems(event("prod", {})), []);
    assert.deepEqual(problems(event("default", {})), elsewhere("prod"));
  });

  test("lies in default if its object is cluster-wide", () => {
    const involvedObject = { kind: "Hypervisor", name: "pve" };
    assert.deepEqual(problems(event("default", { involvedObject })), []);
    assert.deepEqual(problems(event("prod", { involvedObject })), elsewhere(""));
    assert.deepEqual(problems(event("kube-system", { involvedObject })), elsewhere(""));
  });

  test("is told by an eventTime of null, as Go clients send it", () => {
    assert.deepEqual(problems(event("prod", { eventTime: null, firstTimestamp: null })), []);
  });
});

describe("an Event of the newer form", () => {
  const complete = {
    eventTime: "1970-01-01T00:00:10.000000Z",
    reportingComponent: "berth.dev/vm-controller",
    reportingInstance: "one",
    action: "Create",
    reason: "Created",
  };

  test("may lie elsewhere than its object, but says who reports it", () => {
    assert.deepEqual(problems(event("other", complete)), []);
    assert.deepEqual(problems(event("prod", { eventTime: complete.eventTime })), [
      "reportingComponent: Required value",
      "reportingInstance: Required value",
      "action: Required value",
      "reason: Required value",
    ]);
  });

  test("of a cluster-wide object lies in default or kube-system", () => {
    const involvedObject = { kind: "Hypervisor", name: "pve" };
    assert.deepEqual(problems(event("kube-system", { ...complete, involvedObject })), []);
    assert.deepEqual(problems(event("prod", { ...complete, involvedObject })), elsewhere(""));
  });

  test("has bounds on its texts", () => {
    const long = { action: "a".repeat(129), message: "m".repeat(1025) };
    assert.deepEqual(problems(event("prod", { ...complete, ...long })), [
      'action: Invalid value: "": can have at most 128 characters',
      'message: Invalid value: "": can have at most 1024 characters',
    ]);
    const found = problems(event("prod", { ...complete, reportingComponent: "a/b/c" }));
    assert.match(found.join(), /^reportingComponent: Invalid value: "a\/b\/c": a qualified name/);
  });
});

describe("the row of an Event", () => {
  const common = { type: "Warning", reason: "LockError", message: " locked\n" };

  test("shows when it was first and last seen, as older clients say it", () => {
    const older = {
      ...common,
      firstTimestamp: "1970-01-01T00:00:00Z",
      lastTimestamp: "1970-01-01T00:00:50Z",
      count: 4,
      source: { component: "berth", host: "a" },
    };
    assert.deepEqual(cells(event("prod", older), 60_000), [
      "10s",
      "Warning",
      "LockError",
      "virtualmachine/web",
      "",
      "berth, a",
      "locked",
      "60s",
      4,
      "web.1",
    ]);
  });

  test("shows the same as newer clients say it", () => {
    const newer = { ...common, eventTime: "1970-01-01T00:00:00.000000Z", reportingComponent: "b" };
    assert.deepEqual(cells(event("prod", newer), 60_000), [
      "60s",
      "Warning",
      "LockError",
      "virtualmachine/web",
      "",
      "b",
      "locked",
      "60s",
      1,
      "web.1",
    ]);
    const series = { count: 7, lastObservedTime: "1970-01-01T00:00:55.000000Z" };
    const row = cells(event("prod", { ...newer, series }), 60_000);
    assert.deepEqual([row[0], row[8]], ["5s", 7]);
  });

  test("has a cell for every column, and its name in the one for names", () => {
    const row = cells(event("prod", { involvedObject: {} }), 0);
    assert.equal(row.length, eventResource.columns.length);
    const nameColumn = eventResource.columns.findIndex((column) => column.format === "name");
    assert.equal(row[nameColumn], "web.1");
  });
});
