import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError, fieldErrorMessage, type FieldError } from "../../kernel/status.ts";
import { secretResource } from "./secret.ts";

const native = secretResource.native;
assert(native?.prepare && native.validate && native.cells);
const { prepare, validate, cells } = native;

function secret(fields: object): KubeObject {
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "s", namespace: "n" }, ...fields };
}

function problems(fields: object, previous?: object): string[] {
  const before = previous && prepare(secret(previous), undefined);
  return validate(prepare(secret(fields), before), before).map(shown);
}

function shown(error: FieldError): string {
  return `${error.field}: ${fieldErrorMessage(error)}`;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

describe("preparing a Secret", () => {
  test("merges stringData over data and shows it no more", () => {
    const prepared = prepare(
      secret({ data: { a: "b25l", b: "dHdv" }, stringData: { b: "zwei", c: "" } }),
      undefined,
    );
    const data = { a: "b25l", b: base64("zwei"), c: "" };
    assert.deepEqual(prepared, secret({ type: "Opaque", data }));
  });

  test("stores all spellings of the same bytes alike", () => {
    const prepared = prepare(secret({ data: { a: "YWJj\nZA==" } }), undefined);
    assert.deepEqual(prepared.data, { a: base64("abcd") });
  });

  test("reads null as absent, and as empty among the data", () => {
    const given = secret({ data: { a: null }, stringData: null, immutable: null, type: null });
    assert.deepEqual(prepare(given, undefined), secret({ type: "Opaque", data: { a: "" } }));
  });

  test("adds no data where there is none", () => {
    assert.deepEqual(prepare(secret({}), undefined), secret({ type: "Opaque" }));
    assert.deepEqual(prepare(secret({ stringData: {} }), undefined), secret({ type: "Opaque" }));
  });

  test("refuses what is not base64 in kube-apiserver's words", () => {
    const sentence =
      'Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 4';
    assert.throws(
      () => prepare(secret({ data: { a: "YWJj-" } }), undefined),
      (error) => error instanceof ApiError && error.code === 400 && error.message === sentence,
    );
  });

  test("leaves what has the wrong shape for the schema to refuse", () => {
    for (const fields of [
      { data: "text" },
      { data: { a: 1 } },
      { stringData: ["a"] },
      { stringData: { a: 1 }, data: { b: "Yg==" } },
      { data: 7, stringData: { a: "b" } },
      { type: 7 },
    ]) {
      const prepared = prepare(secret(fields), undefined);
      for (const [field, value] of Object.entries(fields)) {
        assert.deepEqual(prepared[field], value);
      }
      validate(prepared, prepared);
      cells(prepared, 0);
    }
  });

  test("keeps a key called __proto__ as a key", () => {
    const given = JSON.parse('{"stringData":{"__proto__":"x"}}');
    const { data } = prepare(secret(given), undefined);
    assert.equal(JSON.stringify(data), `{"__proto__":"${base64("x")}"}`);
  });

  test("changes nothing of what it is given", () => {
    const given = secret({ data: { a: "YQ==\n" }, stringData: { b: "b" } });
    const before = structuredClone(given);
    prepare(given, undefined);
    assert.deepEqual(given, before);
  });
});

describe("validating a Secret", () => {
  test("refuses keys that could not be file names", () => {
    const message =
      "Invalid value: \"a b\": a valid config key must consist of alphanumeric characters, '-', " +
      "'_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is " +
      "'[-._a-zA-Z0-9]+')";
    assert.deepEqual(problems({ stringData: { "a b": "x" } }), [`data[a b]: ${message}`]);
    assert.deepEqual(problems({ data: { "..": "", "..a": "", "a..": "" } }), [
      "data[..]: Invalid value: \"..\": must not be '..'",
      "data[..a]: Invalid value: \"..a\": must not start with '..'",
    ]);
    const long = "k".repeat(254);
    assert.deepEqual(problems({ data: { [long]: "" } }), [
      `data[${long}]: Invalid value: "${long}": must be no more than 253 characters`,
    ]);
  });

  test("bounds all values together at 1 MiB", () => {
    const half = base64("x".repeat(512 * 1024));
    assert.deepEqual(problems({ data: { a: half, b: half } }), []);
    assert.deepEqual(problems({ data: { a: half, b: half, c: "YQ==" } }), [
      "data: Too long: may not be more than 1048576 bytes",
    ]);
  });

  test("lets no one change the type", () => {
    const before = { type: "example.com/token" };
    assert.deepEqual(problems({ type: "other" }, before), [
      'type: Invalid value: "other": field is immutable',
    ]);
    assert.deepEqual(problems({}, before), ['type: Invalid value: "Opaque": field is immutable']);
    assert.deepEqual(problems(before, before), []);
  });

  test("freezes the data of an immutable one, and its being so", () => {
    const before = { immutable: true, data: { a: "YQ==" } };
    const frozen = "Forbidden: field is immutable when `immutable` is set";
    assert.deepEqual(problems({ ...before, data: { a: "Yg==" } }, before), [`data: ${frozen}`]);
    assert.deepEqual(problems({ data: before.data }, before), [`immutable: ${frozen}`]);
    assert.deepEqual(problems({ immutable: true, stringData: { a: "a" } }, before), []);
  });

  const demands: [string, object, string[], string][] = [
    ["kubernetes.io/tls", {}, ["data[tls.crt]", "data[tls.key]"], "both are demanded"],
    ["kubernetes.io/tls", { "tls.crt": "", "tls.key": "" }, [], "what is in them is not"],
    ["kubernetes.io/basic-auth", {}, ["data[username]", "data[password]"], "one is demanded"],
    ["kubernetes.io/basic-auth", { password: "" }, [], "either is enough"],
    ["kubernetes.io/ssh-auth", { "ssh-privatekey": "" }, ["data[ssh-privatekey]"], "not empty"],
    ["kubernetes.io/ssh-auth", { "ssh-privatekey": "YQ==" }, [], "a key is there"],
    ["kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]"], "it is demanded"],
    ["kubernetes.io/dockercfg", { ".dockercfg": base64("{}") }, [], "the older form"],
    ["constructor", {}, [], "an unknown type demands nothing, whatever it is called"],
  ];
  for (const [type, data, missing, reason] of demands) {
    test(`demands of a ${type} the keys [${missing.join(", ")}]: ${reason}`, () => {
      const wanted = missing.map((field) => `${field}: Required value`);
      assert.deepEqual(problems({ type, data }), wanted);
    });
  }

  test("never shows what is secret when it is not JSON", () => {
    for (const text of ["hunter2", "[]", '"hunter2"', ""]) {
      const data = { ".dockerconfigjson": base64(text) };
      const found = problems({ type: "kubernetes.io/dockerconfigjson", data });
      assert.deepEqual(found, [
        'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": ' +
          "must be a JSON object",
      ]);
    }
  });

  test("demands the account of a service account's token", () => {
    const type = "kubernetes.io/service-account-token";
    const field = "metadata.annotations[kubernetes.io/service-account.name]";
    assert.deepEqual(problems({ type }), [`${field}: Required value`]);
    const annotations = { "kubernetes.io/service-account.name": "builder" };
    assert.deepEqual(problems({ type, metadata: { name: "s", annotations } }), []);
  });
});

test("a Secret's row shows type, number of keys and age, and nothing of the data", () => {
  const metadata = { name: "s", creationTimestamp: "1970-01-01T00:00:00Z" };
  const object = prepare(secret({ metadata, stringData: { a: "hunter2", b: "" } }), undefined);
  assert.deepEqual(cells(object, 90_000), ["Opaque", 2, "90s"]);
});
