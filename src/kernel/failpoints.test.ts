import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Failpoints, failpointTable, parseFailpoints } from "./failpoints.ts";

describe("failpoints are read", () => {
  test("with a name alone, a visit, an order, and several at once", () => {
    assert.deepEqual(parseFailpoints("before-effect"), [
      { name: "before-effect", visit: 1, order: { do: "kill" } },
    ]);
    assert.deepEqual(parseFailpoints(" after-flush@3=error , before-lease=delay:250 "), [
      { name: "after-flush", visit: 3, order: { do: "error" } },
      { name: "before-lease", visit: 1, order: { do: "delay", delayMs: 250 } },
    ]);
    assert.deepEqual(parseFailpoints(""), []);
  });

  test("and refused with the whole list where there is no such point", () => {
    for (const text of ["before-efect", "before-effect@0", "toString", "before-effect@1@2"]) {
      assert.throws(() => parseFailpoints(text), /there is no failpoint ".*after-checkpoint/, text);
    }
    for (const text of ["before-lease=explode", "before-lease=delay:999999"]) {
      assert.throws(() => parseFailpoints(text), /no order that is known/, text);
    }
  });

  test("by every name in the table", () => {
    for (const name of Object.keys(failpointTable)) {
      assert.equal(parseFailpoints(`${name}@2`)[0]?.name, name);
    }
  });
});

describe("a failpoint", () => {
  test("strikes at its visit, once, and leaves the others alone", () => {
    const points = new Failpoints(parseFailpoints("after-effect@2"));
    assert.equal(points.visit("after-effect"), undefined);
    assert.equal(points.visit("before-effect"), undefined);
    assert.deepEqual(points.visit("after-effect"), { do: "kill" });
  });

  test("counts from the moment on that it is switched on", () => {
    const state = { isOn: false };
    const points = new Failpoints(parseFailpoints("after-effect=error"), () => state.isOn);
    assert.equal(points.visit("after-effect"), undefined);
    state.isOn = true;
    assert.deepEqual(points.visit("after-effect"), { do: "error" });
    assert.equal(points.visit("after-effect"), undefined);
  });
});
