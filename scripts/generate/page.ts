import { failureMeanings } from "../../src/api/index.ts";
import type { BerthKind } from "../../src/api/index.ts";
import { elsewhere, refusalsOf, sectionsOf } from "./fields.ts";
import type { Section } from "./fields.ts";

/** The page of a kind. `example` is a manifest that is admitted, which a test holds. */
export function pageOf(kind: BerthKind, example: string): string {
  const { spec, status } = kind.schema.properties ?? {};
  return [
    `# ${kind.kind}`,
    "<!-- Written by scripts/generate.ts from src/api. Edit the schema there, not this page. -->",
    kind.description,
    facts(kind),
    "## Example",
    `\`\`\`yaml\n${example.trim()}\n\`\`\``,
    ...(spec ? sectionsOf("spec", spec).map(sectionText) : []),
    ...refusals(kind),
    ...(status ? sectionsOf("status", status).map(sectionText) : []),
    ...conditions(kind),
    "## Columns",
    table(
      ["column", "shows", "from"],
      kind.columns.map(({ name, description, jsonPath, priority }) => [
        name.toUpperCase(),
        priority ? `${description} Only with \`-o wide\`.` : description,
        code(jsonPath),
      ]),
    ),
  ]
    .join("\n\n")
    .concat("\n");
}

/** The page that lists them all. */
export function indexOf(kinds: readonly BerthKind[]): string {
  return [
    "# Kinds",
    "<!-- Written by scripts/generate.ts from src/api. -->",
    "Every kind of Berth, with its fields, the sentences by which a wrong manifest is refused, and its conditions. `kubectl explain KIND.spec` shows the same.",
    table(
      ["kind", "short", "scope", "what it is"],
      kinds.map((kind) => [
        `[${kind.kind}](${kind.singular}.md)`,
        kind.shortNames.map(code).join(", "),
        scope(kind),
        kind.description,
      ]),
    ),
    "For completion and checks in an editor, put this on top of a manifest, with the path to the file of your checkout:",
    "```yaml\n# yaml-language-server: $schema=./schemas/berth.json\n```",
  ]
    .join("\n\n")
    .concat("\n");
}

function facts(kind: BerthKind): string {
  const { status, scale } = kind.subresources;
  const subresources = [...(status ? ["status"] : []), ...(scale ? ["scale"] : [])];
  return table(
    ["", ""],
    [
      ["apiVersion", code(`${kind.group}/${kind.version}`)],
      ["scope", scope(kind)],
      [
        "kubectl get",
        [kind.plural, kind.singular, ...kind.shortNames].filter(first).map(code).join(", "),
      ],
      ["subresources", subresources.map(code).join(", ") || "none"],
      ...(kind.served
        ? []
        : [["served", "with `--serve-all` only: its controller is not there yet"]]),
    ],
  );
}

const tops: Readonly<Record<string, string>> = { spec: "## Spec", status: "## Status" };

function sectionText({ path, description, rows }: Section): string {
  const heading = tops[path] ?? `### ${path}`;
  if (rows.length === 0) return `${heading}\n\n${description}`;
  const body = table(
    ["field", "type", "meaning"],
    rows.map((row) => [
      `${code(row.name)}${row.isRequired ? " (required)" : ""}`,
      row.section ? `[${row.type}](${linkTo(row.section)})` : row.type,
      row.description,
    ]),
  );
  return `${heading}\n\n${description}\n\n${body}`;
}

function refusals(kind: BerthKind): string[] {
  const rows = refusalsOf("", kind.schema).map(({ path, message, onUpdate }) => [
    code(path || "the object"),
    message,
    onUpdate ? "when it changes" : "always",
  ]);
  if (rows.length === 0) return [];
  return [
    "## What is refused",
    "Beside wrong types and missing fields, and before anything is stored:",
    table(["where", "sentence", "checked"], rows),
  ];
}

function conditions(kind: BerthKind): string[] {
  const { types, reasons } = kind.conditions;
  if (Object.keys(types).length === 0) return [];
  return [
    "## Conditions",
    table(["condition", "means"], meanings(types)),
    table(["reason", "means"], meanings({ ...reasons, ...failureMeanings })),
  ];
}

function meanings(words: Readonly<Record<string, string>>): string[][] {
  return Object.entries(words).map(([word, meaning]) => [code(word), meaning]);
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(header), `|${header.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
}

/** What stands in a cell must not end it. */
function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function code(text: string): string {
  return `\`${text}\``;
}

function scope(kind: BerthKind): string {
  return kind.namespaced ? "namespaced" : "cluster";
}

function linkTo(section: string): string {
  return elsewhere[section] ?? `#${anchor(section)}`;
}

/** As GitHub and most others make the anchor of a heading. */
function anchor(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^a-z0-9 _-]/g, "");
}

function first(word: string, index: number, words: readonly string[]): boolean {
  return words.indexOf(word) === index;
}
