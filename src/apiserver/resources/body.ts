import { isScalar, LineCounter, parseDocument, visit, type Document } from "yaml";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { limits } from "../../kernel/limits.ts";
import { scanJson } from "./json-scan.ts";
import { yamlHarm } from "./yaml-guard.ts";

/** A body that could be read. */
export interface ParsedBody {
  readonly value: Json;
  /** Members that were given twice, as strict decoding complains. The last one counts. */
  readonly duplicates: readonly string[];
}

/** Why a body could not be read, in one sentence. The caller says what it should have been. */
export class UnreadableBody extends Error {
  override readonly name = "UnreadableBody";
}

/** Reads JSON. Member names such as "__proto__" are data like any other. */
export function parseJson(body: Uint8Array): ParsedBody {
  const text = decodeText(body);
  const { depth, duplicates } = scanJson(text);
  // Before parsing: what comes after it walks the value recursively.
  if (depth > limits.jsonDepth) throw tooDeep();
  return {
    value: parseText(text),
    duplicates: duplicates.map((path) => `duplicate field ${JSON.stringify(path)}`),
  };
}

/** Reads one YAML document, as far as it says the same as JSON would. JSON is YAML too. */
export function parseYaml(body: Uint8Array): ParsedBody {
  const text = decodeText(body);
  const json = text.trimStart().startsWith("{") ? tryJson(body) : undefined;
  if (json) return json;
  const harm = yamlHarm(text);
  if (harm !== undefined) throw new UnreadableBody(harm);
  const lines = new LineCounter();
  const document = readDocument(text, lines);
  const [first] = document.errors;
  if (first) throw new UnreadableBody(`error converting YAML to JSON: ${firstLine(first.message)}`);
  const value = expandAliases(document);
  assertJson(value, limits.jsonDepth);
  return { value, duplicates: repeatedKeys(document, lines) };
}

function tryJson(body: Uint8Array): ParsedBody | undefined {
  try {
    return parseJson(body);
  } catch (error) {
    if (error instanceof UnreadableBody) return undefined;
    throw error;
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true });

function decodeText(body: Uint8Array): string {
  try {
    return decoder.decode(body);
  } catch {
    throw new UnreadableBody("the body is not valid UTF-8");
  }
}

function parseText(text: string): Json {
  if (text.trim() === "") throw new UnreadableBody("unexpected end of JSON input");
  try {
    // cast: what JSON.parse returns is JSON.
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new UnreadableBody(jsonProblem(error, text));
  }
}

/** What is wrong and where, without the engine's quotation of the text: it may hold a secret. */
function jsonProblem(error: unknown, text: string): string {
  const message = error instanceof Error ? error.message : "";
  const token = /^Unexpected token '(.)'/su.exec(message)?.[1];
  if (token !== undefined) return `invalid character ${JSON.stringify(token)}`;
  const position = / JSON at position (\d+)/.exec(message)?.[1];
  if (position === undefined || Number(position) >= text.length) {
    return "unexpected end of JSON input";
  }
  return `invalid character at position ${position}`;
}

function readDocument(text: string, lines: LineCounter): Document {
  try {
    return parseDocument(text, {
      lineCounter: lines,
      merge: true,
      // The library compares every key with every other; see repeatedKeys.
      uniqueKeys: false,
      prettyErrors: false,
      logLevel: "silent",
    });
  } catch {
    // The parser recurses; a text that overflows its stack is deeper than any limit of ours.
    throw tooDeep();
  }
}

function expandAliases(document: Document): unknown {
  try {
    return document.toJS({ maxAliasCount: limits.yamlAliases });
  } catch (error) {
    if (error instanceof RangeError) throw tooDeep();
    throw new UnreadableBody(
      `the YAML has too many aliases, or one that names no anchor: at most ` +
        `${limits.yamlAliases} are allowed`,
    );
  }
}

function repeatedKeys(document: Document, lines: LineCounter): string[] {
  const repeated: string[] = [];
  visit(document, {
    Map: (_key, map) => {
      const seen = new Set<string>();
      for (const { key } of map.items) {
        if (!isScalar(key)) continue;
        const name = String(key.value);
        const line = lines.linePos(key.range?.[0] ?? 0).line;
        if (!seen.has(name)) seen.add(name);
        else repeated.push(`line ${line}: key ${JSON.stringify(name)} already set in map`);
      }
    },
  });
  return repeated;
}

function assertJson(value: unknown, room: number): asserts value is Json {
  if (room < 0) throw tooDeep();
  if (value === null || typeof value === "string" || typeof value === "boolean") return;
  if (typeof value === "number" && Number.isFinite(value)) return;
  if (Array.isArray(value)) return value.forEach((item) => assertJson(item, room - 1));
  if (!isJsonObject(value)) throw new UnreadableBody("the YAML holds a value that JSON has not");
  for (const key of Object.keys(value)) assertJson(value[key], room - 1);
}

function tooDeep(): UnreadableBody {
  return new UnreadableBody(`the body is nested deeper than ${limits.jsonDepth} levels`);
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0] ?? "";
}
