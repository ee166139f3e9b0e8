/** Values in the words of Go's fmt package, because that is how kube-apiserver prints them. */

/** `%q`: double quotes, with what cannot be printed escaped. */
export function goQuote(text: string): string {
  let quoted = '"';
  for (const char of text) quoted += goQuoteChar(char);
  return `${quoted}"`;
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;

function goQuoteChar(char: string): string {
  const escape = shortEscapes[char];
  if (escape !== undefined) return escape;
  if (printable.test(char)) return char;
  const code = char.codePointAt(0) ?? 0;
  // A lone surrogate cannot be in Go's UTF-8; it arrives there as the replacement character.
  if (code >= 0xd800 && code <= 0xdfff) return "\ufffd";
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}

/** `%v` of a number: shortest form, with an exponent below 1e-4 and from 1e21 on. */
export function goNumber(value: number): string {
  const magnitude = Math.abs(value);
  if (Number.isInteger(value) && magnitude < 1e21) return BigInt(value).toString();
  if (magnitude >= 1e-4 && magnitude < 1e21) return value.toString();
  const [digits = "", exponent = "0"] = value.toExponential().split("e");
  const sign = exponent.startsWith("-") ? "-" : "+";
  return `${digits}e${sign}${exponent.replace(/^[+-]/, "").padStart(2, "0")}`;
}

/** The value of a field error: scalars plainly, everything else in Go syntax. */
export function goShown(value: unknown): string {
  if (value === null || value === undefined) return '"null"';
  return typeof value === "object" ? goSyntax(value) : goScalar(value);
}

/** `%#v` of a decoded JSON value; the keys of a map are sorted. */
function goSyntax(value: unknown): string {
  if (value === null || value === undefined) return "interface {}(nil)";
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(", ")}}`;
  if (typeof value !== "object") return goScalar(value);
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  const pairs = entries.map(([key, item]) => `${goQuote(key)}:${goSyntax(item)}`);
  return `map[string]interface {}{${pairs.join(", ")}}`;
}

function goScalar(value: unknown): string {
  if (typeof value === "number") return goNumber(value);
  return typeof value === "string" ? goQuote(value) : String(value);
}
