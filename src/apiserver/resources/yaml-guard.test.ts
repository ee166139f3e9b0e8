import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../kernel/limits.ts";
import { yamlHarm } from "./yaml-guard.ts";

const { jsonDepth, yamlAliases } = limits;

test("aliases are allowed up to the limit and not one more", () => {
  const text = (count: number): string => `a: &x 1\nb: [${Array(count).fill("*x").join(", ")}]\n`;
  assert.equal(yamlHarm(text(yamlAliases)), undefined);
  assert.match(yamlHarm(text(yamlAliases + 1)) ?? "", /too many aliases: at most 100/);
});

test("nesting is allowed up to the limit, in brackets as in blocks", () => {
  const flow = (depth: number): string => `a: ${"[".repeat(depth)}${"]".repeat(depth)}\n`;
  assert.equal(yamlHarm(flow(jsonDepth)), undefined);
  assert.match(yamlHarm(flow(jsonDepth + 1)) ?? "", /nested deeper than 100 levels/);
  assert.equal(yamlHarm(`${"- ".repeat(jsonDepth)}x\n`), undefined);
  assert.match(yamlHarm(`${"- ".repeat(jsonDepth + 1)}x\n`) ?? "", /nested deeper/);
});

test("many lines with markers are not deep, and brackets in texts are no nesting", () => {
  assert.equal(yamlHarm("- a: 1\n".repeat(1000)), undefined);
  assert.equal(yamlHarm(`a: "${"[".repeat(500)}"\nb: |\n  ${"{*".repeat(500)}\n`), undefined);
});

test("a text that is too long, or of too many parts, is better sent as JSON", () => {
  assert.match(yamlHarm(`a: ${"x".repeat(1024 * 1024)}`) ?? "", /limited to 1048576 bytes/);
  assert.match(yamlHarm("a: 1\n".repeat(100_000)) ?? "", /too many parts/);
});
