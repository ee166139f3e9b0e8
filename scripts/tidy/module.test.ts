import assert from "node:assert/strict";
import { test } from "node:test";
import { type Module, readModule } from "./module.ts";
import { codeOf, tokenize } from "./tokens.ts";

function read(text: string): Module {
  return readModule(codeOf(tokenize(text)));
}

function references(text: string): string[] {
  const found = read(text).references;
  return found.map(({ how, names, specifier }) => `${how} ${names.join("+")} from ${specifier}`);
}

test("reads every form of import", () => {
  const text = `
    import "./a.ts";
    import b from "./b.ts";
    import type { C } from "./c.ts";
    import { d, type E, f as g } from "./d.ts";
    import * as h from "./h.ts";
    import data from "./i.json" with { type: "json" };
    const j = await import("./j.ts");
    const k = new URL("./k.ts", import.meta.url);
    type L = import("./l.ts").L;
  `;
  assert.deepEqual(references(text), [
    "import  from ./a.ts",
    "import default from ./b.ts",
    "import C from ./c.ts",
    "import d+E+f from ./d.ts",
    "import * from ./h.ts",
    "import default from ./i.json",
    "lazy * from ./j.ts",
    "url * from ./k.ts",
    "lazy * from ./l.ts",
  ]);
});

test("takes nothing from comments, strings and properties for an import", () => {
  const text = `
    // import "./a.ts";
    const b = 'import "./b.ts"';
    const c = { import: "./c.ts" };
    d.import("./d.ts");
    e.export = import.meta.url;
    new URL("./f.ts", base);
  `;
  assert.deepEqual(references(text), []);
});

test("reads what a file exports at run time", () => {
  const text = `
    export function a() {}
    export async function b() {}
    export const c = 1, ignored = 2;
    export class D {}
    export interface E {}
    export type F = 1;
    export { g, h as i, type J };
    export type { K };
    export { l, m as n } from "./l.ts";
    export function* o() {}
  `;
  assert.deepEqual(
    read(text).values.map((value) => value.name),
    ["a", "b", "c", "D", "g", "i", "o"],
  );
  assert.deepEqual(references(text), ["reexport l+m from ./l.ts"]);
});

test("names what it cannot follow", () => {
  const text = `export * from "./a.ts";\nawait import(name);\nexport default 1;`;
  const { oddities } = read(text);
  assert.deepEqual(oddities, [
    { what: "wildcard", line: 1 },
    { what: "computed import", line: 2 },
    { what: "default export", line: 3 },
  ]);
});
