import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { base64Bytes, checkBase64 } from "./base64.ts";

// What Go 1.26 answers: canonical text, or the offset of its CorruptInputError.
const table: [string, string | number, string][] = [
  ["", "", "nothing is the encoding of nothing"],
  ["QQ==", "QQ==", "padding is demanded"],
  ["QQ=", 3, "padding that ends too early"],
  ["QQ", 0, "no padding blames the start of the last four"],
  ["Q", 0, "a single character is nothing"],
  ["QUJDQ", 4, "what comes before the last four is fine"],
  ["QR==", "QQ==", "unused bits are dropped"],
  ["Q\nQ==\n", "QQ==", "line breaks are skipped"],
  ["QQ=\n=", "QQ==", "even between the signs of the padding"],
  ["QUJD\nQU\n", 6, "but they count in offsets"],
  ["QQ==QQ==", 4, "nothing follows the padding"],
  ["QUI=x", 4, "nothing at all"],
  ["QQ=x", 2, "a half padding is blamed where it began"],
  ["=", 0, "padding of nothing"],
  ["Q===", 1, "padding after one character"],
  ["not base64!", 3, "a blank is no line break"],
  ["QUJ\u00e9", 3, "offsets are in bytes"],
];

for (const [text, expected, reason] of table) {
  test(`base64 ${JSON.stringify(text)} is read as Go reads it: ${reason}`, () => {
    const wanted =
      typeof expected === "string" ? { ok: true, text: expected } : { ok: false, offset: expected };
    assert.deepEqual(checkBase64(text), wanted);
  });
}

test("what encodes any bytes is canonical, and its size is known without decoding", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const text = Buffer.from(bytes).toString("base64");
      assert.deepEqual(checkBase64(text), { ok: true, text });
      assert.equal(base64Bytes(text), bytes.length);
    }),
  );
});

test("a text is refused, or stands for the bytes of its canonical form", () => {
  const characters = fc.constantFrom(...Array.from("AZaz09+/==\n\r- "));
  fc.assert(
    fc.property(fc.array(characters, { maxLength: 12 }), (pieces) => {
      const text = pieces.join("");
      const checked = checkBase64(text);
      if (!checked.ok) return assert.ok(checked.offset <= text.length);
      assert.deepEqual(checkBase64(checked.text), checked);
      assert.equal(checked.text.replaceAll("=", "").length, text.replaceAll(/[=\r\n]/g, "").length);
    }),
  );
});
