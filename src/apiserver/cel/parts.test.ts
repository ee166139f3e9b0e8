import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { parseGoDuration } from "./duration.ts";
import { escapeProperty } from "./escape.ts";
import { containsIp, formatIp, maskPrefix, parseIp, parsePrefix } from "./ip.ts";
import { compilePattern, patternTextMax } from "./pattern.ts";
import { formatTimestamp, parseTimestamp } from "./time.ts";
import { parseQuery, parseUrl } from "./url.ts";

describe("names of properties", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["size", "size"],
    ["boot-order", "boot__dash__order"],
    ["a.b/c", "a__dot__b__slash__c"],
    ["a__b", "a__underscores__b"],
    ["namespace", "__namespace__"],
    ["in", "__in__"],
    ["namespaces", "namespaces"],
    ["1st", undefined],
    ["a b", undefined],
    ["größe", undefined],
    ["", undefined],
  ];
  for (const [property, name] of cases) {
    test(`${JSON.stringify(property)} is ${String(name)}`, () => {
      assert.equal(escapeProperty(property), name);
    });
  }
});

describe("patterns of RE2", () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true],
    ["(?i)^abc$", "ABC", true],
    ["^[[:alpha:]_]+$", "a_B", true],
    ["^[^[:digit:]]+$", "a1", false],
    ["^[]a]+$", "]a", true],
    ["^a\\-b\\_c$", "a-b_c", true],
    ["^[\\-_\\.]+$", "-_.", true],
    ["^\\x41\\x{1F600}$", "A😀", true],
    ["^\\pL\\p{Greek}+$", "aβ", true],
    ["^(?P<year>\\d{4})$", "2026", true],
    ["\\Aabc\\z", "abc", true],
    ["\\Aabc\\z", "abc\n", false],
    ["^a{2}b{x}$", "aab{x}", true],
    ["^.$", "😀", true],
    ["a}b]", "a}b]", true],
    ["^\\/\\@$", "/@", true],
  ];
  for (const [source, text, expected] of cases) {
    test(`${source} and ${JSON.stringify(text)}`, () => {
      assert.equal(compilePattern(source).test(text), expected);
    });
  }

  for (const source of ["(", "a(?=b)", "(?<!a)b", "(a)\\1", "[z-a]", "\\q", "[[:nope:]]", "a\\"]) {
    test(`${source} is refused`, () => assert.throws(() => compilePattern(source), Error));
  }

  test("texts beyond the bound never match", () => {
    assert.equal(compilePattern("a*").test("a".repeat(patternTextMax)), true);
    assert.equal(compilePattern("a*").test("a".repeat(patternTextMax + 1)), false);
  });

  test("matches are found one after the other", () => {
    const pattern = compilePattern("[0-9]+");
    assert.equal(pattern.find("a 12 b 34"), "12");
    assert.deepEqual(pattern.findAll("a 12 b 34", -1), ["12", "34"]);
    assert.deepEqual(pattern.findAll("a 12 b 34", 1), ["12"]);
    assert.equal(pattern.find("none"), undefined);
  });
});

const ipv6 = fc.bigInt({ min: 0n, max: 2n ** 128n - 1n });

describe("addresses", () => {
  test("what is printed is read back, for every address", () => {
    const property = fc.property(ipv6, (value) => {
      const text = formatIp({ bits: 128, value });
      assert.deepEqual(parseIp(text), { bits: 128, value });
    });
    fc.assert(property);
  });

  test("the longest run of zeros is the one that is shortened", () => {
    const printed = (text: string): string => {
      const ip = parseIp(text);
      return ip === undefined ? "none" : formatIp(ip);
    };
    assert.equal(printed("2001:db8:0:0:1:0:0:0"), "2001:db8:0:0:1::");
    assert.equal(printed("0:0:0:0:0:0:0:0"), "::");
    assert.equal(printed("1:0:2:3:4:5:6:7"), "1:0:2:3:4:5:6:7");
    assert.equal(printed("1:2:3"), "none");
    assert.equal(printed(":::"), "none");
  });

  test("a network holds its own addresses and no others", () => {
    const property = fc.property(ipv6, fc.integer({ min: 0, max: 128 }), ipv6, (a, length, b) => {
      const prefix = maskPrefix({ address: { bits: 128, value: a }, length });
      const isInside = a >> BigInt(128 - length) === b >> BigInt(128 - length);
      assert.equal(containsIp(prefix, { bits: 128, value: b }), isInside);
    });
    fc.assert(property);
  });

  test("a prefix is a plain number that fits the address", () => {
    for (const text of ["10.0.0.0/8", "::/0", "::1/128"]) assert.ok(parsePrefix(text), text);
    for (const text of ["10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0"]) {
      assert.equal(parsePrefix(text), undefined, text);
    }
  });
});

describe("times", () => {
  test("durations are exact to the nanosecond", () => {
    assert.equal(parseGoDuration("1h30m0.000000001s"), 5_400_000_000_001n);
    assert.equal(parseGoDuration("-1.5ms"), -1_500_000n);
    assert.equal(parseGoDuration("0"), 0n);
    for (const text of ["", "1", "h", "1d", "1h-1m", "9999999h"]) {
      assert.equal(parseGoDuration(text), undefined, text);
    }
  });

  test("a day that does not exist is no time", () => {
    assert.equal(parseTimestamp("2026-02-29T00:00:00Z"), undefined);
    assert.ok(parseTimestamp("2028-02-29T00:00:00Z") !== undefined);
  });

  test("what is printed is read back, for every time", () => {
    const nanos = fc.bigInt({
      min: -62_135_596_800_000_000_000n,
      max: 253_402_300_799_999_999_999n,
    });
    const property = fc.property(nanos, (value) => {
      assert.equal(parseTimestamp(formatTimestamp(value)), value);
    });
    fc.assert(property);
  });
});

describe("URLs", () => {
  test("the parts are those that Go sees", () => {
    const url = parseUrl("https://user:pw@example.com:8443/a b/%41?k=1&k=2#top");
    assert.deepEqual(url, {
      scheme: "https",
      host: "example.com:8443",
      hostname: "example.com",
      port: "8443",
      escapedPath: "/a%20b/%41",
      rawQuery: "k=1&k=2",
      fragment: "top",
    });
  });

  test("a query may repeat keys, and pairs that cannot be decoded are left out", () => {
    assert.deepEqual(Object.fromEntries(parseQuery("k=1&k=%20+&bad=%zz&c;d=1&e")), {
      k: ["1", "  "],
      e: [""],
    });
  });

  test("any text is read or refused, and nothing is thrown", () => {
    fc.assert(fc.property(fc.webUrl(), (text) => assert.ok(parseUrl(text) !== undefined)));
    fc.assert(fc.property(fc.string(), (text) => void parseUrl(text)));
  });
});
