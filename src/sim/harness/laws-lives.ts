import type { PveRequest } from "../../drivers/proxmox/index.ts";
import type { Records } from "./records.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import { nameOf, subjectOf, type Heard } from "./wire.ts";

/** spec.limits.pollSeconds of every Hypervisor in a history. */
const tickMs = 15_000;
/** Until then each life has looked at the cluster, also where a reply was lost. */
const changingMs = 2 * tickMs;
/** By then a life that only observes has said so, also after a full disk or a crash. */
const saidMs = 90_000;

export interface LifeLawsOptions {
  /** What a life keeps, by its name; undefined: it is not there. */
  readonly recordsOf: (life: string) => Records | undefined;
  readonly nowMs: () => number;
}

/** Who did something last, and how often that was another than before. */
interface Turns {
  readonly life: string;
  readonly changes: number;
  /** When it was last another one. */
  readonly changedMs: number;
}

/**
 * The laws of two lives from one backup: a life that was shown a newer epoch than its own sends
 * nothing more after one tick and says so, and the lives do not undo each other's power steps. What
 * is true is read from the requests and from what the clusters answered.
 */
export class LifeLaws {
  readonly #options: LifeLawsOptions;
  /** The highest epoch of each life, by cluster and name: an older one may arrive after it. */
  readonly #written = new Map<string, number>();
  /** Since when a life is shown an epoch that is newer than its own. */
  readonly #supersededMs = new Map<string, number>();
  /** The highest epoch of each cluster. */
  readonly #highest = new Map<string, number>();
  /** Who wrote the highest, and how often that was another life than before, by cluster. */
  readonly #newest = new Map<string, Turns>();
  readonly #power = new Map<string, Turns>();
  /** Who sent the last change of an id, by cluster and id. */
  readonly #senders = new Map<string, string>();

  constructor(options: LifeLawsOptions) {
    this.#options = options;
  }

  lastSender({ name }: Site, id: string): string {
    return this.#senders.get(`${name} ${id}`) ?? "";
  }

  /** What a cluster did, whether its answer arrives or not. */
  whenDone({ name }: Site, { request, sender, body }: Heard): void {
    const pool = request.method === "POST" && request.path === "/pools";
    const number = pool ? epochIn(`"${String(request.params?.["poolid"])}"`) : undefined;
    if (number === undefined || body === undefined) return;
    const key = `${name} ${sender}`;
    this.#written.set(key, Math.max(number, this.#written.get(key) ?? 0));
    // A request that was under way for long makes a pool that says nothing any more.
    if (number < (this.#highest.get(name) ?? 0)) return;
    this.#highest.set(name, number);
    this.#supersededMs.delete(key);
    this.#newest.set(name, changed(this.#newest.get(name), sender, this.#options.nowMs()));
  }

  /** What a life was told. */
  whenTold({ name }: Site, { request, sender, body = "" }: Heard): void {
    const number = request.path === "/cluster/resources" ? epochIn(body) : undefined;
    if (number === undefined) return;
    const key = `${name} ${sender}`;
    const own = this.#written.get(key) ?? 0;
    if (number === own) this.#supersededMs.delete(key);
    if (number <= own) return;
    const sinceMs = this.#supersededMs.get(key) ?? this.#options.nowMs();
    this.#supersededMs.set(key, sinceMs);
    if (this.#options.nowMs() - sinceMs > saidMs) this.#demandSaid(name, sender);
  }

  #demandSaid(name: string, life: string): void {
    const hypervisor = this.#options.recordsOf(life)?.hypervisors.get(name);
    const ready = hypervisor?.status?.conditions?.find(({ type }) => type === "Ready");
    if (ready?.status !== "True") return;
    throw new Violation(9, `${life} only observes ${name}, and its Hypervisor says Ready`);
  }

  /** Asked before every request that changes something. */
  beforeEffect({ name }: Site, request: PveRequest, sender: string): void {
    if (request.path.startsWith("/pools")) return;
    const sinceMs = this.#supersededMs.get(`${name} ${sender}`) ?? Infinity;
    if (this.#options.nowMs() - sinceMs > tickMs) {
      throw new Violation(
        5,
        `${nameOf(request)} on ${name} was sent by ${sender}, and another acts`,
      );
    }
    const id = subjectOf(request);
    if (id === undefined) return;
    this.#senders.set(`${name} ${id}`, sender);
    if (/\/status\/[a-z]+$/.test(request.path)) this.#demandSteady(name, id, sender);
  }

  /** While the roles change both may act; after that each change costs a VM one step. */
  #demandSteady(name: string, id: string, sender: string): void {
    const nowMs = this.#options.nowMs();
    const roles = this.#newest.get(name) ?? nobody;
    const before = this.#power.get(`${name} ${id}`) ?? { ...nobody, life: sender };
    const power = changed(before, sender, nowMs);
    const isChanging = nowMs - roles.changedMs <= changingMs;
    const counted = isChanging ? { ...power, changes: before.changes } : power;
    this.#power.set(`${name} ${id}`, counted);
    if (counted.changes <= roles.changes) return;
    const times = `${counted.changes} times, with ${roles.changes} changes of roles`;
    throw new Violation(6, `two lives take turns at the power of ${id} on ${name}: ${times}`);
  }
}

const nobody: Turns = { life: "", changes: 0, changedMs: -Infinity };

function changed(before: Turns | undefined, life: string, nowMs: number): Turns {
  if (before === undefined) return { life, changes: 0, changedMs: nowMs };
  if (before.life === life) return before;
  return { life, changes: before.changes + 1, changedMs: nowMs };
}

/** The highest epoch that a text names. */
function epochIn(text: string): number | undefined {
  const numbers = [...text.matchAll(/"berth-epoch-[0-9a-f-]+-(\d+)"/g)].map(([, one]) =>
    Number(one),
  );
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}
