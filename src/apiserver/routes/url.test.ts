import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ApiError } from "../../kernel/status.ts";
import { parseUrl, queryFlag } from "./url.ts";

function refusalOf(url: string): number | undefined {
  try {
    parseUrl(url);
    return undefined;
  } catch (error) {
    assert.ok(error instanceof ApiError, `${url} threw something else: ${String(error)}`);
    return error.code;
  }
}

test("a path is taken apart and decoded segment by segment", () => {
  const url = parseUrl("/api/v1/namespaces/a%20b/secrets?limit=5&labelSelector=a%3Db");
  assert.deepEqual(url.segments, ["api", "v1", "namespaces", "a b", "secrets"]);
  assert.equal(url.path, "/api/v1/namespaces/a%20b/secrets");
  assert.equal(url.query.get("limit"), "5");
  assert.equal(url.query.get("labelSelector"), "a=b");
});

test("one slash at the end makes no difference, two do", () => {
  assert.deepEqual(parseUrl("/apis/").segments, ["apis"]);
  assert.deepEqual(parseUrl("/apis//").segments, ["apis", ""]);
  assert.deepEqual(parseUrl("/").segments, [""]);
});

const refusals: Record<string, number> = {
  "": 400,
  api: 400,
  "*": 400,
  "http://host/api": 400,
  "/api/%": 400,
  "/api/%zz": 400,
  "/api/%ff": 400,
  "/api/v1/secrets/a%2Fb": 400,
  "/api/v1/secrets/a%00": 400,
  "/api/v1/secrets/a%0a": 400,
  "/api?fieldSelector=%": 400,
  "/api?fieldSelector=%c3%28": 400,
  [`/${"a".repeat(20_000)}`]: 414,
};

for (const [url, code] of Object.entries(refusals)) {
  test(`${JSON.stringify(url.slice(0, 40))} is refused with ${code}`, () => {
    assert.equal(refusalOf(url), code);
  });
}

test("whatever is sent as a URL is taken apart or refused, and never anything else", () => {
  const piece = fc.oneof(
    fc.constantFrom("/", "%", "%2", "%2f", "?", "&", "=", "..", "#"),
    fc.string(),
  );
  const url = fc.array(piece, { maxLength: 12 }).map((parts) => `/${parts.join("")}`);
  fc.assert(
    fc.property(url, (text) => {
      const code = refusalOf(text);
      if (code !== undefined) return code === 400 || code === 414;
      return parseUrl(text).segments.every((segment) => !segment.includes("/"));
    }),
    { numRuns: 2_000 },
  );
});

test("a flag is true unless it says 0 or false", () => {
  const flag = (query: string): boolean => queryFlag(new URLSearchParams(query), "watch");
  assert.deepEqual(["watch", "watch=", "watch=1", "watch=true", "watch=yes"].map(flag), [
    true,
    true,
    true,
    true,
    true,
  ]);
  assert.deepEqual(["", "watch=0", "watch=false", "watch=False"].map(flag), [
    false,
    false,
    false,
    false,
  ]);
});
