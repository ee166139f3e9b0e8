import { adapters } from "./policy.ts";
import { type CodeFile, type Finding, type Project, type Rule, servesTests } from "./project.ts";
import type { Token } from "./tokens.ts";

/** Words in a row that reach past what was passed in, and what to use instead. */
const bannedWords: readonly { words: readonly string[]; instead: string }[] = [
  { words: ["Date", ".", "now"], instead: "clock.nowMs()" },
  { words: ["new", "Date", "(", ")"], instead: "new Date(clock.nowMs())" },
  { words: ["performance", ".", "now"], instead: "clock.monotonicMs()" },
  { words: ["process", ".", "hrtime"], instead: "clock.monotonicMs()" },
  { words: ["process", ".", "uptime"], instead: "clock.monotonicMs()" },
  { words: ["setTimeout"], instead: "clock.after()" },
  { words: ["setInterval"], instead: "clock.after(), again each time" },
  { words: ["setImmediate"], instead: "clock.after(0, …) or queueMicrotask" },
  { words: ["AbortSignal", ".", "timeout"], instead: "an AbortController and clock.after()" },
  { words: ["Math", ".", "random"], instead: "random.number()" },
  { words: ["randomUUID"], instead: "random.uuid()" },
  { words: ["process", ".", "env"], instead: "an argument that src/app fills" },
  { words: ["process", ".", "exit"], instead: "a returned or thrown value" },
];

/** Node's modules that give the same by another name. */
const bannedModules: Readonly<Record<string, string>> = {
  "node:timers": "clock.after()",
  "node:timers/promises": "sleep(clock, …)",
  "node:perf_hooks": "clock.monotonicMs()",
  "node:process": "an argument that src/app fills",
};

/** Time, chance and the environment come in as arguments, so that a test can hold them. */
export const injected: Rule = (project) => {
  return guarded(project).flatMap((file) => [...bannedUses(file), ...bannedImports(file)]);
};

function guarded(project: Project): CodeFile[] {
  return [...project.code.values()].filter(({ path }) => {
    return !servesTests(path) && !adapters.some(({ pattern }) => pattern.test(path));
  });
}

function bannedUses({ path, code }: CodeFile): Finding[] {
  return code.flatMap((token, index) => {
    if (token.kind !== "word" || isOther(code, index)) return [];
    return bannedWords
      .filter(({ words }) => words.every((word, at) => code[index + at]?.text === word))
      .map(({ words, instead }) => injectedFinding(path, token.line, [words.join(""), instead]));
  });
}

/** Whether the word is a property of something else: `socket.setTimeout`, `{ setTimeout: … }`. */
function isOther(code: readonly Token[], index: number): boolean {
  const before = code[index - 1]?.text ?? "";
  if (code[index]?.text === "randomUUID") return false;
  if (code[index + 1]?.text === ":") return true;
  return (before === "." || before === "?.") && code[index - 2]?.text !== "globalThis";
}

function bannedImports({ path, module }: CodeFile): Finding[] {
  return module.references.flatMap(({ specifier, line }) => {
    const instead = bannedModules[specifier];
    return instead === undefined ? [] : [injectedFinding(path, line, [specifier, instead])];
  });
}

function injectedFinding(path: string, line: number, [what, instead]: [string, string]): Finding {
  const name = what.replace("newDate", "new Date");
  const message = `${name} is out of a test's control: take ${instead} as an argument.`;
  return { path, line, rule: "injected", message };
}

/** A cast is a promise that nobody checks; each gives its reason, tests excepted. */
export const casts: Rule = (project) => {
  return [...project.code.values()]
    .filter(({ path }) => path.endsWith(".ts") && !servesTests(path))
    .flatMap((file) => {
      const reasoned = linesWith(file, /\bcast: \S/);
      return castsIn(file.code)
        .filter(({ line }) => !reasoned.has(line) && !reasoned.has(line - 1))
        .map(({ line }) => {
          const message =
            'casts with "as": parse the value into the type, or say why it holds in a comment ' +
            '"// cast: …" here or one line above.';
          return { path: file.path, line, rule: "casts", message };
        });
    });
};

/** The `as` of casts, told from those of `as const`, of renamed imports and of mapped types. */
function castsIn(code: readonly Token[]): Token[] {
  return code.filter((token, index) => {
    if (token.kind !== "word" || token.text !== "as") return false;
    const before = code[index - 1];
    const after = code[index + 1];
    if (after === undefined || after.text === "const" || before === undefined) return false;
    if (!endsValue(before) || !startsType(after)) return false;
    return !isRenaming(code, index) && !isMappedKey(code, index);
  });
}

function endsValue(token: Token): boolean {
  return token.kind !== "punctuation" || [")", "]", "}", ">"].includes(token.text);
}

function startsType(token: Token): boolean {
  return token.kind !== "punctuation" || ["(", "[", "{"].includes(token.text);
}

/** `import { a as b }`, `export { a as b }`, `import * as c`. */
function isRenaming(code: readonly Token[], index: number): boolean {
  if (code[index - 1]?.text === "*") return true;
  const open = openingBefore(code, index);
  if (code[open]?.text !== "{") return false;
  const lead = [code[open - 1]?.text, code[open - 2]?.text];
  return lead.some((text) => text === "import" || text === "export");
}

/** `{ [Key in keyof T as Name]: … }`. */
function isMappedKey(code: readonly Token[], index: number): boolean {
  const open = openingBefore(code, index);
  return code[open]?.text === "[" && code[open + 2]?.text === "in";
}

/** The index of the bracket in which a token stands, or -1. */
function openingBefore(code: readonly Token[], index: number): number {
  let depth = 0;
  for (let at = index - 1; at >= 0; at -= 1) {
    const token = code[at];
    if (token?.kind !== "punctuation") continue;
    if ([")", "]", "}"].includes(token.text)) depth += 1;
    if (["(", "[", "{"].includes(token.text)) depth -= 1;
    if (depth < 0) return at;
  }
  return -1;
}

/** An exemption from a lint rule names one rule and its reason. */
export const exemptions: Rule = (project) => {
  return [...project.code.values()].flatMap(({ path, tokens }) =>
    tokens
      .filter((token) => token.kind === "comment" && /(ox|es)lint-disable/.test(token.text))
      .filter((token) => !/lint-disable(-next-line|-line)? [\w/@-]+ -- \S.{9}/.test(token.text))
      .map(({ line }) => {
        const message = 'an exemption names one rule and why: "oxlint-disable… rule -- why".';
        return { path, line, rule: "exemptions", message };
      }),
  );
};

function linesWith(file: CodeFile, pattern: RegExp): Set<number> {
  const lines = new Set<number>();
  for (const token of file.tokens) {
    if (token.kind !== "comment" || !pattern.test(token.text)) continue;
    // The comment counts for the line on which it ends: it may need two.
    lines.add(token.line + token.text.split("\n").length - 1);
  }
  return joinRuns(file, lines);
}

/** A `//` comment of several lines counts for its last one. */
function joinRuns(file: CodeFile, lines: ReadonlySet<number>): Set<number> {
  const commentLines = new Set(
    file.tokens.filter((token) => token.text.startsWith("//")).map((token) => token.line),
  );
  const joined = new Set(lines);
  for (const line of lines) {
    for (let next = line + 1; commentLines.has(next); next += 1) joined.add(next);
  }
  return joined;
}
