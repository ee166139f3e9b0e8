import type { Hypervisor, VirtualMachine } from "../../api/index.ts";
import type { CreateDoctor } from "../../app/index.ts";
import type { Answer, OwnWork } from "../../hypervisor/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { type Call, type Command, CommandError, exitCodes, usageError } from "../command.ts";
import { type Person, systemPerson } from "../connect/person.ts";
import { readCredentials } from "../doctor/hypervisors.ts";
import { serverOptions, withServer } from "../objects/connect.ts";
import { discover, type ServedKind } from "../objects/discovery.ts";
import { followObject } from "../objects/follow-object.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { resolveKind } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { getObject, listObjects } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { say } from "../words/say.ts";
import {
  describeLastWork,
  describeStanding,
  isObserved,
  isUnknown,
  windowOf,
  type LastEpoch,
} from "./takeover-facts.ts";
import { describePlanned } from "./takeover-preview.ts";

export const takeover: Command = {
  name: "takeover",
  summary: "let this installation act on a hypervisor instead of another copy of it",
  description:
    "One copy of an installation acts on a hypervisor at a time. A backup that was restored beside " +
    "the original, or data that was moved to another host, only observes, and says so " +
    "(Superseded, PlaceChanged). This command shows which copy acts, when that was started and when " +
    "it last began a task on the hypervisor, and which VMs this one will delete, restart, shut down, " +
    "start, change and create, and which it will not touch and why; then it asks for the name of " +
    "this installation. The list is what this copy observed and plans: it observes every VM about " +
    "every 10 minutes or more often. After that this one acts, and the other one stops within one tick." +
    "\n\n" +
    "Stop the other copy first. Both declare the same VMs, and what they declare may differ.",
  usage: "takeover HYPERVISOR... | --all [--confirm NAME] [--timeout DURATION]",
  options: {
    all: { type: "boolean", description: "every Hypervisor that is only observed" },
    confirm: {
      type: "string",
      value: "NAME",
      description: "the name of this installation, where nobody can be asked",
    },
    timeout: {
      type: "string",
      value: "DURATION",
      default: "60s",
      description: "how long to wait until this installation acts",
    },
    ...serverOptions,
  },
  arguments: ["HYPERVISOR..."],
  examples: ["berth takeover pve", "berth takeover --all --confirm 7f3f3b52"],
  // Only here: whoever asks for help need not wait for all drivers to load.
  run: async (call) => {
    const { createDoctors } = await import("../../app/index.ts");
    const createDoctor = createDoctors(systemMachine.clock);
    return runTakeover(call, systemMachine, { person: systemPerson, createDoctor });
  },
};

/** Whom a takeover asks besides the server. Tests pass their own. */
export interface TakeoverTools {
  readonly person: Person;
  readonly createDoctor: CreateDoctor;
}

export function runTakeover(call: Call, machine: Machine, tools: TakeoverTools): Promise<number> {
  return withServer(call, machine, async (server) => {
    const kinds = await discover(server);
    const kind = resolveKind(kinds, "hypervisors");
    const named = await readHypervisors(call, server, kind);
    const { items } = await listObjects(server, { kind: resolveKind(kinds, "virtualmachines") });
    // cast: the server admitted them as VirtualMachines.
    const vms = items as unknown as VirtualMachine[];
    const installation = await readInstallation(server, resolveKind(kinds, "configmaps"));
    for (const hypervisor of named) {
      call.terminal.note(describeStanding(hypervisor));
      if (!isObserved(hypervisor)) continue;
      const last = installation.epochs[hypervisor.spec.systemId ?? ""];
      const window = windowOf(hypervisor, last, machine.clock.nowMs());
      const work = await askOwnWork(server, hypervisor, { tools, sinceMs: window.fromMs });
      call.terminal.note(describeLastWork(window, work));
      for (const line of describePlanned(hypervisor, vms)) call.terminal.note(line);
    }
    const observed = named.filter(isObserved);
    if (observed.length === 0) {
      call.terminal.print("nothing to take over");
      return named.some(isUnknown) ? exitCodes.failed : exitCodes.ok;
    }
    await confirm(call, tools.person, nameOf(installation));
    const at = new Date(machine.clock.nowMs()).toISOString();
    const taking = { call, server, machine, kind };
    for (const object of observed) {
      // cast: a Hypervisor is an object of Kubernetes.
      const found = { kind, object: object as unknown as Parameters<typeof say>[1]["object"] };
      await say(server, found, { takeoverAt: tokenOf(at, object) });
    }
    return waitForAll(taking, observed);
  });
}

