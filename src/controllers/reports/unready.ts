import { annotations } from "../../api/index.ts";
import type { Condition, KubeObject } from "../../kernel/object.ts";
import { conditionOf } from "./object-status.ts";

/**
 * Since when objects are not Ready. A condition tells only since when it is False or Unknown: of an
 * object that goes to and fro between the two it would never be long. Nothing is known of the time
 * before the program began, but for what the condition itself says.
 */
export class Unready {
  /** By uid, where the condition's own time tells less. */
  readonly #since = new Map<string, string>();

  /** Takes note of a change; says for how many seconds one was not Ready that has become so. */
  changed(object: KubeObject, old: KubeObject): number | undefined {
    const [now, before] = [conditionOf(object, "Ready"), conditionOf(old, "Ready")];
    if (before?.status === "True") return this.gone(old);
    if (now === undefined) return undefined;
    const since = this.#startOf(old, before);
    if (now.status !== "True") {
      this.#since.set(uidOf(object), since);
      return undefined;
    }
    this.gone(object);
    const ms = Date.parse(now.lastTransitionTime) - Date.parse(since);
    return ms >= 0 ? ms / 1000 : undefined;
  }

  gone(object: KubeObject): undefined {
    this.#since.delete(uidOf(object));
  }

  /** Since when and why an object is not Ready; undefined where it is, or nobody wants it to be. */
  of(object: KubeObject): { reason: string; since: string } | undefined {
    const ready = conditionOf(object, "Ready");
    if (ready?.status === "True" || !isWanted(object, ready !== undefined)) return undefined;
    return { reason: ready?.reason ?? "NotSeen", since: this.#startOf(object, ready) };
  }

  #startOf(object: KubeObject, ready: Condition | undefined): string {
    const known = this.#since.get(uidOf(object));
    return known ?? ready?.lastTransitionTime ?? object.metadata.creationTimestamp ?? "";
  }
}

function uidOf({ metadata }: KubeObject): string {
  return metadata.uid ?? "";
}

function isWanted({ metadata, kind, status }: KubeObject, hasCondition: boolean): boolean {
  if (metadata.annotations?.[annotations.paused] === "true" || kind === "Orphan") return false;
  // Kinds without a controller of their own have no status at all, and are as ready as they get.
  return hasCondition || status !== undefined || watched.has(kind);
}

/** Kinds of which somebody always says how they are. */
const watched: ReadonlySet<string> = new Set(["VirtualMachine", "Hypervisor", "VMImage", "VMSet"]);
