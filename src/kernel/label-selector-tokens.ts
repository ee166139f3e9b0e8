/** A word is a key, a value or one of the operators `in` and `notin`; the place decides. */
export interface Token {
  readonly type: "word" | "(" | ")" | "," | "!" | "operator" | "end";
  readonly text: string;
}

const blank = /[ \t\r\n]*/y;
const word = /[^ \t\r\n=!(),><]+/y;
const symbol = /==|!=|[=!(),><]/y;

/** Cuts a label selector into tokens; the last one is always "end". */
export function scanLabelSelector(text: string): Token[] {
  const tokens: Token[] = [];
  let position = 0;
  for (;;) {
    position += matchAt(blank, text, position).length;
    if (position >= text.length) return [...tokens, { type: "end", text: "" }];
    const found = matchAt(word, text, position);
    const sign = found === "" ? matchAt(symbol, text, position) : "";
    tokens.push(found === "" ? signToken(sign) : { type: "word", text: found });
    position += found.length + sign.length;
  }
}

function matchAt(pattern: RegExp, text: string, position: number): string {
  pattern.lastIndex = position;
  return pattern.exec(text)?.[0] ?? "";
}

function signToken(text: string): Token {
  switch (text) {
    case "(":
    case ")":
    case ",":
    case "!":
      return { type: text, text };
    default:
      return { type: "operator", text };
  }
}
