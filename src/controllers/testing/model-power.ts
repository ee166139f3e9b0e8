import type {
  Begun,
  Guard,
  Migrate,
  PowerOff,
  PowerOn,
  Reboot,
  Resume,
  Suspend,
} from "../../hypervisor/index.ts";
import { standing } from "./model-standing.ts";
import {
  allocate,
  done,
  type ModelMachine,
  type ModelState,
  type ModelTools,
  nodeNames,
  refused,
} from "./model-state.ts";

/** Power, where a VM runs, and who watches over it. */

/** How long a request to a VM that is watched over lies in the queue. */
const queueMs = 10_000;

export function powerOn(tools: ModelTools, operation: PowerOn): Begun {
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.isTemplate === true) return refused("ConfigurationError", "A template never runs.");
  if (machine.guarded !== undefined) return request(tools, machine, "Running");
  if (machine.power === "Running") return done;
  return tools.task({ does: "Start", id: machine.id, effect: () => start(tools.state, machine) });
}

/** Every guest of the model obeys, so that it is never too late for it. */
export function powerOff(tools: ModelTools, operation: PowerOff): Begun {
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.guarded !== undefined) return request(tools, machine, "Stopped");
  if (machine.power === "Stopped") return done;
  return tools.task({ does: "Stop", id: machine.id, effect: () => stop(tools.state, machine) });
}

export function reboot(tools: ModelTools, operation: Reboot): Begun {
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.power !== "Running") return refused("ConfigurationError", "It does not run.");
  return tools.task({ does: "Reboot", id: machine.id, effect: () => start(tools.state, machine) });
}

/** The memory goes into a volume of the VM's own, which goes when it starts again. */
export function suspend(tools: ModelTools, operation: Suspend): Begun {
  const { state } = tools;
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.power === "Suspended") return done;
  if (machine.power !== "Running") return refused("ConfigurationError", "It does not run.");
  const storage = operation.storage ?? state.storages[0]?.name ?? "";
  const sizeBytes = machine.shape.memory?.sizeBytes ?? 0;
  return tools.task({
    does: "Suspend",
    id: machine.id,
    effect: () => {
      const { id: volume } = allocate(state, machine, { storage, sizeBytes });
      machine.others.push({ volume, role: "State" });
      machine.power = "Suspended";
    },
  });
}

export function resume(tools: ModelTools, operation: Resume): Begun {
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.power === "Running") return done;
  if (machine.power !== "Paused") return refused("ConfigurationError", "It is not paused.");
  const effect = (): void => void (machine.power = "Running");
  return tools.task({ does: "Resume", id: machine.id, effect });
}

/** With its volumes: every node has the same storages, each for itself. */
export function migrate(tools: ModelTools, operation: Migrate): Begun {
  const { to } = operation;
  const { state } = tools;
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.node === to) return done;
  if (!nodeNames.includes(to)) return refused("ConfigurationError", `There is no node ${to}.`);
  machine.lock = { kind: "Migrate", detail: "migrate", state: "Held" };
  const begun = tools.task({
    does: "Migrate",
    id: machine.id,
    effect: () => {
      delete machine.lock;
      machine.node = to;
      for (const { volume } of [...machine.disks, ...machine.others]) {
        const moved = state.volumes.get(volume);
        if (moved !== undefined) moved.node = to;
      }
    },
  });
  machine.lock = { ...machine.lock, task: begun.task };
  return begun;
}

export function guard(tools: ModelTools, operation: Guard): Begun {
  const { highAvailability, power } = operation;
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (highAvailability.enabled === false) {
    delete machine.guarded;
    return done;
  }
  machine.guarded = { ...highAvailability, requested: machine.guarded?.requested ?? power };
  return request(tools, machine, power);
}

/** The power follows some time after the request; the last request counts. */
function request(
  { state }: ModelTools,
  machine: ModelMachine,
  requested: "Running" | "Stopped",
): Begun {
  if (machine.guarded === undefined) return done;
  machine.guarded = { ...machine.guarded, requested };
  state.later(queueMs, () => {
    if (machine.guarded?.requested !== requested || machine.power === requested) return;
    if (requested === "Running") start(state, machine);
    else stop(state, machine);
  });
  return done;
}

function start(state: ModelState, machine: ModelMachine): void {
  forgetMemory(state, machine);
  machine.power = "Running";
  machine.started = { sinceMs: state.nowMs(), shape: machine.shape };
}

function stop(state: ModelState, machine: ModelMachine): void {
  forgetMemory(state, machine);
  machine.power = "Stopped";
  delete machine.started;
}

function forgetMemory(state: ModelState, machine: ModelMachine): void {
  const saved = machine.others.filter(({ role }) => role === "State");
  for (const { volume } of saved) state.volumes.delete(volume);
  machine.others = machine.others.filter(({ role }) => role !== "State");
}
