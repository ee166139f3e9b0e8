import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

// Each rule that we lean on is shown to fail once: a linter that reads no types, or no
// configuration, would find nothing wrong for ever.

const repository = join(import.meta.dirname, "..");
const folder = mkdtempSync(join(tmpdir(), "berth-lint-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const lines = (count: number): string => "  work();\n".repeat(count);
const branches = "  if (n > 1) work();\n".repeat(10);

const nested = "if (n > 1) {\n".repeat(4) + "}".repeat(4);

const samples: Record<string, string> = {
  "typescript(no-floating-promises)": "export function a(): void {\n  later();\n}",
  "typescript(no-misused-promises)":
    "export const a = (): void => [1].forEach(async () => later());",
  "typescript(await-thenable)": "export const a = async (): Promise<void> => await work();",
  "typescript(switch-exhaustiveness-check)":
    'export function a(b: "x" | "y"): void {\n  switch (b) {\n    case "x":\n      work();\n  }\n}',
  "typescript(no-explicit-any)": "export const a = (b: any): void => work(b);",
  "typescript(no-non-null-assertion)": "export const a = (b: string | null): string => b!;",
  "typescript(no-unsafe-member-access)": 'export const a = (): unknown => JSON.parse("{}").b;',
  "typescript(ban-ts-comment)": `// @ts-${"ignore".toLowerCase()}\nexport const a = 1;`,
  "typescript(explicit-module-boundary-types)": "export function a() {\n  return 1;\n}",
  "typescript(only-throw-error)": 'export function a(): void {\n  throw "text";\n}',
  "typescript(no-namespace)": "export namespace A {\n  export const b = 1;\n}",
  "eslint(max-lines-per-function)": `export function a(): void {\n${lines(60)}}`,
  "eslint(max-params)": "export function a(b: 1, c: 2, d: 3, e: 4): void {\n  work(b, c, d, e);\n}",
  "eslint(max-depth)": `export function a(n: number): void {\n${nested}}`,
  "eslint(complexity)": `export function a(n: number): void {\n${branches}}`,
  "eslint(no-empty)": "export function a(): void {\n  try {\n    work();\n  } catch {}\n}",
  "eslint(no-shadow)": "export const a = 1;\nexport const b = (a: number): number => a;",
  "eslint(no-console)": 'export const a = (): void => console.log("b");',
  "import(no-default-export)": "export default 1;",
  "unicorn(prefer-node-protocol)": 'export { join } from "path";',
};

const declarations =
  "declare function work(...args: unknown[]): void;\ndeclare function later(): Promise<void>;\n";

const file = (index: number): string => `sample-${index}.ts`;
let found: { code: string; filename: string }[] = [];

before(() => {
  mkdirSync(join(folder, "src"));
  for (const name of [".oxlintrc.json", "tsconfig.json"]) {
    cpSync(join(repository, name), join(folder, name));
  }
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "src", "work.d.ts"), declarations);
  for (const [index, text] of Object.values(samples).entries()) {
    writeFileSync(join(folder, "src", file(index)), `${text}\n`);
  }
  const oxlint = join(repository, "node_modules", ".bin", "oxlint");
  const args = [oxlint, "--type-aware", "--format", "json", "src"];
  const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  found = (JSON.parse(stdout) as { diagnostics: typeof found }).diagnostics;
});

for (const [index, rule] of Object.keys(samples).entries()) {
  test(`${rule} is caught`, () => {
    const codes = found.filter(({ filename }) => filename.endsWith(file(index)));
    assert.ok(
      codes.some(({ code }) => code === rule),
      `only found ${codes.map(({ code }) => code).join(", ") || "nothing"}`,
    );
  });
}