async function readHypervisors(
  call: Call,
  server: Server,
  kind: ServedKind,
): Promise<Hypervisor[]> {
  const names = call.arguments.map((word) => word.replace(/^[^/]+\//, ""));
  if (call.flag("all") === names.length > 0) {
    throw usageError(`name Hypervisors or give --all. Usage: berth ${takeover.usage}`);
  }
  if (call.flag("all")) {
    const { items } = await listObjects(server, { kind });
    // cast: the server admitted them as Hypervisors.
    const all = items as unknown as Hypervisor[];
    return all.filter((hypervisor) => isObserved(hypervisor) || isUnknown(hypervisor));
  }
  const found = names.map((name) => getObject(server, { kind, namespace: "", name }));
  // cast: the server admitted them as Hypervisors.
  return (await Promise.all(found)) as unknown as Hypervisor[];
}

/** For this very run: a backup of what is written now is started as another one. */
function tokenOf(at: string, { status }: Hypervisor): string {
  return status?.observedBy === undefined ? at : `${at} ${status.observedBy}`;
}

/** Asks the hypervisor itself what was begun with Berth's credentials. */
async function askOwnWork(
  server: Server,
  hypervisor: Hypervisor,
  { tools, sinceMs }: { readonly tools: TakeoverTools; readonly sinceMs: number },
): Promise<Answer<OwnWork>> {
  const credentials = await readCredentials(server, hypervisor);
  if ("check" in credentials) {
    const { message } = credentials;
    return { ok: false, failure: { category: "PermissionDenied", message } };
  }
  const doctor = tools.createDoctor(hypervisor.spec, credentials.values);
  try {
    return await doctor.ownWork(sinceMs);
  } finally {
    doctor.close();
  }
}

interface Installation {
  readonly name?: unknown;
  readonly id?: unknown;
  /** By the hypervisor's own id. */
  readonly epochs: Readonly<Record<string, LastEpoch>>;
}

async function readInstallation(server: Server, kind: ServedKind): Promise<Installation> {
  const at = { kind, namespace: "berth-system", name: "installation" };
  const { data } = await getObject(server, at);
  const { name, id, epochs } = isJsonObject(data) ? data : {};
  return { name, id, epochs: epochsOf(epochs) };
}

/** What somebody damaged tells nothing. */
function epochsOf(text: unknown): Record<string, LastEpoch> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(typeof text === "string" ? text : "{}");
  } catch {
    return {};
  }
  const entries = Object.entries(isJsonObject(parsed) ? parsed : {});
  return Object.fromEntries(
    entries.flatMap(([systemId, value]) => {
      const { run, at } = isJsonObject(value) ? value : {};
      return typeof run === "string" && typeof at === "string" ? [[systemId, { run, at }]] : [];
    }),
  );
}

/** What people type: the name of the installation, or the beginning of its id. */
function nameOf({ name, id }: Installation): string {
  if (typeof name === "string" && name !== "") return name;
  if (typeof id === "string" && id !== "") return id.slice(0, 8);
  throw new CommandError("the ConfigMap berth-system/installation has no id");
}

async function confirm(call: Call, person: Person, name: string): Promise<void> {
  const given = call.string("confirm");
  if (given === undefined && !person.isPresent) {
    throw new CommandError(`nobody can be asked: repeat it with --confirm ${name}`);
  }
  const typed =
    given ?? (await person.ask(`Type the name of this installation, ${name}, to take over: `));
  if (typed !== name) throw new CommandError("that is not its name: nothing was changed");
}

interface Taking {
  readonly call: Call;
  readonly server: Server;
  readonly machine: Machine;
  readonly kind: ServedKind;
}

async function waitForAll(taking: Taking, observed: readonly Hypervisor[]): Promise<number> {
  const { call, machine } = taking;
  const withinMs = readDurationMs(call.string("timeout") ?? "60s", "timeout");
  const limit = { clock: machine.clock, withinMs };
  const ending = await untilStopped(call.terminal, limit, (signal) =>
    Promise.all(observed.map((hypervisor) => untilActing(taking, hypervisor, signal))),
  );
  if (ending.how === "done") return exitCodes.ok;
  call.terminal.note("berth: not taken over yet; that goes on. See berth get hypervisors");
  return exitCodes.failed;
}

async function untilActing(
  { call, server, kind }: Taking,
  { metadata: { name = "" }, status: asked }: Hypervisor,
  signal: AbortSignal,
): Promise<void> {
  for await (const state of followObject(server, { kind, namespace: "", name }, signal)) {
    // cast: the server admitted it as a Hypervisor.
    const now = state as unknown as Hypervisor | undefined;
    if (now !== undefined && isObserved(now)) {
      if (now.status?.observedBy === asked?.observedBy) continue;
      throw new CommandError(
        `hypervisor/${name}: Berth was restarted before it took over. Run berth takeover again`,
      );
    }
    call.terminal.print(`hypervisor/${name} taken over`);
    return;
  }
}
