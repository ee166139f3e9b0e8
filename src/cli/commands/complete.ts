import { isJsonObject } from "../../kernel/json.ts";
import { type Call, type Command, exitCodes } from "../command.ts";
import { visible } from "../help.ts";
import { withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { resolveKind } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { listObjects } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { parseUnfinished } from "../parse.ts";

/** Whoever presses Tab does not wait longer. */
const withinMs = 2000;

/** The hidden command behind the scripts of `berth completion`: a candidate per line. */
export function createComplete(commands: () => readonly Command[]): Command {
  return {
    name: "__complete",
    summary: "print how a command line may go on",
    description: "Prints the candidates for the last of WORDS. For the completion of shells.",
    usage: "__complete -- WORDS...",
    options: {},
    arguments: ["WORDS..."],
    examples: ["berth __complete -- get v"],
    hidden: true,
    run: (call) => runComplete(call, systemMachine, commands()),
  };
}

export async function runComplete(
  call: Call,
  machine: Machine,
  commands: readonly Command[],
): Promise<number> {
  const words = call.arguments;
  const current = words.at(-1) ?? "";
  const candidates = await candidatesOf(call, machine, commands);
  const found = [...new Set(candidates)].filter((candidate) => candidate.startsWith(current));
  for (const candidate of found.toSorted()) call.terminal.print(candidate);
  return exitCodes.ok;
}

async function candidatesOf(
  call: Call,
  machine: Machine,
  commands: readonly Command[],
): Promise<readonly string[]> {
  const [name = "", ...words] = call.arguments;
  const names = visible(commands).map((command) => command.name);
  if (words.length === 0 || name === "help") return [...names, "help"];
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) return [];
  const current = words.at(-1) ?? "";
  if (current.startsWith("-")) return optionWords(command);
  const typed = parseUnfinished(command, words.slice(0, -1), call.terminal);
  const option = optionAwaitingValue(command, words.at(-2));
  const choices = option === undefined ? argumentWords(command, typed) : optionChoices[option];
  if (choices !== undefined) return choices;
  return askBriefly(typed, machine, async (server) => {
    if (option !== undefined) return option === "namespace" ? namesOf(server, "namespaces") : [];
    return takesOrphans(command) ? orphanIds(server) : objectWords(server, typed, current);
  });
}

const optionChoices: Readonly<Record<string, readonly string[]>> = {
  output: ["table", "wide", "json", "yaml", "name", "jsonpath="],
};

/** The words that an argument may be; undefined where the server has to be asked. */
function argumentWords(command: Command, typed: Call): readonly string[] | undefined {
  const last = command.arguments.length - 1;
  const argument = command.arguments[Math.min(typed.arguments.length, last)] ?? "";
  if (/^[a-z]+(\|[a-z]+)*\??$/.test(argument)) return argument.replace("?", "").split("|");
  return command.arguments[0]?.startsWith("KIND") || takesOrphans(command) ? undefined : [];
}

function takesOrphans(command: Command): boolean {
  return command.arguments.includes("ORPHAN...");
}

function optionWords(command: Command): string[] {
  const long = Object.keys(command.options).map((name) => `--${name}`);
  const short = Object.values(command.options).flatMap((o) => (o.short ? [`-${o.short}`] : []));
  return [...long, ...short, "--help"];
}

/** The option whose value is being typed, if any. */
function optionAwaitingValue(command: Command, before: string | undefined): string | undefined {
  const found = Object.entries(command.options).find(([name, { type, short }]) => {
    return type !== "boolean" && (before === `--${name}` || (short && before === `-${short}`));
  });
  return found?.[0];
}

/** Kinds first; after a kind, or behind its slash, the names of its objects. */
async function objectWords(
  server: Server,
  typed: Call,
  current: string,
): Promise<readonly string[]> {
  const [kind] = typed.arguments;
  if (current.includes("/")) {
    const [word = ""] = current.split("/");
    return (await namesOf(server, word)).map((name) => `${word}/${name}`);
  }
  if (kind !== undefined && !kind.includes("/")) return namesOf(server, kind);
  const served = await discover(server);
  const listed = served.filter(({ verbs }) => verbs.includes("list"));
  return listed.flatMap(({ plural, shortNames }) => [plural, ...shortNames]);
}

/** People know what was found by its id on the hypervisor. */
async function orphanIds(server: Server): Promise<string[]> {
  const kind = resolveKind(await discover(server), "orphans");
  const { items } = await listObjects(server, { kind });
  return items.flatMap(({ spec }) => {
    const id = isJsonObject(spec) ? spec["externalId"] : undefined;
    return typeof id === "string" ? [id] : [];
  });
}

async function namesOf(server: Server, word: string): Promise<string[]> {
  const kind = resolveKind(await discover(server), word);
  const { items } = await listObjects(server, { kind, namespace: server.namespace });
  return items.map(({ metadata }) => metadata.name ?? "");
}

/** No server, no candidates: a prompt is no place for complaints. */
async function askBriefly(
  typed: Call,
  machine: Machine,
  read: (server: Server) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  try {
    const ending = await untilStopped(
      typed.terminal,
      { clock: machine.clock, withinMs },
      (signal) =>
        Promise.race([
          withServer(typed, machine, read),
          new Promise<never>((_, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason), { once: true });
          }),
        ]),
    );
    return ending.how === "done" ? ending.result : [];
  } catch {
    // Whatever is wrong, the command itself will say so in full.
    return [];
  }
}
