import { delimiter, dirname, join, resolve } from "node:path";
import {
  type Connection,
  KubeconfigError,
  loadKubeconfig,
  NetworkError,
} from "../../client/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { type Call, CommandError, type Option } from "../command.ts";
import type { Machine } from "./machine.ts";
import { createServer, type Server } from "./server.ts";

/** The options by which every command that speaks to a server finds it. */
export const serverOptions: Readonly<Record<string, Option>> = {
  kubeconfig: { type: "string", value: "FILE", description: "the kubeconfig to use" },
  context: { type: "string", value: "NAME", description: "the context in it, if not the current" },
  data: {
    type: "string",
    value: "DIR",
    description: "the data folder whose kubeconfig to use (if absent, .berth where it is there)",
  },
};

export const namespaceOption: Readonly<Record<string, Option>> = {
  namespace: {
    type: "string",
    value: "NS",
    short: "n",
    description: "the namespace, if not the context's",
  },
};

/**
 * Runs the work against the server that the call means, and closes it. What goes wrong on the way
 * is told in one sentence: who could not be reached, and what to do about it.
 */
export async function withServer<Result>(
  call: Call,
  machine: Machine,
  work: (server: Server) => Promise<Result>,
): Promise<Result> {
  const found = findKubeconfig(call, machine);
  const connection = loadConnection(call, machine, found);
  const transport = machine.dial(connection);
  const server = createServer({
    url: connection.server,
    namespace: call.string("namespace") ?? connection.namespace ?? "default",
    send: transport.send,
    clock: machine.clock,
  });
  try {
    return await work(server);
  } catch (error) {
    throw explained(error, { url: connection.server, kubeconfig: found.path });
  } finally {
    for (const warning of server.warnings) call.terminal.note(`Warning: ${warning}`);
    transport.close();
  }
}

interface Found {
  readonly path: string;
  readonly text: string;
}

/** In order: --kubeconfig, --data, ./.berth, $KUBECONFIG, ~/.kube/config. */
function findKubeconfig(call: Call, machine: Machine): Found {
  const at = (...parts: string[]): string => resolve(call.terminal.directory, ...parts);
  const named = call.string("kubeconfig");
  if (named !== undefined) return required(machine, at(named), "name another by --kubeconfig");
  const data = call.string("data");
  if (data !== undefined) return required(machine, at(data, "kubeconfig"), "start berth up first");
  for (const path of [at(".berth", "kubeconfig"), ...usualPaths(machine)]) {
    const text = machine.readFile(path);
    if (text !== undefined) return { path, text };
  }
  throw new CommandError(
    "no server is known: start berth up here, or name one by --data DIR or --kubeconfig FILE",
  );
}

/** Of several files in $KUBECONFIG the first that is there counts; they are not merged. */
function usualPaths(machine: Machine): string[] {
  const named = machine.environment("KUBECONFIG");
  if (named !== undefined) return named.split(delimiter).filter((path) => path !== "");
  const home = machine.environment("HOME");
  return home === undefined ? [] : [join(home, ".kube", "config")];
}

function required(machine: Machine, path: string, advice: string): Found {
  const text = machine.readFile(path);
  if (text === undefined) throw new CommandError(`there is no ${path}: ${advice}`);
  return { path, text };
}

function loadConnection(call: Call, machine: Machine, { path, text }: Found): Connection {
  const context = call.string("context");
  const readFile = (name: string): string => {
    const content = machine.readFile(resolve(dirname(path), name));
    if (content === undefined) throw new Error(`there is no ${name}`);
    return content;
  };
  try {
    return loadKubeconfig(text, { readFile, ...(context === undefined ? {} : { context }) });
  } catch (error) {
    if (!(error instanceof KubeconfigError)) throw error;
    throw new CommandError(`${path} cannot be used: ${error.message}`, { cause: error });
  }
}

function explained(error: unknown, at: { url: string; kubeconfig: string }): unknown {
  if (error instanceof ApiError && error.code === 401) {
    const advice = "its token is wrong or no longer valid: ask for a new one (berth user add)";
    return new CommandError(`${at.url} does not know you by ${at.kubeconfig}: ${advice}`, {
      cause: error,
    });
  }
  if (isConnectionFault(error)) {
    const advice = "What was asked last may have been done or not: look with berth get";
    const message = `the connection to ${at.url} broke: ${error.message}. ${advice}`;
    return new CommandError(message, { cause: error });
  }
  if (error instanceof NetworkError) {
    const why = error.message.replace(/^.*cannot be reached: /, "");
    const advice = "Is it running? (berth up)";
    return new CommandError(`${at.url} cannot be reached: ${why}. ${advice}`, { cause: error });
  }
  return error;
}

/** A connection that broke on the way. A system error without an address is not the network's. */
function isConnectionFault(error: unknown): error is Error {
  if (!(error instanceof Error) || !("code" in error)) return false;
  return error.code === "ECONNRESET" || error.code === "EPIPE" || error.code === "ETIMEDOUT";
}
