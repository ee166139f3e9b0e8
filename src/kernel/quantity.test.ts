import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  quantityCeil,
  quantityOf,
  quantityToInt64,
  quantityToNumber,
  subtractQuantities,
  type Quantity,
} from "./quantity.ts";

function quantity(text: string): Quantity {
  const parsed = parseQuantity(text);
  assert.ok(parsed !== undefined, `${text} is a quantity`);
  return parsed;
}

// Text, canonical form and 64-bit integer as kube-apiserver 1.32.4 gives them.
const recorded: readonly (readonly [string, string, bigint | undefined])[] = [
  ["0", "0", 0n],
  ["-0", "0", 0n],
  ["1000", "1k", 1000n],
  ["1024", "1024", 1024n],
  ["1Ki", "1Ki", 1024n],
  ["1024Ki", "1Mi", 1_048_576n],
  ["1536Mi", "1536Mi", 1_610_612_736n],
  ["1.5Gi", "1536Mi", undefined],
  ["0.5Ki", "512", undefined],
  ["1.1Ki", "1126400m", undefined],
  ["1000m", "1", undefined],
  ["1500m", "1500m", undefined],
  ["-1500m", "-1500m", undefined],
  ["0.1", "100m", undefined],
  [".5", "500m", undefined],
  ["12e6", "12e6", 12_000_000n],
  ["1.5e3", "1500", 1500n],
  ["100e-3", "100e-3", undefined],
  ["1n", "1n", undefined],
  ["0.0000000001", "1n", undefined],
  ["-1.0000000001", "-1000000001n", undefined],
  ["1000000000000", "1T", 1_000_000_000_000n],
  ["12345678901234567890", "12345678901234567890", undefined],
  ["9Ei", "9223372036854775807", undefined],
  ["9999999999999999999999Ki", "9223372036854775807", undefined],
  ["1E", "1E", 10n ** 18n],
  ["2.5M", "2500k", 2_500_000n],
  ["1e21", "1e21", undefined],
  ["100000000000000000000m", "100P", undefined],
  ["Mi", "0", 0n],
  [".", "0", 0n],
];

describe("quantities", () => {
  for (const [text, canonical, integer] of recorded) {
    test(`${text} is printed as ${canonical}`, () => {
      assert.equal(formatQuantity(quantity(text)), canonical);
      assert.equal(quantityToInt64(quantity(text)), integer);
    });
  }

  for (const text of [
    "",
    "1K",
    "1,5",
    "ten",
    "1 Gi",
    "1Gi ",
    "1e",
    "1ee3",
    "1.2.3",
    "--1",
    "0x1",
  ]) {
    test(`${JSON.stringify(text)} is none`, () => assert.equal(parseQuantity(text), undefined));
  }

  test("texts that would cost minutes to compare are refused", () => {
    assert.equal(parseQuantity("1e999999999"), undefined);
    assert.equal(parseQuantity("9".repeat(300)), undefined);
  });

  test("whole numbers are rounded up, toward positive infinity", () => {
    assert.equal(quantityCeil(quantity("1.5Gi")), 1_610_612_736n);
    assert.equal(quantityCeil(quantity("100m")), 1n);
    assert.equal(quantityCeil(quantity("-1500m")), -1n);
    assert.equal(quantityCeil(quantity("2e3")), 2000n);
  });

  test("numbers lose precision as Kubernetes' do", () => {
    assert.equal(quantityToNumber(quantity("1.5")), 1.5);
    assert.equal(quantityToNumber(quantity("0.3")), 3 * 0.1);
    assert.equal(quantityToNumber(quantity("1Gi")), 1_073_741_824);
  });

  test("the sum is written like the first that is not zero", () => {
    const sum = (left: string, right: string): string => {
      return formatQuantity(addQuantities(quantity(left), quantity(right)));
    };
    assert.equal(sum("1Gi", "512Mi"), "1536Mi");
    assert.equal(sum("0", "512Mi"), "512Mi");
    assert.equal(sum("1", "500m"), "1500m");
    assert.equal(formatQuantity(subtractQuantities(quantity("1Gi"), quantity("1Gi"))), "0");
  });
});

/** A quantity together with its exact value, in units of 10^-9. */
const exact = fc
  .record({
    sign: fc.constantFrom("", "-", "+"),
    whole: fc.bigInt({ min: 0n, max: 999_999_999n }),
    fraction: fc.option(fc.integer({ min: 0, max: 999 }), { nil: undefined }),
    suffix: fc.constantFrom("m", "", "k", "M", "G", "Ki", "Mi", "Gi", "e2", "E-1", "u"),
  })
  .map(({ sign, whole, fraction, suffix }) => {
    const decimals = fraction === undefined ? "" : `.${String(fraction).padStart(3, "0")}`;
    const digits = whole * 1000n + BigInt(fraction ?? 0);
    const [top = 1n, bottom = 1n] = factors[suffix] ?? [];
    const scaled = digits * 1_000_000n * top;
    // Round away from zero, as Kubernetes does below 10^-9.
    const nanos = (scaled + bottom - 1n) / bottom;
    return { text: `${sign}${whole}${decimals}${suffix}`, nanos: sign === "-" ? -nanos : nanos };
  });

const factors: Readonly<Record<string, readonly [bigint, bigint]>> = {
  m: [1n, 1000n],
  u: [1n, 1_000_000n],
  k: [1000n, 1n],
  M: [10n ** 6n, 1n],
  G: [10n ** 9n, 1n],
  Ki: [1024n, 1n],
  Mi: [1024n ** 2n, 1n],
  Gi: [1024n ** 3n, 1n],
  e2: [100n, 1n],
  "E-1": [1n, 10n],
};

describe("laws of quantities", () => {
  test("the order is that of the exact numbers", () => {
    const property = fc.property(exact, exact, (left, right) => {
      const expected = Number(left.nanos > right.nanos) - Number(left.nanos < right.nanos);
      assert.equal(compareQuantities(quantity(left.text), quantity(right.text)), expected);
      assert.equal(compareQuantities(quantity(right.text), quantity(left.text)), 0 - expected);
    });
    fc.assert(property);
  });

  test("sums and differences are exact", () => {
    const property = fc.property(exact, exact, (left, right) => {
      const [one, other] = [quantity(left.text), quantity(right.text)];
      const nano = (value: bigint): Quantity => ({ ...quantityOf(value), exponent: -9 });
      assert.equal(compareQuantities(addQuantities(one, other), nano(left.nanos + right.nanos)), 0);
      assert.equal(
        compareQuantities(subtractQuantities(one, other), nano(left.nanos - right.nanos)),
        0,
      );
    });
    fc.assert(property);
  });

  test("the canonical form keeps the value and is its own canonical form", () => {
    const property = fc.property(exact, ({ text }) => {
      const printed = formatQuantity(quantity(text));
      assert.equal(compareQuantities(quantity(printed), quantity(text)), 0);
      assert.equal(formatQuantity(quantity(printed)), printed);
    });
    fc.assert(property);
  });

  test("any text is either a quantity or refused, and nothing is thrown", () => {
    fc.assert(fc.property(fc.stringMatching(/^[.+\-eE019kKmMuniGT ]*$/), parses));
  });
});

function parses(text: string): void {
  const parsed = parseQuantity(text);
  if (parsed !== undefined) formatQuantity(parsed);
}
