/**
 * Regular expressions, in one place. Kubernetes speaks RE2, which runs in linear time and has no
 * look-around and no back-references; here they run on JavaScript's engine, which backtracks. The
 * patterns are those of Berth's own schemas today. When users bring their CRDs, put an RE2 engine
 * in here: nothing else in the server makes a RegExp from a schema or a rule.
 */
export interface Pattern {
  /** Whether the pattern occurs in the text, which must not be longer than `patternTextMax`. */
  test(text: string): boolean;
  /** The first match, or undefined. */
  find(text: string): string | undefined;
  /** All matches that do not overlap, at most `limit`; a negative limit means all. */
  findAll(text: string, limit: number): string[];
}

/**
 * Longer texts are never matched: they count as not matching. No field with a pattern has a use for
 * them, and the bound keeps the quadratic cases of a backtracking engine below a millisecond or so.
 */
export const patternTextMax = 16 * 1024;

/** Longer patterns are refused, as RE2 refuses those that compile to too large a program. */
const patternSourceMax = 10_000;

/** Compiles a pattern in RE2's syntax. Throws an Error with a sentence when it is not valid. */
export function compilePattern(source: string): Pattern {
  const regExp = toRegExp(source, "u");
  const global = toRegExp(source, "gu");
  const fits = (text: string): boolean => text.length <= patternTextMax;
  return {
    test: (text) => fits(text) && regExp.test(text),
    find: (text) => (fits(text) ? regExp.exec(text)?.[0] : undefined),
    findAll: (text, limit) => {
      const found = fits(text) ? (text.match(global) ?? []) : [];
      return limit < 0 ? found : found.slice(0, limit);
    },
  };
}

function toRegExp(source: string, flags: string): RegExp {
  if (source.length > patternSourceMax) throw new Error("the pattern is too long");
  const { body, extraFlags } = takeLeadingFlags(source);
  return new RegExp(translate(body), flags + extraFlags);
}

/** RE2 writes flags into the pattern, "(?i)…"; only leading ones have a JavaScript form. */
function takeLeadingFlags(source: string): { body: string; extraFlags: string } {
  const leading = /^\(\?([ims]+)\)/.exec(source);
  if (leading === null) return { body: source, extraFlags: "" };
  const flags = [...new Set(leading[1] ?? "")].join("");
  return { body: source.slice(leading[0].length), extraFlags: flags };
}

const escapeForm = String.raw`\\(?:x\{[0-9A-Fa-f]+\}|x[0-9A-Fa-f]{2}|[pP]\{[^}]*\}|[pP]\w|[^]|$)`;
const classForm = String.raw`\[\^?\]?(?:\[:\^?\w+:\]|\\[^]|[^\]\\])*\]`;
const groupForm = String.raw`\(\?(?:P<|<[=!]|[=!])`;
const repeatForm = String.raw`\{\d+(?:,\d*)?\}`;
const token = new RegExp(
  `(${classForm})|(${escapeForm})|(${groupForm})|(${repeatForm})|([^])`,
  "gu",
);

/** What RE2 writes differently, or JavaScript allows and RE2 does not. */
function translate(source: string): string {
  return source.replaceAll(token, (text, ...[charClass, escape, group, repeat]: unknown[]) => {
    if (charClass !== undefined) return translateClass(text);
    if (escape !== undefined) return translateEscape(text, false);
    if (group !== undefined) return translateGroup(text);
    // Braces and brackets that are not syntax are plain characters in RE2.
    return repeat === undefined && /^[{}\]]$/.test(text) ? `\\${text}` : text;
  });
}

function translateGroup(text: string): string {
  if (text !== "(?P<") throw new Error("look-around is not supported");
  return "(?<";
}

const inClass = new RegExp(String.raw`\[:(\^?)(\w+):\]|(${escapeForm})|([^])`, "gu");

/** "[]a]" begins with a bracket that stands for itself; "[[:alpha:]_]" holds a named class. */
function translateClass(text: string): string {
  const [opening = "["] = /^\[\^?/.exec(text) ?? [];
  const members = text.slice(opening.length, -1);
  const translated = members.replaceAll(
    inClass,
    (member: string, ...[negation, name, escape]: (string | undefined)[]) => {
      if (name !== undefined) return posixClass(name, negation !== "");
      if (escape !== undefined) return translateEscape(member, true);
      return /^[[\]]$/.test(member) ? `\\${member}` : member;
    },
  );
  return `${opening}${translated}]`;
}

/** Escapes that RE2 has and JavaScript writes in another way. */
const renamedEscapes: Readonly<Record<string, string>> = {
  A: "(?<![^])",
  z: "(?![^])",
};

const sameEscapes = /^[\^$\\.*+?()[\]{}|/dDwWsSnrtfv0]$/;

function translateEscape(escape: string, isInClass: boolean): string {
  const kind = escape.slice(1);
  if (/^[xpP]./.test(kind)) return translateLongEscape(escape, kind.slice(0, 1));
  if (sameEscapes.test(kind)) return escape;
  // Word boundaries and ends of the text are places; a class holds only characters.
  if (/[AzbB]/.test(kind) && !isInClass) return renamedEscapes[kind] ?? escape;
  if (kind === "a") return "\\x07";
  // Among them are back-references, which RE2 does not have.
  if (/^[0-9A-Za-z]?$/.test(kind)) throw new Error(`invalid escape sequence: \`${escape}\``);
  return kind === "-" && isInClass ? escape : kind;
}

function translateLongEscape(escape: string, kind: string): string {
  if (kind === "x") return escape.includes("{") ? `\\u${escape.slice(2)}` : escape;
  const name = escape.includes("{") ? escape.slice(3, -1) : (escape[2] ?? "");
  return /^(L|M|N|P|S|Z|C)[a-z]?$/.test(name) ? `\\${kind}{${name}}` : `\\${kind}{Script=${name}}`;
}

const posixClasses: Readonly<Record<string, string>> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7F",
  blank: "\\t ",
  cntrl: "\\x00-\\x1F\\x7F",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`\\{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

function posixClass(name: string, isNegated: boolean): string {
  const members = posixClasses[name];
  if (members === undefined || isNegated) throw new Error(`invalid character class: [:${name}:]`);
  return members;
}
