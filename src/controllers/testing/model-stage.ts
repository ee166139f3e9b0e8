import type { Behind, Stage } from "../../hypervisor/testing/stage.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { gib } from "./model-state.ts";
import { ModelHypervisor } from "./model.ts";

const node = "n1";
const storage = "store";

/** The model with a second storage: what the conformance suite needs of it. */
export function modelStage(): Stage {
  const clock = new VirtualClock();
  const model = new ModelHypervisor(clock);
  model.storages.push({ name: "spare", contents: ["Disks"], capacityBytes: 1000 * gib });
  return {
    driver: model.driver(),
    node,
    storage,
    network: "vmbr0",
    image: { volume: "store:import/debian.qcow2", sizeBytes: 2 * gib },
    otherStorage: "spare",
    discStorage: storage,
    otherNode: "n2",
    behind: behindOf(model),
    nowMs: () => clock.nowMs(),
    pass: async (ms) => clock.advance(ms),
    // The model answers at once: only its tasks take time, and nothing waits for those.
    settle: (work) => work,
  };
}

function behindOf(model: ModelHypervisor): Behind {
  const { machines, volumes } = model;
  return {
    machines: () => [...machines.keys()],
    volumes: () => [...volumes.keys()],
    strangerTakes: (externalId) => void model.addStranger(externalId),
    copy: (externalId, copyId, as) => {
      const { id: _, ...original } = structuredClone(model.machine(externalId));
      const identity = as === "clone" ? `clone-${copyId}` : original.identity;
      machines.set(copyId, { ...original, id: copyId, identity });
    },
    writeNotes: (externalId, change) => {
      const machine = model.machine(externalId);
      machine.shape = { ...machine.shape, notes: change(machine.shape.notes ?? "") };
      machine.version += 1;
    },
    removeMark: (externalId) => {
      const machine = model.machine(externalId);
      delete machine.mark;
      machine.version += 1;
    },
    // Every guest of the model has a system from the beginning.
    installSystem: () => undefined,
    makeTemplate: (externalId) => {
      model.machine(externalId).isTemplate = true;
    },
    leaveVolume: (externalId) => {
      const id = `${storage}:vm-${externalId}-disk-7`;
      volumes.set(id, { id, storage, owner: externalId, node, sizeBytes: gib });
      return id;
    },
    loseNext: (what) => {
      const lost = (): "lost after" | "lost before" => {
        model.fault = () => "none";
        model.epochFault = () => "none";
        return what === "reply" ? "lost after" : "lost before";
      };
      model.fault = lost;
      model.epochFault = lost;
    },
    kill: (task) => model.kill(task),
    cutOff: () => {
      model.isAway = true;
    },
  };
}
