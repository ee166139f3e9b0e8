import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  assertFieldsSupported,
  matchesFields,
  parseFieldSelector,
  requiredFieldValue,
  selectableFieldsOf,
  type FieldSelector,
} from "./field-selector.ts";
import type { KubeObject } from "./object.ts";
import { ApiError } from "./status.ts";

const parsed: [text: string, selector: FieldSelector][] = [
  ["", []],
  [",,", []],
  ["a=b", [{ field: "a", operator: "=", value: "b" }]],
  ["a==b", [{ field: "a", operator: "=", value: "b" }]],
  ["a!=b", [{ field: "a", operator: "!=", value: "b" }]],
  ["a=", [{ field: "a", operator: "=", value: "" }]],
  [
    "a=b,c!=d",
    [
      { field: "a", operator: "=", value: "b" },
      { field: "c", operator: "!=", value: "d" },
    ],
  ],
  ["a=b\\,c\\=d\\\\e", [{ field: "a", operator: "=", value: "b,c=d\\e" }]],
];

for (const [text, selector] of parsed) {
  test(`reads "${text}"`, () => assert.deepEqual(parseFieldSelector(text), selector));
}

const refused: [text: string, message: string][] = [
  ["a", "invalid selector: 'a'; can't understand 'a'"],
  ["a=b,c", "invalid selector: 'a=b,c'; can't understand 'c'"],
  ["a=b=c", "invalid field selector: unescaped character in value: 61"],
  ["a=b\\c", "invalid field selector: invalid escape sequence: \\c"],
  ["a=b\\", "invalid field selector: invalid escape sequence: \\"],
];

for (const [text, message] of refused) {
  test(`answers 400 to "${text}" in Kubernetes' words`, () => {
    assert.throws(
      () => parseFieldSelector(text),
      (error) => error instanceof ApiError && error.code === 400 && error.message === message,
    );
  });
}

const vm = selectableFieldsOf({ group: "berth.dev", kind: "VirtualMachine", namespaced: true });
const event = selectableFieldsOf({ group: "", kind: "Event", namespaced: true });

test("refuses a field that the kind does not offer", () => {
  const fields = selectableFieldsOf({ group: "", kind: "Namespace", namespaced: false });
  for (const field of ["metadata.namespace", "spec.x", "constructor"]) {
    assert.throws(
      () => assertFieldsSupported(parseFieldSelector(`${field}=x`), fields),
      (error) =>
        error instanceof ApiError && error.message === `field label not supported: ${field}`,
    );
  }
  assertFieldsSupported(parseFieldSelector("metadata.name=a,status.phase!=Active"), fields);
});

test("selects by name and namespace", () => {
  const object = { apiVersion: "v1", kind: "VM", metadata: { name: "a", namespace: "b" } };
  const matches = (text: string): boolean => matchesFields(parseFieldSelector(text), object, vm);
  assert.equal(matches("metadata.name=a,metadata.namespace=b"), true);
  assert.equal(matches("metadata.name=a,metadata.namespace!=b"), false);
  assert.equal(matches("metadata.name!=x"), true);
});

test("selects Events by what they are about", () => {
  const object: KubeObject = {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: "e", namespace: "default" },
    involvedObject: { kind: "VirtualMachine", name: "web", namespace: "default", uid: "u" },
    reason: "Created",
    type: "Normal",
    reportingComponent: "berth",
  };
  const matches = (text: string): boolean => matchesFields(parseFieldSelector(text), object, event);
  assert.equal(matches("involvedObject.name=web,involvedObject.kind=VirtualMachine"), true);
  assert.equal(matches("involvedObject.name=web,involvedObject.uid=other"), false);
  assert.equal(matches("source=berth,reason=Created,type!=Warning"), true);
  assert.equal(matches("involvedObject.fieldPath="), true, "an absent field is empty");
});

test("selects Secrets by type and Namespaces by phase", () => {
  const secrets = selectableFieldsOf({ group: "", kind: "Secret", namespaced: true });
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, type: "Opaque" };
  assert.equal(matchesFields(parseFieldSelector("type=Opaque"), secret, secrets), true);
  const namespaces = selectableFieldsOf({ group: "", kind: "Namespace", namespaced: false });
  const namespace = {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "n" },
    status: { phase: "Active" },
  };
  const active = parseFieldSelector("status.phase=Active");
  assert.equal(matchesFields(active, namespace, namespaces), true);
});

test("a kind of another group does not get the fields of its namesake", () => {
  const fields = selectableFieldsOf({ group: "example.com", kind: "Secret", namespaced: true });
  assert.throws(() => assertFieldsSupported(parseFieldSelector("type=x"), fields));
});

test("says which value a field must have", () => {
  assert.equal(requiredFieldValue(parseFieldSelector("a=b,metadata.name=c"), "metadata.name"), "c");
  assert.equal(
    requiredFieldValue(parseFieldSelector("metadata.name!=c"), "metadata.name"),
    undefined,
  );
});

test("any value survives escaping", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (value) => {
      const escaped = value.replaceAll(/[\\,=]/g, "\\$&");
      assert.deepEqual(parseFieldSelector(`f=${escaped}`), [{ field: "f", operator: "=", value }]);
    }),
  );
});
