import { stringValue, type Token } from "./tokens.ts";

/** What takes the place of a call when its guard is broken. */
const brokenForms = { guard: "true", precondition: "[]" } as const;

/** One call of a helper of src/kernel/guard.ts. */
export interface GuardCall {
  readonly form: keyof typeof brokenForms;
  /** Absent where the first argument is no literal. */
  readonly id?: string;
  readonly line: number;
  /** From the name of the helper to its closing bracket. */
  readonly from: Token;
  readonly to: Token;
}

/** The calls in the tokens of a file, comments left out, that imports a helper. */
export function readGuards(code: readonly Token[]): GuardCall[] {
  const forms = importedForms(code);
  return code.flatMap((token, index) => {
    const form = forms.find((name) => name === token.text);
    if (form === undefined || !isCall(code, index)) return [];
    const call = { form, line: token.line, from: token, to: closing(code, index + 1) };
    return [{ ...call, ...idAt(code, index + 2) }];
  });
}

/** Whether the name at an index is called, and is no member of something else. */
function isCall(code: readonly Token[], index: number): boolean {
  return code[index + 1]?.text === "(" && !/^\??\.$/.test(code[index - 1]?.text ?? "");
}

function idAt(code: readonly Token[], index: number): { id?: string } {
  const id = code[index];
  const isLiteral = id?.kind === "string" && code[index + 1]?.text === ",";
  return isLiteral ? { id: stringValue(id) } : {};
}

/** The text with the guard of an id broken; undefined where it has none. */
export function breakGuard(text: string, code: readonly Token[], id: string): string | undefined {
  const call = readGuards(code).find((candidate) => candidate.id === id);
  if (call === undefined) return undefined;
  const start = offsetOf(text, call.from);
  const end = offsetOf(text, call.to) + call.to.text.length;
  return text.slice(0, start) + brokenForms[call.form] + text.slice(end);
}

/** The text with every guard replaced by a call that notes whether it stopped anything. */
export function traceGuards(text: string, code: readonly Token[]): string {
  let traced = text;
  for (const { form, from } of readGuards(code).toReversed()) {
    const start = offsetOf(traced, from);
    const [head, tail] = [traced.slice(0, start), traced.slice(start + form.length)];
    traced = `${head}globalThis.berthTrace.${form}${tail}`;
  }
  return traced;
}

function importedForms(code: readonly Token[]): GuardCall["form"][] {
  const at = code.findIndex(
    ({ kind, text }) => kind === "string" && /kernel\/guard\.ts.$/.test(text),
  );
  const open = code.findLastIndex(({ text }, index) => index < at && text === "import");
  const names = new Set(code.slice(Math.max(open, 0), Math.max(at, 0)).map(({ text }) => text));
  return (["guard", "precondition"] as const).filter((form) => names.has(form));
}

function closing(code: readonly Token[], open: number): Token {
  let depth = 0;
  for (const token of code.slice(open)) {
    if (token.kind === "punctuation" && ["(", "[", "{"].includes(token.text)) depth += 1;
    if (token.kind === "punctuation" && [")", "]", "}"].includes(token.text)) depth -= 1;
    if (depth === 0) return token;
  }
  throw new Error("a call that does not end");
}

function offsetOf(text: string, { line, column }: Token): number {
  let at = 0;
  for (let passed = 1; passed < line; passed += 1) at = text.indexOf("\n", at) + 1;
  return at + column - 1;
}
