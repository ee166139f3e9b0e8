import { type Call, type Command, CommandError, exitCodes, usageError } from "../command.ts";
import { serverOptions, withServer } from "../objects/connect.ts";
import { placeOf } from "../objects/delete-object.ts";
import { discover } from "../objects/discovery.ts";
import { type Expectation, readExpectation } from "../objects/expectation.ts";
import { followObject } from "../objects/follow-object.ts";
import { findAll, refuseContradictions, selectOptions } from "../objects/found.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { shownName } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import type { ObjectAt } from "../objects/paths.ts";
import type { Server } from "../objects/server.ts";
import { readTargets, type Target } from "../objects/targets.ts";

export const wait: Command = {
  name: "wait",
  summary: "wait until objects are as you want them",
  description:
    "Waits until every object named has the condition, the value at the path, is there, or is gone. " +
    "A condition counts only if it speaks of the newest declaration.\n\n" +
    "When the time is up the exit code is 1, and what is missing is named.",
  usage: "wait KIND/NAME... --for=condition=Ready|delete|create|jsonpath=PATH=VALUE",
  options: {
    for: {
      type: "string",
      value: "WHAT",
      description: "condition=TYPE[=STATUS], jsonpath='{PATH}'[=VALUE], create or delete",
    },
    timeout: {
      type: "string",
      value: "DURATION",
      default: "30s",
      description: "how long to wait; 0 looks once, below 0 is a week",
    },
    all: { type: "boolean", description: "all objects of the kind in the namespace" },
    ...selectOptions,
    ...serverOptions,
  },
  arguments: ["KIND", "NAME..."],
  examples: [
    "berth wait vm/web --for=condition=Ready --timeout=60s",
    "berth wait vm --all --for=condition=Ready",
    "berth wait vm/web --for=jsonpath='{.status.powerState}'=Running",
  ],
  run: (call) => runWait(call, systemMachine),
};

const weekMs = 7 * 24 * 3_600_000;

export async function runWait(call: Call, machine: Machine): Promise<number> {
  const expectation = readExpectation(call.string("for"));
  const askedMs = readDurationMs(call.string("timeout") ?? "30s", "timeout");
  const withinMs = askedMs < 0 ? weekMs : askedMs;
  return withServer(call, machine, async (server) => {
    const targets = readTargets(await discover(server), call.arguments, wait.usage);
    refuseContradictions(call, targets);
    const places = await placesOf({ call, server, targets, expectation });
    if (places === undefined) return exitCodes.failed;
    const open = new Set(places);
    const limit = withinMs === 0 ? {} : { withinMs };
    const ending = await untilStopped(call.terminal, { clock: machine.clock, ...limit }, (signal) =>
      Promise.all(places.map((at) => meet(at, signal))),
    );
    if (open.size === 0) return exitCodes.ok;
    if (ending.how === "interrupted") return exitCodes.failed;
    for (const { kind, name } of open) {
      call.terminal.note(
        `berth: timed out waiting for ${expectation.shown} on ${shownName(kind, name)}`,
      );
    }
    return exitCodes.failed;

    async function meet(at: ObjectAt, signal: AbortSignal): Promise<void> {
      for await (const state of followObject(server, at, signal)) {
        if (expectation.isMet(state)) break;
        if (state === undefined && expectation.needsObject) {
          throw new CommandError(`${shownName(at.kind, at.name)} is not there`);
        }
        if (withinMs === 0) return;
      }
      open.delete(at);
      call.terminal.print(`${shownName(at.kind, at.name)} ${expectation.done}`);
    }
  });
}

/** The objects to wait for; undefined where there are none to wait for. */
async function placesOf(options: {
  readonly call: Call;
  readonly server: Server;
  readonly targets: readonly Target[];
  readonly expectation: Expectation;
}): Promise<ObjectAt[] | undefined> {
  const { call, server, targets } = options;
  if (targets.every(({ names }) => names.length > 0)) {
    return targets.flatMap(({ kind, names }) => {
      return names.map((name) => ({ kind, namespace: server.namespace, name }));
    });
  }
  if (call.string("selector") === undefined && !call.flag("all")) {
    throw usageError("say which: by KIND/NAME, -l SELECTOR, or --all");
  }
  const { found } = await findAll(call, server, targets);
  if (found.length > 0 || !options.expectation.needsObject) return found.map(placeOf);
  call.terminal.note("berth: no matching resources found");
  return undefined;
}
