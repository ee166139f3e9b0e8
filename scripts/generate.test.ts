import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { berthKinds } from "../src/api/index.ts";
import { isJsonObject } from "../src/kernel/json.ts";
import { generatedFiles } from "./generate.ts";

const root = join(import.meta.dirname, "..");
const files = generatedFiles();

describe("what is derived from the kinds and the commands", () => {
  for (const [path, text] of files) {
    test(`${path} is as they are now (else run scripts/generate.ts)`, () => {
      const stored = readFileSync(join(root, path), "utf8");
      // A schema is formatted like all JSON here, so only what it says is compared.
      if (path.endsWith(".json")) assert.deepEqual(JSON.parse(stored), JSON.parse(text));
      else assert.equal(stored, text);
    });
  }

  test("leaves no page or schema of a kind that is gone", () => {
    const stored = ["docs/kinds", "schemas"].flatMap((folder) =>
      readdirSync(join(root, folder)).map((name) => `${folder}/${name}`),
    );
    const derived = [...files.keys()].filter((path) => /^(docs\/kinds|schemas)\//.test(path));
    assert.deepEqual(stored.toSorted(), derived.toSorted());
  });
});

describe("the pages", () => {
  for (const kind of berthKinds) {
    test(`of ${kind.kind} link only to sections that they have`, () => {
      const page = files.get(`docs/kinds/${kind.singular}.md`) ?? "";
      const anchors = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
        heading.toLowerCase().replaceAll(/[^a-z0-9 _-]/g, ""),
      );
      for (const [, target = ""] of page.matchAll(/\]\(#([^)]*)\)/g)) {
        assert.ok(anchors.includes(target), `#${target}`);
      }
      assert.deepEqual(anchors, [...new Set(anchors)], "no two sections share an anchor");
    });
  }
});

describe("the editor schemas", () => {
  for (const kind of berthKinds) {
    test(`of ${kind.kind} refuse unknown fields and know nothing that only Kubernetes knows`, () => {
      const text = files.get(`schemas/${kind.singular}.json`) ?? "";
      assert.doesNotMatch(text, /"x-|"int32"|"int64"/);
      for (const object of objectsWithProperties(JSON.parse(text))) {
        assert.ok(object["additionalProperties"] === false || "annotations" in properties(object));
      }
    });
  }
});

type Found = Record<string, unknown>;

function properties(schema: Found): Found {
  const { properties: found } = schema;
  return isJsonObject(found) ? found : {};
}

/** Every schema of an object, at any depth. A property may itself be called "properties". */
function objectsWithProperties(schema: unknown): Found[] {
  if (!isJsonObject(schema)) return [];
  const inside = [...Object.values(properties(schema)), schema["items"]];
  const here = isJsonObject(schema["properties"]) ? [schema] : [];
  return [...here, ...inside.flatMap(objectsWithProperties)];
}
