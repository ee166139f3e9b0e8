import { builtinResources } from "../../api/builtin/index.ts";
import { berthKinds } from "../../api/index.ts";
import {
  controllersUser,
  createApiServer,
  createCatalogue,
  createDiscovery,
  createOpenApi,
  createResourceHandler,
  createRoleAuthorizer,
  createSchemaRunners,
  type User,
} from "../../apiserver/index.ts";
import { inProcess, type Transport } from "../../client/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createMemoryDisk, openStore } from "../../store/index.ts";
import { type Call, type Command, CommandError, type Terminal } from "../command.ts";
import { parseCall } from "../parse.ts";
import type { Machine } from "./machine.ts";

/** What the tests of the commands share: a machine of files in memory, and a real server in it. */

export interface Bench {
  readonly clock: VirtualClock;
  readonly transport: Transport;
  /** "GET /path" of every request, in order. */
  readonly requests: string[];
  readonly files: Map<string, string>;
  readonly environment: Map<string, string>;
  input: string;
  isTerminal: boolean;
  /** What the person does in the editor. */
  edit: (text: string) => string;
  interrupt: () => void;
  /** Who runs the commands. What is written past them is written by the controllers. */
  user: User;
  machine: Machine;
  run(
    command: Command,
    work: (call: Call, machine: Machine) => Promise<number>,
    args: readonly string[],
  ): Promise<Ran>;
  /** Writes past the commands, as controllers and other people do. */
  write(method: string, path: string, body: unknown): Promise<KubeObject>;
}

export interface Ran {
  readonly code: number;
  readonly out: string[];
  readonly notes: string[];
}

const kubeconfig = `
current-context: c
contexts: [{ name: c, context: { cluster: c, user: u } }]
clusters: [{ name: c, cluster: { server: "https://berth.test:7443" } }]
users: [{ name: u, user: { token: t } }]
`;

export async function createBench(): Promise<Bench> {
  const clock = new VirtualClock();
  const transportAs = await startServer(clock);
  const transport = transportAs(() => controllersUser);
  const requests: string[] = [];
  const files = new Map([["/home/.berth/kubeconfig", kubeconfig]]);
  const environment = new Map<string, string>();
  const bench: Bench = {
    clock,
    transport: (request, signal) => {
      requests.push(`${request.method} ${request.url}`);
      return transportAs(() => bench.user)(request, signal);
    },
    requests,
    files,
    environment,
    input: "",
    isTerminal: false,
    edit: (text) => text,
    interrupt: () => undefined,
    user: controllersUser,
    machine: undefined as unknown as Machine,
    run: (command, work, args) => runOn(bench, { command, work, args }),
    write: async (method, path, body) => {
      const bytes = new TextEncoder().encode(JSON.stringify(body));
      const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
      const headers = { "content-type": type, accept: "application/json" };
      const response = await transport({ method, url: path, headers, body: bytes });
      const text = Buffer.concat([response.body].flat() as Uint8Array[]).toString();
      if (response.status >= 300) throw new Error(text);
      return JSON.parse(text) as KubeObject;
    },
  };
  bench.machine = machineOf(bench);
  return bench;
}

function machineOf(bench: Bench): Machine {
  const { files } = bench;
  return {
    clock: bench.clock,
    get isTerminal() {
      return bench.isTerminal;
    },
    environment: (name) => bench.environment.get(name),
    dial: () => ({ send: bench.transport, close: () => undefined }),
    readFile: (path) => files.get(path),
    readFolder: (path) => {
      const inside = [...files.keys()].filter((file) => file.startsWith(`${path}/`));
      if (inside.length === 0) return undefined;
      const names = new Map<string, boolean>();
      for (const file of inside) {
        const [name = "", ...rest] = file.slice(path.length + 1).split("/");
        names.set(name, rest.length > 0);
      }
      return [...names].map(([name, isFolder]) => ({ name, isFolder }));
    },
    readInput: async () => bench.input,
    writeTemporary: (name, content) => {
      files.set(`/tmp/edit/${name}`, content);
      return `/tmp/edit/${name}`;
    },
    removeTemporary: (path) => void files.delete(path),
    runEditor: async (_, file) => {
      files.set(file, bench.edit(files.get(file) ?? ""));
      return 0;
    },
  };
}

async function runOn(
  bench: Bench,
  {
    command,
    work,
    args,
  }: {
    command: Command;
    work: (call: Call, machine: Machine) => Promise<number>;
    args: readonly string[];
  },
): Promise<Ran> {
  const out: string[] = [];
  const notes: string[] = [];
  const { promise: interrupted, resolve } = Promise.withResolvers<string>();
  bench.interrupt = () => resolve("SIGINT");
  const terminal: Terminal = {
    print: (text) => void out.push(...text.split("\n")),
    note: (text) => void notes.push(text),
    interrupted,
    directory: "/home",
  };
  try {
    const code = await work(parseCall(command, args, terminal), bench.machine);
    return { code, out, notes };
  } catch (error) {
    const code = error instanceof CommandError ? error.exitCode : 1;
    const message = error instanceof Error ? error.message : String(error);
    return { code, out, notes: [...notes, message] };
  }
}

async function startServer(clock: VirtualClock): Promise<(who: () => User) => Transport> {
  const store = await openStore({ journal: createMemoryDisk().open(), clock });
  const catalogue = createCatalogue([...builtinResources, ...berthKinds]);
  const random = countingRandom();
  const environment = { store, catalogue, clock, random, runnerOf: createSchemaRunners() };
  const server = createApiServer({
    ...environment,
    resources: createResourceHandler(environment),
    discovery: createDiscovery(catalogue),
    openApi: createOpenApi(catalogue),
    authenticators: [],
    authorizer: createRoleAuthorizer(),
    health: () => [],
    version: "0.1.0",
    log: () => undefined,
  });
  const transportAs = (who: () => User): Transport => {
    return inProcess((request) => server.handleAs(who(), request));
  };
  const body = new TextEncoder().encode(
    JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } }),
  );
  const headers = { "content-type": "application/json", accept: "application/json" };
  const request = { method: "POST", url: "/api/v1/namespaces", headers, body };
  await transportAs(() => controllersUser)(request);
  return transportAs;
}

function countingRandom(): Random {
  let count = 0;
  const bytes = (size: number): Uint8Array => new Uint8Array(size).fill(++count);
  return {
    number: () => 0.5,
    bytes,
    uuid: () => `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`,
  };
}
