import { parseArgs } from "node:util";
import type { Call, Command, Terminal } from "./command.ts";
import { usageError } from "./command.ts";

type Values = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** Reads the arguments of one command. What does not fit is refused with the command's usage. */
export function parseCall(command: Command, args: readonly string[], terminal: Terminal): Call {
  const { values, positionals } = parseStrictly(command, args);
  checkArguments(command, positionals);
  return {
    arguments: positionals,
    terminal,
    string: (option) => asString(values[option]) ?? command.options[option]?.default,
    strings: (option) => asStrings(values[option]),
    flag: (option) => values[option] === true,
  };
}

function parseStrictly(
  command: Command,
  args: readonly string[],
): { values: Values; positionals: string[] } {
  const options = Object.fromEntries(
    Object.entries(command.options).map(([name, option]) => [
      name,
      {
        type: option.type === "boolean" ? ("boolean" as const) : ("string" as const),
        multiple: option.type === "strings",
        ...(option.short ? { short: option.short } : {}),
      },
    ]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    const detail = error instanceof Error ? firstSentence(error.message) : String(error);
    throw usageError(`${detail}. Usage: berth ${command.usage}`);
  }
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
