import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonSchema, ValidationRule } from "../../api/schema/json-schema.ts";
import type { Json } from "../../kernel/json.ts";
import { fieldErrorMessage } from "../../kernel/status.ts";
import recordedRules from "./golden/rules.json" with { type: "json" };
import recordedSchemas from "./golden/schemas.json" with { type: "json" };
import { objectOf, runnerOf } from "./testing/objects.ts";

/**
 * Recorded from the validation of kube-apiserver 1.32.4: a schema for `spec`, a value, on update
 * the old one, and every error with its type and text. Among several errors the order is ours,
 * because Kubernetes walks Go maps and has none.
 */
interface Recorded {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly rootRules?: ValidationRule[];
  readonly value: Json;
  readonly old?: Json;
  readonly errors: readonly string[];
}

function errorsOf({ schema, rootRules, value, old }: Recorded): string[] {
  const root = { type: "object", properties: { spec: schema } } as const;
  const runner = runnerOf(
    rootRules === undefined ? root : { ...root, "x-kubernetes-validations": rootRules },
  );
  const errors = runner.validate(objectOf(value), old === undefined ? undefined : objectOf(old));
  return errors.map((error) => `${error.type} ${error.field}: ${fieldErrorMessage(error)}`);
}

describe("schemas refuse in the words of kube-apiserver", () => {
  for (const recorded of recordedSchemas as Recorded[]) {
    test(recorded.name, () => assert.deepEqual(errorsOf(recorded), recorded.errors));
  }
});

describe("rules refuse in the words of kube-apiserver", () => {
  for (const recorded of recordedRules as Recorded[]) {
    test(recorded.name, () => assert.deepEqual(errorsOf(recorded), recorded.errors));
  }
});
