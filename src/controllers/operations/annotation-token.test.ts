import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { annotations } from "../../api/index.ts";
import { annotationToken } from "./annotation-token.ts";

function said(text: string): string | undefined {
  return annotationToken({ annotations: { [annotations.restartAt]: text } }, "restartAt");
}

describe("what an annotation says, as a status keeps it", () => {
  test("is its own text as long as that fits, and nothing where it is not there", () => {
    assert.equal(said("2026-01-02T03:04:05Z"), "2026-01-02T03:04:05Z");
    assert.equal(said("x".repeat(128)), "x".repeat(128));
    assert.equal(annotationToken({}, "restartAt"), undefined);
  });

  test("fits also where the text does not, and is another for another text", () => {
    const [one, other] = [said("x".repeat(130)), said(`${"x".repeat(130)}y`)];
    assert.ok((one?.length ?? 0) <= 128);
    assert.notEqual(one, other);
    assert.equal(one, said("x".repeat(130)));
    assert.match(one ?? "", /^x{60}… [0-9a-f]{64}$/);
  });
});
