import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { ApiError } from "../../kernel/status.ts";
// Bytes that client-go 0.32.4 made of each kind: empty, with every pointer at zero, and with every
// field set; beside them what Go's JSON encoding shows of the object that it read back.
import goFixtures from "./fixtures.json" with { type: "json" };
import { decodeProtobuf, isProtobuf } from "./index.ts";
// Bodies of kubectl 1.32 and 1.33, beside those of 1.31 for the same commands.
import kubectlFixtures from "./kubectl-fixtures.json" with { type: "json" };

function bytesOf(base64: string): Uint8Array {
  return new Uint8Array(Buffer.from(base64, "base64"));
}

function refusal(body: Uint8Array): string {
  try {
    decodeProtobuf(body);
  } catch (error) {
    assert(error instanceof ApiError, `an ApiError, not ${String(error)}`);
    assert.equal(error.code, 400);
    return error.message;
  }
  return "";
}

/** A body with this kind and these bytes in it. */
function envelope(raw: Uint8Array, type = ["v1", "ConfigMap"]): Uint8Array {
  const typeMeta = new BinaryWriter();
  type.forEach((text, at) => typeMeta.tag(at + 1, WireType.LengthDelimited).string(text));
  const unknown = new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(typeMeta.finish());
  unknown.tag(2, WireType.LengthDelimited).bytes(raw);
  return Buffer.concat([Buffer.from("k8s\0"), unknown.finish()]);
}

function field(number: number, bytes: Uint8Array | string): Uint8Array {
  const raw = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(raw).finish();
}

function varint(number: number, value: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.Varint).int32(value).finish();
}

describe("a body of Go's own clients", () => {
  for (const { name, protobuf, json } of [...goFixtures, ...kubectlFixtures]) {
    test(`is read as Go shows it in JSON: ${name}`, () => {
      assert.deepEqual(JSON.parse(JSON.stringify(decodeProtobuf(bytesOf(protobuf)))), json);
    });
  }

  test("is found for every kind that is promised", () => {
    const kinds = new Set(goFixtures.map(({ name }) => name.replace(/,.*/, "")));
    assert.equal(kinds.size, 12);
  });
});

test("the media type is told whatever its parameters and case", () => {
  assert.ok(isProtobuf("application/vnd.kubernetes.protobuf"));
  assert.ok(isProtobuf("Application/vnd.kubernetes.protobuf ; charset=x"));
  assert.ok(!isProtobuf("application/json") && !isProtobuf("") && !isProtobuf("x/protobuf"));
});

describe("what a newer client adds", () => {
  test("is skipped, in any wire type and at any depth", () => {
    const unknown = [
      varint(99, 7),
      field(98, "later"),
      new BinaryWriter().tag(97, WireType.Bit64).fixed64(1n).finish(),
      new BinaryWriter().tag(96, WireType.Bit32).fixed32(1).finish(),
    ];
    const metadata = field(1, Buffer.concat([field(1, "c"), ...unknown]));
    const decoded = decodeProtobuf(envelope(Buffer.concat([metadata, ...unknown])));
    assert.deepEqual(decoded, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: "c",
        creationTimestamp: null,
      },
    });
  });

  test("names DeleteOptions by the version of what it deletes", () => {
    const decoded = decodeProtobuf(envelope(field(4, "Orphan"), ["berth.dev/v1", "DeleteOptions"]));
    assert.equal(decoded.propagationPolicy, "Orphan");
  });
});

describe("a malformed body is refused with one sentence", () => {
  const metadata = (raw: Uint8Array): Uint8Array => envelope(field(1, raw));
  const table: [string, Uint8Array, RegExp][] = [
    ["nothing", new Uint8Array(), /does not begin as a Kubernetes object/],
    ["JSON", Buffer.from('{"kind":"Secret"}'), /does not begin/],
    ["only the beginning", Buffer.from("k8s\0"), /no kind "" is registered for version ""/],
    ["a kind without a table", envelope(new Uint8Array(), ["v1", "Pod"]), /no kind "Pod"/],
    ["a kind called as a method", envelope(new Uint8Array(), ["", "toString"]), /no kind/],
    ["a length beyond the end", envelope(Uint8Array.of(0x0a, 0x7f)), /premature EOF/],
    ["a varint without an end", envelope(Buffer.alloc(20, 0xff)), /cannot be read/],
    ["field number zero", envelope(Uint8Array.of(0x02, 0x00)), /illegal tag/],
    ["the wrong wire type", envelope(varint(1, 1)), /the field metadata has the wire type 0/],
    ["a map of the wrong wire type", envelope(varint(2, 1)), /the field data has the wire type 0/],
    ["text that is not UTF-8", metadata(field(1, Uint8Array.of(0xff))), /invalid UTF-8/],
    [
      "an integer that JSON cannot hold",
      metadata(
        new BinaryWriter()
          .tag(7, WireType.Varint)
          .int64(2n ** 60n)
          .finish(),
      ),
      /out of range/,
    ],
    [
      "a time that no calendar has",
      metadata(
        field(
          8,
          new BinaryWriter()
            .tag(1, WireType.Varint)
            .int64(2n ** 50n)
            .finish(),
        ),
      ),
      /a time field is out of range/,
    ],
    [
      "managed fields that are not JSON",
      metadata(field(17, field(7, field(1, "{")))),
      /fieldsV1 field is not a JSON object/,
    ],
    [
      "managed fields that nest without end",
      metadata(field(17, field(7, field(1, `{"a":${"[".repeat(500)}${"]".repeat(500)}}`)))),
      /fieldsV1 field is not a JSON object/,
    ],
    ["groups in groups", envelope(Buffer.alloc(10_000, 0x1b)), /cannot be read/],
    [
      "compressed content",
      Buffer.concat([envelope(new Uint8Array()), field(3, "gzip")]),
      /its content is encoded/,
    ],
    [
      "other content",
      Buffer.concat([envelope(new Uint8Array()), field(4, "application/json")]),
      /of another media type/,
    ],
    [
      "more elements than any object has",
      metadata(Buffer.alloc(300_000, field(14, ""))),
      /more than 100000 list elements/,
    ],
  ];
  for (const [reason, body, sentence] of table) {
    test(reason, () => assert.match(refusal(body), sentence));
  }

  test("whatever the bytes, they are read or refused", () => {
    const whole = goFixtures.map(({ protobuf }) => bytesOf(protobuf));
    const damaged = fc
      .tuple(fc.constantFrom(...whole), fc.nat(), fc.nat(255), fc.boolean())
      .map(([bytes, place, value, cut]) => {
        const at = place % bytes.length;
        return cut ? bytes.slice(0, at) : bytes.with(at, value);
      });
    fc.assert(
      fc.property(
        fc.oneof(
          damaged,
          fc.uint8Array().map((raw) => envelope(raw)),
        ),
        (body) => {
          refusal(body);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

test("a key called __proto__ stays a key", () => {
  const entry = Buffer.concat([field(1, "__proto__"), field(2, "x")]);
  const { data } = decodeProtobuf(envelope(field(2, entry)));
  assert.equal(JSON.stringify(data), '{"__proto__":"x"}');
});
