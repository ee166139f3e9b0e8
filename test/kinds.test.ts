import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { berthKinds } from "../src/api/index.ts";
import type { JsonSchema } from "../src/api/index.ts";
import { createSchemaRunners } from "../src/apiserver/admission/index.ts";
import { cloneJson } from "../src/kernel/json.ts";
import type { KubeObject } from "../src/kernel/object.ts";
import { fieldErrorMessage } from "../src/kernel/status.ts";
import { objectsOf } from "./kinds/case.ts";
import { cases } from "./kinds/cases.ts";

// Our kinds as the embedded server admits them: the rules say what they mean, and every example is
// one that works.

const runnerOf = createSchemaRunners();

describe("the rules of our kinds", () => {
  for (const one of cases) {
    test(`${one.refused ? "refuse" : "accept"} ${one.base.kind}: ${one.name}`, () => {
      const { object, previous } = objectsOf(one);
      const found = admit(object, previous);
      if (one.refused === undefined) return assert.deepEqual(found, []);
      const [field, message] = one.refused;
      const hit = found.find((error) => error.startsWith(`${field}: `) && error.includes(message));
      assert.ok(hit, `expected ${field}: …${message}…, got ${JSON.stringify(found)}`);
    });
  }
});

test("every rule of every kind is broken by a case above", () => {
  const broken = cases.flatMap((one) => (one.refused?.[1] ? [one.refused[1]] : []));
  const messages = new Set(berthKinds.flatMap((kind) => messagesOf(kind.schema)));
  const idle = [...messages].filter((message) => !broken.some((text) => message.includes(text)));
  assert.deepEqual(idle, []);
});

describe("the examples", () => {
  for (const path of examplePaths()) {
    test(`${path} is admitted`, () => {
      for (const object of readManifest(path)) assert.deepEqual(admit(object, undefined), []);
    });
  }
});

function admit(object: KubeObject, previous: KubeObject | undefined): string[] {
  const kind = berthKinds.find((candidate) => candidate.kind === object.kind);
  assert.ok(kind, `${object.kind} is a kind of ours`);
  const runner = runnerOf(kind);
  const [now, before] = [object, previous].map((value) => {
    if (value === undefined) return undefined;
    const copy = cloneJson(value);
    assert.deepEqual(runner.prune(copy), [], "no unknown field");
    runner.applyDefaults(copy);
    return copy;
  });
  assert.ok(now);
  const errors = runner.validate(now, before);
  return errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`);
}

function messagesOf(schema: JsonSchema): string[] {
  const { properties = {}, items, additionalProperties: values } = schema;
  const inside = [
    ...Object.values(properties),
    items,
    typeof values === "object" ? values : undefined,
  ];
  return [
    ...(schema["x-kubernetes-validations"] ?? []).map((rule) => rule.message ?? rule.rule),
    ...inside.flatMap((child) => (child ? messagesOf(child) : [])),
  ];
}

function examplePaths(): string[] {
  const folder = join(import.meta.dirname, "..", "examples");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".yaml")).map((file) => join(folder, file));
}

function readManifest(path: string): KubeObject[] {
  const documents = parseAllDocuments(readFileSync(path, "utf8"));
  assert.ok(Array.isArray(documents) && documents.length > 0, `${path} has documents`);
  return documents.map((document) => document.toJS() as KubeObject);
}
