/**
 * TypeScript as a flat list of tokens: enough to tell code from comments, strings and regular
 * expressions, which is all that the rules need. It does not check the syntax; the compiler does.
 */
export interface Token {
  kind: "word" | "number" | "string" | "template" | "regex" | "punctuation" | "comment";
  text: string;
  /** From 1. */
  line: number;
  /** From 1. */
  column: number;
}

/** Every token of a file, comments included, in order. */
export function tokenize(text: string): Token[] {
  const scanner: Scanner = { text, at: 0, line: 1, lineStart: 0, tokens: [], braces: [] };
  if (text.startsWith("#!")) scanner.at = endOfLine(text, 0);
  while (skipSpace(scanner)) scanToken(scanner);
  return scanner.tokens;
}

/** The tokens without the comments. */
export function codeOf(tokens: readonly Token[]): Token[] {
  return tokens.filter((token) => token.kind !== "comment");
}

/** What stands between the quotes of a string token, as written. */
export function stringValue(token: Token): string {
  return token.text.slice(1, -1);
}

interface Scanner {
  readonly text: string;
  at: number;
  line: number;
  lineStart: number;
  readonly tokens: Token[];
  /** One entry per open brace: whether its end goes on with a template literal. */
  readonly braces: ("block" | "template")[];
}

const punctuators = ["...", "=>", "?.", "++", "--", "&&", "||", "??"];
const wordPattern = /[\p{ID_Start}$_#][\p{ID_Continue}$]*/uy;
const numberPattern = /\d[\w.]*/y;
const stringPattern = /"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*'/y;
const regexPattern = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const templatePattern = /(?:[^`\\$]|\\[^]|\$(?!\{))*(?:`|\$\{)/y;
const commentPattern = /\/\/[^\n]*|\/\*[^]*?\*\//y;

function skipSpace(scanner: Scanner): boolean {
  while (scanner.at < scanner.text.length) {
    const char = scanner.text[scanner.at];
    if (char === "\n") newLine(scanner, scanner.at);
    else if (char === undefined || char.trim() !== "") return true;
    scanner.at += 1;
  }
  return false;
}

function scanToken(scanner: Scanner): void {
  const char = scanner.text[scanner.at];
  if (scanPattern(scanner, "comment", commentPattern)) return;
  if (char === "`") return scanTemplate(scanner, "`");
  if (char === "}" && scanner.braces.at(-1) === "template") {
    scanner.braces.pop();
    return scanTemplate(scanner, "}");
  }
  if (scanPattern(scanner, "word", wordPattern)) return;
  if (scanPattern(scanner, "number", numberPattern)) return;
  if (scanPattern(scanner, "string", stringPattern)) return;
  if (startsExpression(scanner) && scanPattern(scanner, "regex", regexPattern)) return;
  scanPunctuation(scanner);
}

function scanPattern(scanner: Scanner, kind: Token["kind"], pattern: RegExp): boolean {
  pattern.lastIndex = scanner.at;
  const match = pattern.exec(scanner.text);
  if (match === null) return false;
  push(scanner, kind, match[0]);
  return true;
}

/** One piece of a template literal: up to its end, or up to the next substitution. */
function scanTemplate(scanner: Scanner, opening: "`" | "}"): void {
  templatePattern.lastIndex = scanner.at + 1;
  const rest = templatePattern.exec(scanner.text)?.[0] ?? scanner.text.slice(scanner.at + 1);
  if (rest.endsWith("${")) scanner.braces.push("template");
  push(scanner, "template", opening + rest);
}

function scanPunctuation(scanner: Scanner): void {
  const rest = scanner.text.slice(scanner.at, scanner.at + 3);
  const text = punctuators.find((candidate) => rest.startsWith(candidate)) ?? rest.slice(0, 1);
  if (text === "{") scanner.braces.push("block");
  if (text === "}") scanner.braces.pop();
  push(scanner, "punctuation", text);
}

const expressionKeywords = new Set(
  "return typeof case in of instanceof new delete void throw await yield else do".split(" "),
);
const expressionEnds = new Set([")", "]", "}", "++", "--"]);

/** Whether a slash here begins a regular expression; after a value it divides. */
function startsExpression(scanner: Scanner): boolean {
  const before = scanner.tokens.findLast((token) => token.kind !== "comment");
  if (before === undefined) return true;
  if (before.kind === "word") return expressionKeywords.has(before.text);
  if (before.kind === "template") return before.text.endsWith("${");
  return before.kind === "punctuation" && !expressionEnds.has(before.text);
}

function push(scanner: Scanner, kind: Token["kind"], text: string): void {
  const { line, at, lineStart } = scanner;
  scanner.tokens.push({ kind, text, line, column: at - lineStart + 1 });
  for (let index = text.indexOf("\n"); index !== -1; index = text.indexOf("\n", index + 1)) {
    newLine(scanner, at + index);
  }
  scanner.at = at + text.length;
}

function newLine(scanner: Scanner, at: number): void {
  scanner.line += 1;
  scanner.lineStart = at + 1;
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}
