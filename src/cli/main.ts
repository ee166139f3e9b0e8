import { type Command, CommandError, exitCodes, type Terminal, usageError } from "./command.ts";
import { commands } from "./commands/index.ts";
import { explain, overview, visible } from "./help.ts";
import { parseCall } from "./parse.ts";
import { createTerminal } from "./terminal.ts";
import { version } from "./version.ts";

/** Runs one command line and returns its exit code. Never throws, never prints a stack trace. */
export async function main(args: readonly string[]): Promise<number> {
  const command = commands.find(({ name }) => name === args[0]);
  return await runCommandLine(args, createTerminal({ isService: command?.isService === true }));
}

export async function runCommandLine(args: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(args, terminal);
  } catch (error) {
    if (error instanceof CommandError) {
      terminal.note(`berth: ${error.message}`);
      return error.exitCode;
    }
    terminal.note(`berth: ${describeFault(error)}`);
    return exitCodes.failed;
  }
}

function dispatch(args: readonly string[], terminal: Terminal): Promise<number> | number {
  const [name, ...rest] = args;
  if (name === undefined || name === "--help" || name === "-h") return print(overview(commands));
  if (name === "--version" || name === "version") return print(`berth ${version()}`);
  if (name === "help") {
    return print(rest[0] === undefined ? overview(commands) : explain(find(rest[0])));
  }
  const command = find(name);
  if (asksForHelp(rest)) return print(explain(command));
  return command.run(parseCall(command, rest, terminal));

  function print(text: string): number {
    terminal.print(text);
    return exitCodes.ok;
  }
}

/** What follows `--` are words, not options. */
function asksForHelp(args: readonly string[]): boolean {
  const options = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  return options.includes("--help") || options.includes("-h");
}

function find(name: string): Command {
  const found = commands.find((command) => command.name === name);
  if (found) return found;
  const known = visible(commands)
    .map((command) => command.name)
    .join(", ");
  throw usageError(`there is no command "${name}". There are: ${known}. See berth help.`);
}

/** A fault of ours or of the machine: its message is the user's, its stack is not. */
function describeFault(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
