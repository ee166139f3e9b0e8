import { parseArgs, type ParseArgsConfig } from "node:util";
import type { Call, Command, Terminal } from "./command.ts";
import { usageError } from "./command.ts";

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** Reads the arguments of one command. What does not fit is refused with the command's usage. */
export function parseCall(command: Command, args: readonly string[], terminal: Terminal): Call {
  const parsed = parseStrictly(command, args);
  checkArguments(command, parsed.positionals);
  return callOf(command, parsed, terminal);
}

/** Reads as much as can be read of a command line that is still being typed. */
export function parseUnfinished(
  command: Command,
  args: readonly string[],
  terminal: Terminal,
): Call {
  const options = optionsOf(command);
  const parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: false });
  return callOf(command, { ...parsed, denied: new Set() }, terminal);
}

interface Parsed {
  readonly values: Values;
  readonly positionals: string[];
  /** Switches that were turned off: `--wait=false`. */
  readonly denied: ReadonlySet<string>;
}

function callOf(command: Command, parsed: Parsed, terminal: Terminal): Call {
  const { values, positionals, denied } = parsed;
  return {
    arguments: positionals,
    terminal,
    string: (option) => asString(values[option]) ?? command.options[option]?.default,
    strings: (option) => asStrings(values[option]),
    flag: (option) => {
      const isDefault = command.options[option]?.default === "true" && !denied.has(option);
      return values[option] === true || isDefault;
    },
  };
}

function optionsOf(command: Command): NonNullable<ParseArgsConfig["options"]> {
  return Object.fromEntries(
    Object.entries(command.options).map(([name, option]) => [
      name,
      {
        type: option.type === "boolean" ? ("boolean" as const) : ("string" as const),
        multiple: option.type === "strings",
        ...(option.short ? { short: option.short } : {}),
      },
    ]),
  );
}

function parseStrictly(command: Command, args: readonly string[]): Parsed {
  const { plain, denied } = readSwitches(command, args);
  const options = optionsOf(command);
  try {
    return { ...parseArgs({ args: plain, options, allowPositionals: true, strict: true }), denied };
  } catch (error) {
    const detail = error instanceof Error ? firstSentence(error.message) : String(error);
    throw usageError(`${detail}. Usage: berth ${command.usage}`);
  }
}

/** `--wait=true` and `--wait=false`, which people know from kubectl and Node does not. */
function readSwitches(
  command: Command,
  args: readonly string[],
): { plain: string[]; denied: Set<string> } {
  const denied = new Set<string>();
  const plain: string[] = [];
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  for (const [index, arg] of args.entries()) {
    const [, name = "", value] = /^--([a-z-]+)=(true|false)$/.exec(arg) ?? [];
    const isSwitch = index < end && command.options[name]?.type === "boolean";
    if (!isSwitch) plain.push(arg);
    else if (value === "true") plain.push(`--${name}`);
    else denied.add(name);
  }
  return { plain, denied };
}

/** Node appends advice about `--` to its messages; the first sentence is what people need. */
function firstSentence(message: string): string {
  return (message.split(/\. |\.$/)[0] ?? message).replace(/^U/, "u");
}

function checkArguments(command: Command, given: readonly string[]): void {
  const takesRest = command.arguments.some((name) => name.endsWith("..."));
  const required = command.arguments.filter((name) => !/(\?|\.\.\.)$/.test(name));
  const missing = required[given.length];
  if (missing !== undefined) {
    throw usageError(`${missing} is missing. Usage: berth ${command.usage}`);
  }
  const extra = given[command.arguments.length];
  if (extra !== undefined && !takesRest) {
    throw usageError(`unexpected argument "${extra}". Usage: berth ${command.usage}`);
  }
}

function asString(value: Values[string]): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function asStrings(value: Values[string]): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}
