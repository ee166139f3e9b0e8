import type { Command } from "./command.ts";

const columnsMax = 88;

/** `berth help`: what there is. */
export function overview(all: readonly Command[]): string {
  const commands = visible(all);
  const width = Math.max(...commands.map((command) => command.name.length));
  const lines = commands.map((command) => `  ${command.name.padEnd(width)}  ${command.summary}`);
  return [
    "Berth declares virtual machines: a VM is a YAML file, and it comes to exist.",
    "",
    "Usage: berth COMMAND [options]",
    "",
    "Commands:",
    ...lines,
    "",
    "`berth help COMMAND` explains one of them.",
  ].join("\n");
}

/** The commands for people. */
export function visible(commands: readonly Command[]): readonly Command[] {
  return commands.filter((command) => command.hidden !== true);
}

/** `berth help COMMAND` and `berth COMMAND --help`. */
export function explain(command: Command): string {
  return [
    `Usage: berth ${command.usage}`,
    "",
    ...command.description.split("\n\n").flatMap((paragraph) => [...wrap(paragraph), ""]),
    ...optionLines(command),
    ...section("Examples:", command.examples),
  ]
    .join("\n")
    .trimEnd();
}

function optionLines(command: Command): string[] {
  const rows = Object.entries(command.options).map(([name, option]) => {
    const short = option.short ? `-${option.short}, ` : "";
    const value = option.type === "boolean" ? "" : ` ${option.value ?? "VALUE"}`;
    const suffix = option.default === undefined ? "" : ` (default ${option.default})`;
    return { left: `${short}--${name}${value}`, right: option.description + suffix };
  });
  rows.push({ left: "-h, --help", right: "this text" });
  const width = Math.max(...rows.map((row) => row.left.length));
  const lines = rows.flatMap((row) => {
    const [first = "", ...rest] = wrap(row.right, columnsMax - width - 4);
    return [
      `  ${row.left.padEnd(width)}  ${first}`,
      ...rest.map((line) => " ".repeat(width + 4) + line),
    ];
  });
  return ["Options:", ...lines, ""];
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}

function wrap(text: string, widthMax = columnsMax): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > widthMax) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return line === "" ? lines : [...lines, line];
}
