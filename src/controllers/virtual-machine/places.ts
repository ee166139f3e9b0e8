import type { ClaimSpec } from "../../api/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { bytesOf } from "./quantities.ts";

/** What a machine takes of its node. */
export interface Needs {
  readonly cpus: number;
  readonly memoryBytes: number;
}

/** What the machines that were given to a node take of it. */
export interface NodeLoad extends Needs {
  readonly machines: number;
  /** Of its memory, what the node's own figures do not show yet. */
  readonly comingBytes: number;
}

interface Choice extends Needs {
  readonly node: string;
  readonly sinceMs: number;
}

/** Far longer than it takes to reserve an id; what failed meanwhile counts no longer. */
const choiceMs = 60_000;

/**
 * Where machines were put. A node shows what a machine takes only once it runs, and a Claim is
 * there only once its id was found; so of each choice it is remembered here until its Claim is
 * seen. All of it can be lost: then a few machines are spread less evenly.
 */
export class Places {
  readonly #choices = new Map<string, Choice>();

  chose(key: string, choice: Choice): void {
    this.#choices.set(key, choice);
  }

  /** The node that was chosen for an object a moment ago. */
  nodeOf(key: string): string | undefined {
    return this.#choices.get(key)?.node;
  }

  forget(key: string): void {
    this.#choices.delete(key);
  }

  forgetAll(): void {
    this.#choices.clear();
  }

  /** The load of each node, but for what the object itself takes. */
  loads({ key, held, running, nowMs }: PlacesView): Map<string, NodeLoad> {
    const loads = new Map<string, NodeLoad>();
    for (const claim of held) {
      const owner = objectKey(claim.owner);
      this.#choices.delete(owner);
      if (owner !== key) add(loads, claim.node, loadOf(claim, running));
    }
    for (const [owner, { node, sinceMs, cpus, memoryBytes }] of this.#choices) {
      if (nowMs - sinceMs > choiceMs) this.#choices.delete(owner);
      else if (owner !== key) {
        add(loads, node, { machines: 1, cpus, memoryBytes, comingBytes: memoryBytes });
      }
    }
    return loads;
  }
}

export interface PlacesView {
  /** The object that asks. */
  readonly key: string;
  /** Claims of machines on the system that are there or will be. */
  readonly held: readonly ClaimSpec[];
  /** Machines that were seen running, so that their node's figures count them. */
  readonly running: ReadonlySet<string>;
  readonly nowMs: number;
}

function loadOf({ resources, externalId }: ClaimSpec, running: PlacesView["running"]): NodeLoad {
  const memoryBytes = bytesOf(resources?.memory ?? 0);
  const comingBytes = running.has(externalId) ? 0 : memoryBytes;
  return { machines: 1, cpus: resources?.cpu ?? 0, memoryBytes, comingBytes };
}

function add(loads: Map<string, NodeLoad>, node: string | undefined, more: NodeLoad): void {
  if (node === undefined) return;
  const load = loads.get(node) ?? noLoad;
  loads.set(node, {
    machines: load.machines + more.machines,
    cpus: load.cpus + more.cpus,
    memoryBytes: load.memoryBytes + more.memoryBytes,
    comingBytes: load.comingBytes + more.comingBytes,
  });
}

export const noLoad: NodeLoad = { machines: 0, cpus: 0, memoryBytes: 0, comingBytes: 0 };
