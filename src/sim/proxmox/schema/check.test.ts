import assert from "node:assert/strict";
import { test } from "node:test";
import { PveError } from "../errors.ts";
import type { Release } from "../release.ts";
import { checkParameters, type RawParameters } from "./check.ts";
import { schemaOf } from "./schema.ts";

const create = "POST /nodes/{node}/qemu";

function faults(given: RawParameters, release: Release = "9.2"): Readonly<Record<string, string>> {
  const method = schemaOf(release).methods[create];
  assert.ok(method);
  try {
    checkParameters(release, method, { node: "pve1", vmid: "100", ...given });
    return {};
  } catch (error) {
    assert.ok(error instanceof PveError);
    assert.equal(error.status, 400);
    return error.errors ?? {};
  }
}

const unknown =
  "property is not defined in schema and the schema does not allow additional properties";

const table: { reason: string; given: RawParameters; errors: Record<string, string> }[] = [
  { reason: "good ones", given: { cores: "2", scsi30: "local:1", net31: "virtio" }, errors: {} },
  { reason: "JSON numbers and booleans", given: { cores: 2, onboot: true }, errors: {} },
  { reason: "an unknown name", given: { bogus: "1" }, errors: { bogus: unknown } },
  { reason: "a device too many", given: { scsi31: "local:1" }, errors: { scsi31: unknown } },
  {
    reason: "a wrong type",
    given: { cores: "x" },
    errors: { cores: "type check ('integer') failed - got 'x'" },
  },
  {
    reason: "out of bounds",
    given: { cores: "0" },
    errors: { cores: "value must have a minimum value of 1" },
  },
  {
    reason: "a format",
    given: { name: "a_b" },
    errors: { name: "invalid format - value does not look like a valid DNS name\n" },
  },
  {
    reason: "a part of a property string",
    given: { net0: "virtio,bogus=1" },
    errors: { net0: `invalid format - format error\nnet0.bogus: ${unknown}\n` },
  },
  {
    reason: "a part that is missing",
    given: { scsi0: "cache=none" },
    errors: {
      scsi0:
        "invalid format - format error\nscsi0.file: property is missing and it is not optional\n",
    },
  },
  {
    reason: "a repeated parameter",
    given: { name: ["a", "b"] },
    errors: { name: "type check ('string') failed - got ARRAY" },
  },
  {
    reason: "one that another needs",
    given: { force: "1" },
    errors: { archive: "missing property required by 'force'" },
  },
];

for (const { reason, given, errors } of table) {
  test(`parameters are checked: ${reason}`, () => assert.deepEqual(faults(given), errors));
}

test("what is missing is named", () => {
  const method = schemaOf("9.2").methods[create];
  assert.ok(method);
  assert.throws(
    () => checkParameters("9.2", method, { node: "pve1" }),
    (error: PveError) => {
      assert.deepEqual(Object.keys(error.errors ?? {}), ["vmid"]);
      return true;
    },
  );
});

test("memory is a number in 7.4 and a property string since", () => {
  assert.equal(faults({ memory: "1" }, "7.4")["memory"], "value must have a minimum value of 16");
  assert.match(faults({ memory: "1" })["memory"] ?? "", /^invalid format - format error\nmemory/);
});
