import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError, fieldErrorMessage } from "../../kernel/status.ts";
import { configMapResource } from "./config-map.ts";

const native = configMapResource.native;
assert(native?.prepare && native.validate && native.cells);
const { prepare, validate, cells } = native;

function configMap(fields: object): KubeObject {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c" }, ...fields };
}

function problems(fields: object, previous?: object): string[] {
  const before = previous && prepare(configMap(previous), undefined);
  const errors = validate(prepare(configMap(fields), before), before);
  return errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`);
}

test("a key with nothing behind it is an empty value", () => {
  assert.deepEqual(prepare(configMap({ data: { a: null } }), undefined).data, { a: "" });
});

test("binary data is canonical base64 or refused", () => {
  const prepared = prepare(configMap({ binaryData: { a: "YQ==\n", b: null } }), undefined);
  assert.deepEqual(prepared.binaryData, { a: "YQ==", b: "" });
  assert.throws(
    () => prepare(configMap({ binaryData: { a: "a" } }), undefined),
    (error) => error instanceof ApiError && error.code === 400 && /ConfigMap/.test(error.message),
  );
});

test("a key is in data or in binaryData, not in both", () => {
  assert.deepEqual(problems({ data: { a: "1", b: "2" }, binaryData: { b: "", c: "" } }), [
    'data[b]: Invalid value: "b": duplicate of key present in binaryData',
  ]);
});

test("keys are checked in both", () => {
  const found = problems({ data: { "a/b": "" }, binaryData: { ".": "" } });
  assert.match(found[0] ?? "", /^data\[a\/b\]: Invalid value: "a\/b": a valid config key/);
  assert.deepEqual(found.slice(1), ["binaryData[.]: Invalid value: \".\": must not be '.'"]);
});

test("the values are at most 1 MiB together, counted in bytes", () => {
  const half = "\u00e4".repeat(256 * 1024);
  const full = {
    data: { a: half },
    binaryData: { b: Buffer.alloc(512 * 1024).toString("base64") },
  };
  assert.deepEqual(problems(full), []);
  assert.deepEqual(problems({ ...full, data: { a: `${half}!` } }), [
    "[]: Too long: may not be more than 1048576 bytes",
  ]);
});

test("an immutable one keeps its data", () => {
  const before = { immutable: true, data: { a: "1" } };
  const frozen = "Forbidden: field is immutable when `immutable` is set";
  const changed = { immutable: false, data: {}, binaryData: { a: "" } };
  assert.deepEqual(problems(changed, before), [
    `immutable: ${frozen}`,
    `data: ${frozen}`,
    `binaryData: ${frozen}`,
  ]);
  assert.deepEqual(problems({ ...before, binaryData: {} }, before), []);
});

test("a row counts the keys of both", () => {
  const object = configMap({ data: { a: "" }, binaryData: { b: "", c: "" } });
  assert.deepEqual(cells(object, 0), [3, "<unknown>"]);
});
