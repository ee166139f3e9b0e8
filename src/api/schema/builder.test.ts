import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  array,
  boolean,
  byteSize,
  coreQuantity,
  enumeration,
  exactlyOne,
  integer,
  listMap,
  map,
  object,
  optional,
  rule,
  set,
  string,
  withDefault,
} from "./index.ts";
import type { Field, Presence, ReadOf, WrittenOf } from "./index.ts";
import { structuralProblems } from "./testing/structural.ts";

/** Compiles only if both are the same type. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

const name = string("A name.", { maxLength: 63 });

const machine = object("A machine.", {
  name,
  note: optional(string("A note.", { maxLength: 100 })),
  power: withDefault(enumeration("Whether it runs.", ["On", "Off"]), "On"),
  disks: listMap("Disks.", object("A disk.", { name, size: optional(byteSize("Size.")) }), {
    key: "name",
    maxItems: 8,
  }),
  stop: withDefault(
    object("How it stops.", {
      seconds: withDefault(integer("How long.", { minimum: 0, maximum: 60 }), 30),
      force: withDefault(boolean("By force."), true),
    }),
    { force: false },
  ),
});

describe("the types that the builder derives", () => {
  test("have required and defaulted fields always, and optional ones sometimes", () => {
    type Expected = {
      name: string;
      power: "On" | "Off";
      disks: { name: string; size?: string }[];
      stop: { seconds: number; force: boolean };
      note?: string;
    };
    holds<Same<ReadOf<typeof machine>, Expected>>();
    const read: ReadOf<typeof machine> = {
      name: "a",
      power: "On",
      disks: [],
      stop: { seconds: 1, force: true },
    };
    // @ts-expect-error an optional field is there or not there; it is never undefined
    const wrong: ReadOf<typeof machine> = { ...read, note: undefined };
    assert.ok(wrong);
  });

  test("let a writer leave out what has a default", () => {
    const written: WrittenOf<typeof machine> = { name: "a", disks: [{ name: "root" }] };
    // @ts-expect-error what is required has to be written
    const wrong: WrittenOf<typeof machine> = { disks: [] };
    assert.ok(written && wrong);
  });

  test("know which fields can key a list", () => {
    const item = object("An item.", { name, note: optional(name) });
    // @ts-expect-error an optional field is no key
    const wrong = listMap("Items.", item, { key: "note", maxItems: 2 });
    assert.ok(wrong);
  });

  test("keep a default to the type of its field", () => {
    // @ts-expect-error "Maybe" is not one of the words
    const wrong = withDefault(enumeration("Whether it runs.", ["On", "Off"]), "Maybe");
    assert.ok(structuralProblems(wrong.schema).length > 0);
  });
});

describe("the schemas that the builder makes", () => {
  test("require what is neither optional nor defaulted", () => {
    assert.deepEqual(machine.schema.required, ["name", "disks"]);
  });

  test("carry the whole default of an object, its fields' own included", () => {
    assert.deepEqual(machine.schema.properties?.["stop"]?.default, { force: false, seconds: 30 });
  });

  test("say which kind of list a list is", () => {
    const lists = object("Lists.", {
      ordered: array("In order.", name, { maxItems: 2 }),
      unique: set("Without doubles.", name, { maxItems: 2 }),
      keyed: listMap("By name.", object("One.", { name }), { key: "name", maxItems: 2 }),
    });
    const kinds = Object.values(lists.schema.properties ?? {}).map((schema) => [
      schema["x-kubernetes-list-type"],
      schema["x-kubernetes-list-map-keys"],
    ]);
    assert.deepEqual(kinds, [
      ["atomic", undefined],
      ["set", undefined],
      ["map", ["name"]],
    ]);
  });

  test("give integers the format that holds them", () => {
    assert.equal(integer("Small.", { minimum: 0, maximum: 100 }).schema.format, "int32");
    assert.equal(integer("Large.", { minimum: 0, maximum: 2 ** 40 }).schema.format, "int64");
  });

  test("count what is there for exactly one", () => {
    assert.equal(
      exactlyOne(["a", "b"], "one of a and b").rule,
      "[has(self.a), has(self.b)].filter(x, x).size() == 1",
    );
  });

  test("are structural, whatever is put together", () => {
    fc.assert(
      fc.property(fields, (field) => {
        assert.deepEqual(structuralProblems(field.schema), []);
      }),
    );
  });
});

describe("quantities", () => {
  const pattern = (field: Field<unknown>): RegExp => new RegExp(field.schema.pattern ?? "", "u");

  test("of bytes need a unit, so that 20 is not taken for twenty bytes", () => {
    const size = pattern(byteSize("A size."));
    for (const good of ["1Ki", "20Gi", "1.5Ti", "500M"]) assert.match(good, size);
    for (const bad of ["20", "0Gi", "-1Gi", "20GB", "1e3", "20 Gi", "Gi"]) {
      assert.doesNotMatch(bad, size);
    }
  });

  test("of cores may be whole, a fraction, or thousandths", () => {
    const cores = pattern(coreQuantity("Cores."));
    for (const good of ["1", "0.5", "500m"]) assert.match(good, cores);
    for (const bad of ["0", "-1", "2Gi", "m", "1.5m"]) assert.doesNotMatch(bad, cores);
  });
});

describe("the checker of structural schemas", () => {
  const problems = (field: Field<unknown, unknown, Presence>): string =>
    structuralProblems(field.schema).join("; ");

  test("finds what is missing", () => {
    assert.match(problems({ presence: "required", schema: {} }), /has no type/);
    assert.match(problems(string("", { maxLength: 3 })), /no description/);
    assert.match(problems(string("A text.", { maxLength: 0 })), /maxLength/);
    assert.match(problems({ presence: "required", schema: { type: "array" } }), /maxItems/);
    const texts = { type: "object", description: "A.", additionalProperties: name.schema } as const;
    assert.match(problems({ presence: "required", schema: texts }), /maxProperties/);
  });

  test("finds a default that does not fit", () => {
    const field = string("A name.", { maxLength: 3 });
    const long = { ...field, schema: { ...field.schema, default: "too long" } };
    assert.match(problems(long), /default has the wrong length/);
  });

  test("finds a rule that points nowhere, says nothing, or would be hidden", () => {
    const ruled = (wrong: ReturnType<typeof rule>): string =>
      problems(object("An object.", { name }, { rules: [wrong] }));
    assert.match(ruled(rule("true", "wrong", { fieldPath: ".nowhere" })), /leads nowhere/);
    assert.match(ruled(rule("true", "")), /needs a message/);
    assert.match(ruled(rule("true", "twice", { reason: "FieldValueDuplicate" })), /hides/);
  });

  test("finds a type inside allOf", () => {
    const schema = { ...name.schema, allOf: [{ type: "string" as const }] };
    assert.match(problems({ presence: "required", schema }), /may not say what the structure is/);
  });

  test("finds a key that is not always there", () => {
    const item = { type: "object", description: "A.", properties: { name: name.schema } } as const;
    const schema = {
      ...array("Items.", name, { maxItems: 1 }).schema,
      items: item,
      "x-kubernetes-list-type": "map" as const,
      "x-kubernetes-list-map-keys": ["name"],
    };
    assert.match(problems({ presence: "required", schema }), /neither required nor defaulted/);
  });
});

type Made = Field<unknown, unknown>;

const leaves: readonly Made[] = [
  name,
  integer("A number.", { minimum: 0, maximum: 9 }),
  boolean("A fact."),
  enumeration("A word.", ["A", "B"]),
  byteSize("A size."),
  coreQuantity("Cores."),
];

const { fields } = fc.letrec<{
  fields: Made;
  shape: Record<string, Field<unknown, unknown, Presence>>;
}>((tie) => ({
  fields: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(...leaves),
    tie("shape").map((shape) => object("An object.", shape)),
    tie("fields").map((field) => array("A list.", field, { maxItems: 3 })),
    tie("fields").map((field) => map("A map.", field, { maxProperties: 3 })),
    tie("shape").map((shape) =>
      listMap("A keyed list.", object("An item.", { ...shape, key: name }), {
        key: "key",
        maxItems: 3,
      }),
    ),
  ),
  shape: fc.dictionary(
    fc.string({ minLength: 1, maxLength: 4, unit: "grapheme-ascii" }),
    fc.oneof(
      tie("fields"),
      tie("fields").map((field) => optional(field)),
      fc.constant(withDefault(boolean("A fact."), true)),
    ),
    { maxKeys: 4 },
  ),
}));
