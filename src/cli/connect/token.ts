import { resolve } from "node:path";
import { newTokenCommands, olderReleaseNotes } from "../../drivers/proxmox/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { type Call, CommandError, usageError } from "../command.ts";
import type { Machine } from "../objects/machine.ts";
import type { Person } from "./person.ts";

export interface Token {
  readonly id: string;
  readonly secret: string;
}

const secretVariable = "BERTH_TOKEN_SECRET";
const usualId = "berth@pve!berth";

/**
 * The token, from wherever a secret may come: a file, standard input, the environment or a hidden
 * prompt. Never from an argument, which everybody on the machine can see.
 */
export async function readToken(call: Call, machine: Machine, person: Person): Promise<Token> {
  const given = await readGiven(call, machine);
  const id = call.string("token-id") ?? given.id ?? (await askId(call, person));
  checkId(id);
  const secret = given.secret ?? (await askSecret(id, person));
  if (secret === "") throw new CommandError(`the secret of the token ${id} is empty`);
  if (/\s/.test(secret)) throw new CommandError("a token's secret has no spaces or line breaks");
  return { id, secret };
}

type Given = Partial<Token>;

async function readGiven(call: Call, machine: Machine): Promise<Given> {
  const file = call.string("token-file");
  if (file === "-") return parseToken(await machine.readInput());
  if (file !== undefined) {
    const path = resolve(call.terminal.directory, file);
    const text = machine.readFile(path);
    if (text === undefined) throw new CommandError(`there is no ${path}`);
    return parseToken(text);
  }
  const secret = machine.environment(secretVariable);
  return secret === undefined ? {} : parseToken(secret);
}

/**
 * A secret by itself; `user@realm!name=secret`, as it travels; or what `pveum user token add
 * --output-format json` prints.
 */
export function parseToken(text: string): Given {
  const trimmed = text.trim();
  if (trimmed.startsWith("{")) return parsePrinted(trimmed);
  const [, id, secret] = /^(?:PVEAPIToken=)?([^=\s]+![^=\s]+)=(\S+)$/.exec(trimmed) ?? [];
  return id === undefined || secret === undefined ? { secret: trimmed } : { id, secret };
}

function parsePrinted(text: string): Given {
  try {
    const printed: unknown = JSON.parse(text);
    if (!isJsonObject(printed)) return { secret: text };
    const { "full-tokenid": id, value: secret } = printed;
    if (typeof id === "string" && typeof secret === "string") return { id, secret };
  } catch {
    // No JSON after all; the check of the secret's form says so.
  }
  return { secret: text };
}

const idForm = /^[^\s@!=:/]+@[A-Za-z][A-Za-z0-9.\-_]+![A-Za-z][A-Za-z0-9.\-_]+$/;

export function checkId(id: string): void {
  // Not repeated: what was typed may be the secret.
  if (id.includes("=")) throw usageError("--token-id is the id only: the secret is asked for");
  if (!idForm.test(id)) throw usageError(`a token's id is user@realm!name, not "${id}"`);
}

async function askId(call: Call, person: Person): Promise<string> {
  for (const line of howToMakeOne()) call.terminal.note(line);
  if (!person.isPresent) {
    throw usageError("--token-id is missing, and nobody is at the terminal to be asked for it");
  }
  return (await person.ask(`Token id [${usualId}]: `)) || usualId;
}

/** Before there is a token nobody can ask for the version, so all of them are told. */
function howToMakeOne(): string[] {
  return [
    "Berth needs an API token. To make one, on a node, as root:",
    ...newTokenCommands(usualId).map((command) => `  ${command}`),
    ...olderReleaseNotes().map((note) => `(${note})`),
    "",
  ];
}

async function askSecret(id: string, person: Person): Promise<string> {
  if (person.isPresent) return await person.askSecretly(`Secret of ${id} (not shown): `);
  throw usageError(
    `the secret of ${id} is missing: give it by --token-file FILE (- is standard input) ` +
      `or in ${secretVariable}`,
  );
}
