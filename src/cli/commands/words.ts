import { formatTime } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { type Call, type Command, CommandError, exitCodes, usageError } from "../command.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { deleteObject, waitUntilGone } from "../objects/delete-object.ts";
import type { Found } from "../objects/found.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import type { Server } from "../objects/server.ts";
import { cancelWork } from "../words/cancel.ts";
import { onlyObserved } from "../words/only-observed.ts";
import { isPaused, nameOf, readNamed, say, type Words } from "../words/say.ts";

const machines = ["VirtualMachine"];
/** Kinds whose controllers try again by the clock. */
const retried = [...machines, "Hypervisor", "VMImage", "VMSet", "VMSnapshot", "GitSource"];

interface Word {
  readonly name: string;
  readonly summary: string;
  readonly description: string;
  readonly kinds: readonly string[];
  readonly done: string;
  /** What it asks for is not done while the object is paused. */
  readonly waitsForResume?: boolean;
  /**
   * What becomes of it where this copy only observes. A restart that waited for a takeover would
   * come when nobody expects it any more.
   */
  readonly whenObserved?: "refused" | "observes";
  readonly words: (nowText: string) => Words;
}

const pauseWord: Word = {
  name: "pause",
  summary: "leave machines alone until they are resumed",
  description:
    "Nothing is written to the hypervisor for a paused object, whatever is declared; it is still " +
    "looked at, and its status says what is seen. Work that is under way goes on: berth cancel " +
    "ends it.",
  kinds: machines,
  done: "paused",
  words: () => ({ paused: "true" }),
};

const resumeWord: Word = {
  name: "resume",
  summary: "go on with machines that were paused",
  description: "Takes back berth pause and berth cancel: what is declared is worked on again.",
  kinds: machines,
  done: "resumed",
  words: () => ({ paused: null, cancel: null }),
};

const retryWord: Word = {
  name: "retry",
  summary: "try again now what failed or stalled",
  description:
    "Ends the wait for the next attempt, and a stall: what failed as often as it may is tried from " +
    "the beginning. It is not a repair: what was wrong and still is fails again. A paused object " +
    "is tried when it is resumed. Where another copy of this installation acts on the hypervisor, " +
    "it is only observed again.",
  kinds: retried,
  done: "is tried again",
  waitsForResume: true,
  whenObserved: "observes",
  words: (nowText) => ({ reconcileAt: nowText }),
};

const restartWord: Word = {
  name: "restart",
  summary: "restart machines, once",
  description:
    "Asks the guest to shut down, as spec.shutdown says, and starts the machine again. That is done " +
    "once, also if Berth itself is restarted meanwhile. Changes that waited for a restart are made. " +
    "A paused machine restarts when it is resumed. Where another copy of this installation acts on " +
    "the hypervisor, it is refused.",
  kinds: machines,
  done: "restarts",
  waitsForResume: true,
  whenObserved: "refused",
  words: (nowText) => ({ restartAt: nowText }),
};

export const pause: Command = commandOf(pauseWord);
export const resume: Command = commandOf(resumeWord);
export const retry: Command = commandOf(retryWord);
export const restart: Command = commandOf(restartWord);

function commandOf(word: Word): Command {
  const { name, summary, description, kinds } = word;
  const usage = `${name} KIND/NAME... | KIND NAME... [-n NS]`;
  const example = kinds.includes("Hypervisor") ? [`berth ${name} hypervisor/pve`] : [];
  const command: Command = {
    name,
    summary,
    description,
    usage,
    options: { ...namespaceOption, ...serverOptions },
    arguments: ["KIND/NAME", "NAME..."],
    examples: [`berth ${name} vm/web`, ...example],
    run: (call) => runWord(call, systemMachine, command),
  };
  return command;
}

const words: readonly Word[] = [pauseWord, resumeWord, retryWord, restartWord];

export function runWord(call: Call, machine: Machine, { name, usage }: Command): Promise<number> {
  const word = words.find((candidate) => candidate.name === name);
  if (word === undefined) throw usageError(`there is no word ${name}`);
  return withServer(call, machine, async (server) => {
    const nowText = formatTime(machine.clock.nowMs());
    const named = await readNamed(call, server, { usage, kinds: word.kinds });
    const observed = await observedOf(server, named, word);
    // Of several none is asked for where one is refused.
    if (word.whenObserved === "refused") refuseObserved(named, observed);
    for (const found of named) {
      const object = await say(server, found, word.words(nowText));
      const hypervisor = observed.get(found.object);
      const done = hypervisor === undefined ? doneOf(word, object) : observedAgain(hypervisor);
      call.terminal.print(`${nameOf(found)} ${done}`);
    }
    return exitCodes.ok;
  });
}

function doneOf({ waitsForResume, done }: Word, object: KubeObject): string {
  // No other kind can be paused.
  const mayBePaused = machines.includes(object.kind) && waitsForResume === true;
  return mayBePaused && isPaused(object) ? `is paused: it ${done} when it is resumed` : done;
}

