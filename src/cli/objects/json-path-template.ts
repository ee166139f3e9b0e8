import { compileJsonPath, type JsonPath } from "../../kernel/json-path.ts";
import { usageError } from "../command.ts";

/**
 * kubectl's jsonpath templates: text, `{.path}`, `{"literal"}` and `{range .path}…{end}`. Several
 * matches of one path are separated by a space. A template without braces is one path.
 */
export function compileTemplate(text: string): (root: unknown) => string {
  const template = text.includes("{") ? text : `{${text.startsWith(".") ? "" : "."}${text}}`;
  const tokens = tokenize(template);
  const nodes = parseNodes(tokens, false);
  return (root) => render(nodes, root, root);
}

type Node =
  | { readonly is: "text"; readonly text: string }
  | { readonly is: "path"; readonly path: JsonPath; readonly isFromRoot: boolean }
  | { readonly is: "range"; readonly path: JsonPath; readonly body: readonly Node[] };

type Token = { readonly is: "text" | "braces"; readonly text: string };

const braces = /\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}/y;

function tokenize(template: string): Token[] {
  const tokens: Token[] = [];
  for (let position = 0; position < template.length;) {
    const open = template.indexOf("{", position);
    const end = open < 0 ? template.length : open;
    if (end > position) tokens.push({ is: "text", text: template.slice(position, end) });
    if (open < 0) break;
    braces.lastIndex = open;
    const found = braces.exec(template);
    if (found === null) throw unclear(template.slice(open));
    tokens.push({ is: "braces", text: (found[1] ?? "").trim() });
    position = braces.lastIndex;
  }
  return tokens;
}

/** Takes tokens off the list, until it is empty or, inside a range, until its end. */
function parseNodes(tokens: Token[], isRange: boolean): Node[] {
  const nodes: Node[] = [];
  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    if (token.is === "braces" && token.text === "end") {
      if (!isRange) throw unclear("{end}");
      return nodes;
    }
    const { text } = token;
    nodes.push(token.is === "text" ? { is: "text", text } : parseBraces(text, tokens));
  }
  if (isRange) throw unclear("{range} without {end}");
  return nodes;
}

function parseBraces(text: string, tokens: Token[]): Node {
  const range = /^range\s+(.*)$/s.exec(text);
  if (range) return { is: "range", path: compile(range[1] ?? ""), body: parseNodes(tokens, true) };
  const literal = /^"((?:\\.|[^"\\])*)"$|^'((?:\\.|[^'\\])*)'$/s.exec(text);
  if (literal) return { is: "text", text: unescaped(literal[1] ?? literal[2] ?? "") };
  return { is: "path", path: compile(text), isFromRoot: text.startsWith("$") };
}

function compile(text: string): JsonPath {
  const path = text.replace(/^@/, "");
  try {
    return compileJsonPath(path.startsWith(".") || /^[$[]/.test(path) ? path : `.${path}`);
  } catch {
    throw unclear(`{${text}}`);
  }
}

function render(nodes: readonly Node[], root: unknown, current: unknown): string {
  return nodes.map((node) => renderNode(node, root, current)).join("");
}

function renderNode(node: Node, root: unknown, current: unknown): string {
  switch (node.is) {
    case "text":
      return node.text;
    case "path":
      return node.path
        .all(node.isFromRoot ? root : current)
        .map(shown)
        .join(" ");
    case "range":
      return node.path
        .all(current)
        .map((item) => render(node.body, root, item))
        .join("");
  }
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function unescaped(text: string): string {
  const letters: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
  return text.replaceAll(/\\(.)/g, (_, letter: string) => letters[letter] ?? letter);
}

function unclear(part: string): Error {
  return usageError(`the jsonpath template is not understood at ${part}`);
}
