import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "../../kernel/json.ts";
import { chooseObjects } from "./choose-objects.ts";

function machine(name: string, status: JsonObject, metadata: JsonObject = {}): JsonObject {
  return { kind: "VirtualMachine", metadata: { name, ...metadata }, status };
}

function ready(status: string): JsonObject {
  return { conditions: [{ type: "Ready", status }] };
}

function namesOf(objects: readonly JsonObject[]): string[] {
  return objects.map(({ metadata }) => (metadata as { name: string }).name);
}

describe("the objects of a bundle", () => {
  test("are those in trouble first, however many stand well", () => {
    const well = Array.from({ length: 5_000 }, (_, i) => machine(`well-${i}`, ready("True")));
    const amiss = [
      machine("not-ready", ready("False")),
      machine("unreachable", ready("Unknown")),
      machine("failing", { ...ready("True"), failure: { category: "LockError" } }),
      machine("under-way", { ...ready("True"), operation: { step: "Grow" } }),
      machine("going", ready("True"), { deletionTimestamp: "2026-01-02T03:04:05Z" }),
    ];
    const chosen = chooseObjects([...well, ...amiss]);
    assert.equal(chosen.length, 2_000);
    assert.deepEqual(namesOf(chosen).slice(0, 6), [...namesOf(amiss), "well-0"]);
  });

  test("are of Events the warnings and then the newest", () => {
    const event = (name: string, minute: number, type = "Normal"): JsonObject => {
      const lastTimestamp = `2026-01-02T03:0${minute}:00Z`;
      return { kind: "Event", metadata: { name }, type, lastTimestamp };
    };
    const events = [event("old", 1), event("new", 3), event("bad", 0, "Warning")];
    assert.deepEqual(namesOf(chooseObjects(events)), ["bad", "new", "old"]);
  });

  test("are no more than somebody can be sent", () => {
    const large = { note: "x".repeat(1024 * 1024) };
    const objects = Array.from({ length: 100 }, (_, i) => machine(`m-${i}`, large));
    assert.equal(chooseObjects(objects).length, 7);
  });
});
