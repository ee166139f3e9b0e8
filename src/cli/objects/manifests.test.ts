import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readDocuments } from "./manifests.ts";

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n";

describe("a file of manifests", () => {
  test("may hold several documents, empty ones between them", () => {
    const read = readDocuments(`---\n${configMap}---\n---\n${configMap}`, "f");
    assert.equal(read.length, 2);
    assert.ok(read.every((manifest) => "object" in manifest));
  });

  test("may be JSON, or a List", () => {
    const item = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" } };
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: [item, item, 1] });
    const [first, , third] = readDocuments(list, "f");
    assert.ok(first !== undefined && "object" in first);
    assert.deepEqual([first.where, first.object], ["f, item 1", item]);
    assert.deepEqual(third, { where: "f, item 3", fault: "it is not an object" });
  });

  test("names a bad document by its number and reads the others", () => {
    const read = readDocuments(`a: [\n---\n${configMap}---\nkind: X\n---\n- 1\n`, "f");
    assert.deepEqual(
      read.map((manifest) => ("fault" in manifest ? [manifest.where, manifest.fault] : "good")),
      [
        [
          "f, document 1",
          "it is not YAML: Flow sequence in block collection must be sufficiently indented and " +
            "end with a ] at line 2, column 1",
        ],
        "good",
        ["f, document 3", "apiVersion is missing"],
        ["f, document 4", "it is not an object"],
      ],
    );
  });

  test("means the same as to kubectl where YAML 1.1 differs", () => {
    const [read] = readDocuments(`${configMap}x: [yes, off, y, 0777, "no", 1_0]\n`, "f");
    assert.ok(read !== undefined && "object" in read);
    assert.deepEqual(read.object["x"], [true, false, true, 511, "no", "1_0"]);
  });

  const harms: Record<string, { text: string; fault: RegExp }> = {
    "aliases upon aliases": {
      text: `a: &a [${"x,".repeat(9)}]\nb: [${"*a,".repeat(101)}]\n`,
      fault: /aliases/,
    },
    "brackets in brackets": { text: "[".repeat(500), fault: /nested/ },
    "too much text": { text: " ".repeat(17 * 1024 * 1024), fault: /larger/ },
    "keys that come twice": { text: `${configMap}kind: Secret\n`, fault: /unique/ },
  };
  for (const [what, { text, fault }] of Object.entries(harms)) {
    test(`is refused for ${what}`, () => {
      const [read] = readDocuments(text, "f");
      assert.ok(read !== undefined && "fault" in read);
      assert.match(read.fault, fault);
    });
  }
});
