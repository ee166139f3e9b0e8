import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { Unready } from "./unready.ts";

const at = (minute: number): string => `2026-01-02T03:${String(minute).padStart(2, "0")}:00Z`;

function machine(status: string | undefined, minute = 0, uid = "u"): KubeObject {
  const lastTransitionTime = at(minute);
  const ready = { type: "Ready", status, reason: "Some", message: "", lastTransitionTime };
  const conditions = status === undefined ? [] : [ready];
  const metadata = { name: "a", uid, creationTimestamp: at(0) };
  return { apiVersion: "v1", kind: "VirtualMachine", metadata, status: { conditions } };
}

describe("the time that an object is not Ready", () => {
  test("goes on while it is False at one time and Unknown at another", () => {
    const unready = new Unready();
    const [away, back] = [machine("Unknown", 20), machine("False", 25)];
    assert.equal(unready.changed(machine("False", 5), machine("True", 1)), undefined);
    assert.equal(unready.changed(away, machine("False", 5)), undefined);
    assert.equal(unready.of(away)?.since, at(5));
    assert.equal(unready.changed(back, away), undefined);
    assert.equal(unready.of(back)?.since, at(5));
    assert.equal(unready.changed(machine("True", 30), back), 25 * 60);
    assert.equal(unready.of(machine("True", 30)), undefined);
    assert.equal(unready.changed(machine("False", 40), machine("True", 30)), undefined);
    assert.equal(unready.of(machine("False", 40))?.since, at(40), "the next time begins anew");
  });

  test("of a new one is counted from when it was declared", () => {
    const unready = new Unready();
    assert.equal(unready.changed(machine("False", 2), machine(undefined)), undefined);
    assert.equal(unready.of(machine("False", 2))?.since, at(0));
    assert.equal(unready.changed(machine("True", 3), machine("False", 2)), 180);
  });

  test("of one that is gone is forgotten, also where another has its name", () => {
    const unready = new Unready();
    unready.changed(machine("Unknown", 9), machine("False", 3));
    unready.gone(machine("Unknown", 9));
    assert.equal(unready.of(machine("False", 12))?.since, at(12));
    unready.changed(machine("Unknown", 9), machine("False", 3));
    assert.equal(unready.of(machine("False", 12, "other"))?.since, at(12));
  });
});
