import type { VMImage } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import type { ConnectedTurn } from "./turn.ts";

/** An object that has to come first, and how it is found. */
export function absent(
  kind: "Hypervisor" | "VMClass" | "VMImage" | "VMNetwork" | "VirtualMachine" | "Secret",
  name: string,
  namespace?: string,
): Failure {
  const where = namespace === undefined ? "" : ` in the namespace ${namespace}`;
  const flag = namespace === undefined ? "" : ` -n ${namespace}`;
  return {
    category: kind === "VMImage" ? "ImageNotFound" : "DependencyNotReady",
    message: `There is no ${kind} ${name}${where}.`,
    remedy:
      `Create it, or name another: kubectl get ${kind.toLowerCase()}${flag}. ` +
      "Berth goes on by itself.",
  };
}

export function lookUpImage(turn: ConnectedTurn, name: string): VMImage | undefined {
  return turn.deps.lookups.images.get(`${turn.vm.metadata.namespace ?? ""}/${name}`);
}
