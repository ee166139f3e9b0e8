import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { jsonEqual } from "../kernel/json.ts";
import type { Condition, KubeObject } from "../kernel/object.ts";
import { removeCondition, sameStatus, setCondition, writeStatus } from "./conditions.ts";

const ready: Condition = {
  type: "Ready",
  status: "True",
  reason: "Succeeded",
  message: "",
  lastTransitionTime: "2026-01-01T00:00:00Z",
  observedGeneration: 1,
};
const running: Condition = { ...ready, type: "Running" };
const moment = { nowMs: Date.UTC(2026, 0, 2), observedGeneration: 1 };

describe("setting a condition", () => {
  test("appends a new one with the time of now", () => {
    const { lastTransitionTime: _time, observedGeneration: _generation, ...state } = ready;
    assert.deepEqual(setCondition([running], state, moment), [
      running,
      { ...ready, lastTransitionTime: "2026-01-02T00:00:00Z" },
    ]);
  });

  const cases = [
    { change: { reason: "Drifted" }, time: "2026-01-01T00:00:00Z" },
    { change: { message: "news" }, time: "2026-01-01T00:00:00Z" },
    { change: { status: "False" as const }, time: "2026-01-02T00:00:00Z" },
    { change: { status: "Unknown" as const, reason: "X" }, time: "2026-01-02T00:00:00Z" },
  ];
  for (const { change, time } of cases) {
    test(`keeps its place, with ${JSON.stringify(change)} the time ${time}`, () => {
      const next = setCondition([ready, running], { ...ready, ...change }, moment);
      assert.deepEqual(next, [{ ...ready, ...change, lastTransitionTime: time }, running]);
    });
  }

  test("notes the generation that was seen, without a transition", () => {
    const [next] = setCondition([ready], ready, { ...moment, observedGeneration: 2 });
    assert.deepEqual(next, { ...ready, observedGeneration: 2 });
  });

  test("returns the very same list if nothing changes", () => {
    const list = [ready, running];
    assert.equal(setCondition(list, ready, moment), list);
    assert.equal(removeCondition(list, "Stalled"), list);
  });

  test("refuses a reason that the API would refuse", () => {
    assert.throws(() => setCondition([], { ...ready, reason: "not ready" }, moment), /a reason/);
    assert.throws(() => setCondition([], { ...ready, reason: "" }, moment), /a reason/);
  });
});

test("removing a condition leaves the others", () => {
  assert.deepEqual(removeCondition([ready, running], "Ready"), [running]);
});

describe("writing a status", () => {
  const object: KubeObject = {
    apiVersion: "berth.dev/v1",
    kind: "Widget",
    metadata: { name: "a", resourceVersion: "7" },
    status: { conditions: [ready], node: "pve1" },
  };
  const recorded = (): { writes: KubeObject[]; objects: Parameters<typeof writeStatus>[0] } => {
    const writes: KubeObject[] = [];
    const updateStatus = async (next: KubeObject): Promise<KubeObject> => {
      writes.push(next);
      return next;
    };
    return { writes, objects: { updateStatus } };
  };

  test("does not happen where it says nothing new", async () => {
    const { writes, objects } = recorded();
    const same = { node: "pve1", address: undefined, conditions: [{ ...ready }] };
    assert.equal(await writeStatus(objects, object, same), object);
    assert.deepEqual(writes, []);
  });

  test("carries the version that was read", async () => {
    const { writes, objects } = recorded();
    await writeStatus(objects, object, { node: "pve2" });
    assert.deepEqual(writes, [{ ...object, status: { node: "pve2" } }]);
  });

  test("is refused for an object that nobody read", async () => {
    const { objects } = recorded();
    const fresh = { ...object, metadata: { name: "a" } };
    await assert.rejects(writeStatus(objects, fresh, {}), /an object that was read/);
  });

  test("tells no status from an empty one", () => {
    assert.equal(sameStatus(undefined, undefined), true);
    assert.equal(sameStatus(undefined, {}), false);
    assert.equal(sameStatus([1, 2], [2, 1]), false);
  });

  test("compares what would be written", () => {
    const scalar = fc.constantFrom(undefined, null, 0, 1, "", "a", true);
    const { status } = fc.letrec((tie) => ({
      status: fc.oneof(
        { maxDepth: 3 },
        scalar,
        fc.array(tie("status"), { maxLength: 2 }),
        fc.dictionary(fc.constantFrom("a", "b"), tie("status"), { noNullPrototype: true }),
      ),
    }));
    const written = (value: unknown): unknown => JSON.parse(JSON.stringify({ value }));
    const property = fc.property(status, status, (left, right) => {
      const isSame = jsonEqual(written(left), written(right));
      assert.equal(sameStatus({ value: left }, { value: right }), isSame);
    });
    fc.assert(property, { numRuns: 500 });
  });
});
