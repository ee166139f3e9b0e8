import { resolve } from "node:path";
import type { Installation } from "../../app/index.ts";
import type { RoleName } from "../../apiserver/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { type Call, type Command, CommandError, exitCodes, usageError } from "../command.ts";

export const user: Command = {
  name: "user",
  summary: "add, list and remove users of the embedded control plane",
  description:
    "Adds a user with a role and prints their kubeconfig: the token in it is nowhere else. A removed " +
    "user's token is worth nothing at once. The control plane must be running; the data folder's " +
    "kubeconfig is used to reach it.\n\n" +
    "Roles: admin may do everything; edit reads and writes what is in namespaces (not in " +
    "berth-system) and reads the rest; view reads, but no Secrets.",
  usage: "user add NAME --role ROLE [--namespace NS]... | list | remove NAME",
  options: {
    role: { type: "string", value: "ROLE", description: "admin, edit or view" },
    namespace: {
      type: "strings",
      value: "NS",
      short: "n",
      description: "the role holds in this namespace only; may be repeated",
    },
    data: { type: "string", value: "DIR", default: ".berth", description: "the data folder" },
  },
  arguments: ["ACTION", "NAME?"],
  examples: [
    "berth user add anna --role edit -n web > anna.kubeconfig",
    "berth user list",
    "berth user remove anna",
  ],
  run: runUser,
};

async function runUser(call: Call): Promise<number> {
  const [action, name] = call.arguments;
  switch (action) {
    case "add":
      return await add(call, required(name));
    case "list":
      return await list(call);
    case "remove":
      return await remove(call, required(name));
    default:
      throw usageError(`there is no "user ${action}". Usage: berth ${user.usage}`);
  }
}

async function add(call: Call, name: string): Promise<number> {
  const { addUser, systemRandom } = await import("../../app/index.ts");
  const { kubeconfigOf } = await import("../../apiserver/index.ts");
  const role = readRole(call.string("role"));
  const namespaces = call.strings("namespace");
  if (role === "admin" && namespaces.length > 0) {
    throw usageError("an admin has the whole installation: leave --namespace out, or take edit");
  }
  const installation = await connect(call);
  try {
    const token = await addUser(installation.client, { name, role, namespaces }, systemRandom);
    const { url: server, authority: ca } = installation;
    call.terminal.print(kubeconfigOf({ server, ca, token, name }).trimEnd());
    return exitCodes.ok;
  } catch (error) {
    throw explain(error, { AlreadyExists: `there is a user ${name} already: remove them first` });
  } finally {
    installation.close();
  }
}

async function list(call: Call): Promise<number> {
  const { listUsers } = await import("../../app/index.ts");
  const installation = await connect(call);
  try {
    const users = await listUsers(installation.client);
    const rows = users.map(({ user: { name }, role, namespaces }) => {
      return [name, role, namespaces.length === 0 ? "(all)" : namespaces.join(",")];
    });
    printTable(call, [["NAME", "ROLE", "NAMESPACES"], ...rows]);
    return exitCodes.ok;
  } finally {
    installation.close();
  }
}

async function remove(call: Call, name: string): Promise<number> {
  const { removeUser } = await import("../../app/index.ts");
  const installation = await connect(call);
  try {
    await removeUser(installation.client, name);
    call.terminal.print(`user ${name} removed`);
    return exitCodes.ok;
  } catch (error) {
    throw explain(error, { NotFound: `there is no user ${name}: see berth user list` });
  } finally {
    installation.close();
  }
}

async function connect(call: Call): Promise<Installation> {
  const { connectInstallation } = await import("../../app/index.ts");
  return connectInstallation(resolve(call.terminal.directory, call.string("data") ?? ".berth"));
}

function required(name: string | undefined): string {
  if (name === undefined) throw usageError(`NAME is missing. Usage: berth ${user.usage}`);
  return name;
}

const roleNames: readonly RoleName[] = ["admin", "edit", "view"];

function readRole(text: string | undefined): RoleName {
  const role = roleNames.find((name) => name === text);
  if (role !== undefined) return role;
  throw usageError(
    `--role must be admin, edit or view${text === undefined ? "" : `, not ${text}`}`,
  );
}

/** Refusals that have a better sentence here than the API's own. */
function explain(error: unknown, sentences: Readonly<Record<string, string>>): unknown {
  const sentence = error instanceof ApiError ? sentences[error.reason] : undefined;
  return sentence === undefined ? error : new CommandError(sentence, { cause: error });
}

function printTable(call: Call, rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, column) => {
    return Math.max(...rows.map((row) => row[column]?.length ?? 0));
  });
  for (const row of rows) {
    call.terminal.print(
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join("   ")
        .trimEnd(),
    );
  }
}
