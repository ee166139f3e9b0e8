import { Lexer } from "yaml";
import { limits } from "../../kernel/limits.ts";

/**
 * YAML that is worth parsing. kubectl turns manifests into JSON before it sends them, so what comes
 * here is small and written by hand; a parser for all of YAML is not what large bodies should meet.
 */
const yamlBytesMax = 1024 * 1024;
/** Far more than such a manifest has, and few enough to be parsed in a moment. */
const lexemesMax = 200_000;

/**
 * Why a YAML text is refused before it is parsed, or undefined. The parser recurses, compares and
 * expands; reading lexemes one by one does none of that, and can stop at the first sign of harm.
 */
export function yamlHarm(text: string): string | undefined {
  if (text.length > yamlBytesMax) {
    return `a YAML body is limited to ${yamlBytesMax} bytes; send it as JSON`;
  }
  const tally: Tally = { lexemes: 0, aliases: 0, flowDepth: 0, markersInLine: 0 };
  for (const lexeme of new Lexer().lex(text)) {
    count(tally, lexeme);
    const harm = harmOf(tally);
    if (harm !== undefined) return harm;
  }
  return undefined;
}

interface Tally {
  lexemes: number;
  aliases: number;
  /** Open brackets and braces. */
  flowDepth: number;
  /** Blocks nest by markers in a line, or by ever more indentation, which costs much text. */
  markersInLine: number;
}

function count(tally: Tally, lexeme: string): void {
  tally.lexemes++;
  switch (lexeme.charAt(0)) {
    case "[":
    case "{":
      if (lexeme.length === 1) tally.flowDepth++;
      return;
    case "]":
    case "}":
      if (lexeme.length === 1) tally.flowDepth--;
      return;
    case "-":
    case "?":
    case ":":
      if (lexeme.length === 1 && tally.flowDepth === 0) tally.markersInLine++;
      return;
    case "*":
      tally.aliases++;
      return;
    case "\n":
    case "\r":
      tally.markersInLine = 0;
  }
}

function harmOf({ lexemes, aliases, flowDepth, markersInLine }: Tally): string | undefined {
  if (Math.max(flowDepth, markersInLine) > limits.jsonDepth) {
    return `the body is nested deeper than ${limits.jsonDepth} levels`;
  }
  if (aliases > limits.yamlAliases) {
    return `the YAML has too many aliases: at most ${limits.yamlAliases} are allowed`;
  }
  return lexemes > lexemesMax ? "the YAML has too many parts; send it as JSON" : undefined;
}
