import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenize } from "./tokens.ts";

function kinds(text: string): string[] {
  return tokenize(text).map((token) => `${token.kind} ${token.text}`);
}

test("tells comments, strings and code apart", () => {
  assert.deepEqual(kinds(`a("// no", 'it\\'s'); // yes\n/* b\n */ c`), [
    "word a",
    "punctuation (",
    'string "// no"',
    "punctuation ,",
    "string 'it\\'s'",
    "punctuation )",
    "punctuation ;",
    "comment // yes",
    "comment /* b\n */",
    "word c",
  ]);
});

test("sees the code inside a template literal, and the text around it as text", () => {
  assert.deepEqual(kinds("`a ${b({ c: `${d}` })} // e` f"), [
    "template `a ${",
    "word b",
    "punctuation (",
    "punctuation {",
    "word c",
    "punctuation :",
    "template `${",
    "word d",
    "template }`",
    "punctuation }",
    "punctuation )",
    "template } // e`",
    "word f",
  ]);
});

test("tells a regular expression from a division", () => {
  assert.deepEqual(
    kinds("x = /[/\"]'/g.test(a / b) ? c++ / 2 : d[0] / 3; return /`/;").filter((kind) =>
      kind.startsWith("regex"),
    ),
    ["regex /[/\"]'/g", "regex /`/"],
  );
});

test("counts lines and columns through everything that spans lines", () => {
  const tokens = tokenize("#!/usr/bin/env node\n/*\n*/ a\n`\n` b\n  c");
  const places = tokens.map(({ text, line, column }) => [text, line, column]);
  assert.deepEqual(places, [
    ["/*\n*/", 2, 1],
    ["a", 3, 4],
    ["`\n`", 4, 1],
    ["b", 5, 3],
    ["c", 6, 3],
  ]);
});

test("does not hang or fail on text that is no program", () => {
  for (const text of ["`${", '"', "/", "/*", "\\", "}}}", "`", "'\n'", "é£"]) {
    assert.ok(tokenize(text).length >= 0);
  }
  assert.ok(tokenize("`${a").some((token) => token.text === "a"));
});