async function observedOf(
  server: Server,
  named: readonly Found[],
  { whenObserved }: Word,
): Promise<ReadonlyMap<KubeObject, string>> {
  if (whenObserved === undefined) return new Map();
  return onlyObserved(
    server,
    named.map(({ object }) => object),
  );
}

function refuseObserved(named: readonly Found[], observed: ReadonlyMap<KubeObject, string>): void {
  const found = named.find(({ object }) => observed.has(object));
  if (found === undefined) return;
  const hypervisor = observed.get(found.object) ?? "";
  throw new CommandError(
    `${nameOf(found)}: this copy of the installation only observes hypervisor/${hypervisor}, so ` +
      "nothing was requested. Ask the copy that acts, or let this one act: " +
      `berth takeover ${hypervisor}`,
  );
}

function observedAgain(hypervisor: string): string {
  const only = `this copy of the installation only observes hypervisor/${hypervisor}`;
  return `is observed again: ${only}, and nothing is tried before berth takeover ${hypervisor}`;
}

export const cancel: Command = {
  name: "cancel",
  summary: "end the work on a machine that is under way",
  description:
    "Stops the hypervisor's task of the open operation, and of the next one where the work had gone " +
    "on by then; waits until nothing is under way, and tells how the machine was seen to be. The object is paused by it, so that the same does not begin anew: " +
    "edit it if you like, then berth resume.",
  usage: "cancel KIND/NAME | KIND NAME [-n NS] [--timeout DURATION]",
  options: {
    timeout: {
      type: "string",
      value: "DURATION",
      default: "60s",
      description: "how long to wait for the end of the work",
    },
    ...namespaceOption,
    ...serverOptions,
  },
  arguments: ["KIND/NAME", "NAME?"],
  examples: ["berth cancel vm/web"],
  run: (call) => runCancel(call, systemMachine),
};

export function runCancel(call: Call, machine: Machine): Promise<number> {
  return withServer(call, machine, async (server) => {
    const named = await readNamed(call, server, { usage: cancel.usage, kinds: machines });
    const [found, ...others] = named;
    if (found === undefined || others.length > 0) {
      throw usageError(`name one object. Usage: berth ${cancel.usage}`);
    }
    return cancelWork(call, { server, machine, found });
  });
}

export const forget: Command = {
  name: "forget",
  summary: "let an object go whose machine or hypervisor is gone for good",
  description:
    "Deletes the object without destroying anything, and waits until it is gone. Where the " +
    "hypervisor answers, the machine is let go as by deletionPolicy: Retain. Where the hypervisor " +
    "or the node of the machine cannot be reached, something else has its id, or it may not be " +
    "written to, it is let go as it is: nothing is touched, and its Claim stays as Released, so " +
    "that a machine which comes back is nobody's orphan. The reason is kept in the Claim and in " +
    "an Event.\n\nCtrl-C ends the waiting, and it is let go all the same.",
  usage: "forget KIND/NAME... --reason TEXT [-n NS] [--timeout DURATION]",
  options: {
    reason: {
      type: "string",
      value: "TEXT",
      description: "why, for whoever reads the Claim later",
    },
    timeout: {
      type: "string",
      value: "DURATION",
      default: "60s",
      description: "how long to wait until all are gone",
    },
    ...namespaceOption,
    ...serverOptions,
  },
  arguments: ["KIND/NAME", "NAME..."],
  examples: ['berth forget vm/web --reason "the cluster in Graz was scrapped"'],
  run: (call) => runForget(call, systemMachine),
};

export function runForget(call: Call, machine: Machine): Promise<number> {
  const reason = call.string("reason")?.trim() ?? "";
  if (reason === "") throw usageError("--reason is missing: it is kept for whoever asks later");
  const withinMs = readDurationMs(call.string("timeout") ?? "60s", "timeout");
  return withServer(call, machine, async (server) => {
    const named = await readNamed(call, server, { usage: forget.usage, kinds: machines });
    for (const found of named) {
      const object = await say(server, found, { forget: reason, paused: null });
      const deletion = { propagationPolicy: "Background", isDryRun: false } as const;
      await deleteObject(server, { ...found, object }, deletion);
    }
    return forgetEach(call, { server, machine, named, withinMs });
  });
}

interface Forgetting {
  readonly server: Server;
  readonly machine: Machine;
  readonly named: readonly Found[];
  readonly withinMs: number;
}

/** Forgotten is what is gone: until then somebody may still have to look at the hypervisor. */
async function forgetEach(
  call: Call,
  { server, machine, named, withinMs }: Forgetting,
): Promise<number> {
  const { terminal } = call;
  const left = new Set(named);
  const ending = await untilStopped(
    terminal,
    { clock: machine.clock, withinMs },
    async (signal) => {
      const waits = named.map(async (found) => {
        await waitUntilGone(server, found, signal);
        left.delete(found);
        terminal.print(`${nameOf(found)} forgotten`);
      });
      await Promise.all(waits);
    },
  );
  if (ending.how === "done") return exitCodes.ok;
  for (const found of left) terminal.print(`${nameOf(found)} is being let go`);
  terminal.note("berth: not gone yet; that goes on. What it waits for: berth why");
  return exitCodes.failed;
}
