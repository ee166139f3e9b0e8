import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { isJsonObject, jsonEqual, type JsonObject } from "../../kernel/json.ts";
import { applyMergePatch } from "../../kernel/merge-patch.ts";
import { lastApplied, lastAppliedOf, threeWayPatch, withLastApplied } from "./three-way.ts";

describe("the memory of what was applied", () => {
  test("is written byte for byte as kubectl writes it", () => {
    const manifest = {
      kind: "ConfigMap",
      apiVersion: "v1",
      metadata: { namespace: "default", name: "k" },
      data: { "9": "b", "10": "1 < 2 & 3", a: "\u2028" },
    };
    const { metadata } = withLastApplied(manifest);
    assert.ok(isJsonObject(metadata) && isJsonObject(metadata["annotations"]));
    assert.equal(
      metadata["annotations"][lastApplied],
      '{"apiVersion":"v1","data":{"10":"1 \\u003c 2 \\u0026 3","9":"b","a":"\\u2028"},' +
        '"kind":"ConfigMap","metadata":{"annotations":{},"name":"k","namespace":"default"}}\n',
    );
  });

  test("does not contain itself", () => {
    const once = withLastApplied({ metadata: { name: "k" } });
    assert.deepEqual(withLastApplied(once), once);
  });

  test("is empty where somebody spoiled it", () => {
    const annotations = { [lastApplied]: "{" };
    assert.deepEqual(lastAppliedOf({ metadata: { annotations } }), {});
  });
});

describe("the three-way patch", () => {
  const cases: Record<string, { sides: JsonObject[]; patch: JsonObject | undefined }> = {
    "sets what is declared anew": {
      sides: [{}, { a: 1, b: { c: 2 } }, { b: { d: 3 } }],
      patch: { a: 1, b: { c: 2 } },
    },
    "removes what was declared and no longer is": {
      sides: [{ a: 1, b: { c: 2, d: 3 } }, { b: { c: 2 } }, { a: 1, b: { c: 2, d: 3 } }],
      patch: { a: null, b: { d: null } },
    },
    "leaves alone what others set": {
      sides: [{ a: 1 }, { a: 1 }, { a: 1, status: { x: 1 }, b: 2 }],
      patch: undefined,
    },
    "replaces lists as a whole": {
      sides: [{ l: [1, 2] }, { l: [1] }, { l: [1, 2] }],
      patch: { l: [1] },
    },
    "takes a map that is declared empty for no change where defaults fill it": {
      sides: [{}, { a: {} }, { a: { b: "default" } }],
      patch: undefined,
    },
    "makes a map that is declared empty and not there": {
      sides: [{}, { a: {} }, {}],
      patch: { a: {} },
    },
  };
  for (const [what, { sides, patch }] of Object.entries(cases)) {
    test(what, () => {
      const [original = {}, modified = {}, current = {}] = sides;
      assert.deepEqual(threeWayPatch({ original, modified, current }), patch);
    });
  }

  test("leaves nothing to do once it is carried out, whatever the three are", () => {
    const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer()));
    const key = fc.constantFrom("a", "b", "c", "__proto__");
    const object = fc.letrec((tie) => ({
      map: fc.dictionary(key, fc.oneof({ depthSize: "small" }, leaf, tie("map")), { maxKeys: 3 }),
    })).map;
    fc.assert(
      fc.property(object, object, object, (original, modified, current) => {
        const sides = { original, modified, current } as Record<string, JsonObject>;
        const patch = threeWayPatch(sides as unknown as Parameters<typeof threeWayPatch>[0]);
        if (patch === undefined) return;
        const done = applyMergePatch(current as JsonObject, patch) as JsonObject;
        const again = threeWayPatch({
          original: modified as JsonObject,
          modified: modified as JsonObject,
          current: done,
        });
        assert.ok(jsonEqual(again, undefined), JSON.stringify({ ...sides, patch, again }));
      }),
    );
  });
});
