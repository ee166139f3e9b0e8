import type { Claim } from "../../api/index.ts";
import type { Place } from "../../controllers/index.ts";
import { createClient, inProcess, type Client } from "../../client/index.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { MemoryDisk } from "../../store/index.ts";
import { NamedDice } from "./dice.ts";
import { House } from "./house.ts";
import { callLimitsOf, Laws } from "./laws.ts";
import { Program, type Forgetting } from "./program.ts";
import { chosenNames } from "./provable.ts";
import { isHeld, Records, type ClaimChange } from "./records.ts";
import type { Site } from "./site.ts";
import type { Trace } from "./trace.ts";
import type { Wire } from "./wire.ts";

/** What the original began may go on for so long after the copy has ended, and the other way. */
const afterMs = 5 * 60_000;

/** The world of the original, as far as a copy of it shares it. */
export interface Shared {
  readonly seed: number;
  readonly clock: VirtualClock;
  readonly trace: Trace;
  readonly sites: ReadonlyMap<string, Site>;
  readonly wires: ReadonlyMap<string, Wire>;
  readonly amnesia: Forgetting;
  /** What the original keeps. */
  readonly records: Records;
  guard(check: () => void): void;
  hearLog(line: string): void;
}

export interface CopyOptions {
  readonly name: string;
  readonly disk: MemoryDisk;
  readonly place: Place | undefined;
}

/** A backup of the embedded Berth that was started beside the original. */
export class SecondLife {
  readonly name: string;
  readonly records = new Records();
  readonly house: House;
  readonly laws: Laws;
  readonly program: Program;
  /** As a person uses its API. */
  readonly client: Client;
  /** People have ended it and removed what only it made. */
  isOver = false;
  endedMs = Infinity;
  /** Volumes whose names it chose: they are in its own Claims alone. */
  readonly chosen = new Set<string>();
  readonly #world: Shared;

  constructor(world: Shared, { name: own, disk, place }: CopyOptions) {
    const { clock, sites, seed, trace, wires } = world;
    const { records } = this;
    this.#world = world;
    this.name = own;
    const dice = new NamedDice(seed, `house of ${this.name}`);
    this.house = new House({ clock, dice, records, disk, onOpen: () => undefined });
    this.laws = new Laws(records, sites, () => clock.nowMs());
    this.laws.callLimits = callLimitsOf(world.amnesia);
    this.laws.files.isShared = () => this.isBeside();
    records.onVm = ({ after }) => {
      if (after !== undefined) this.laws.hear(after);
    };
    records.onClaim = (change) => {
      this.#noteLeft(change.after?.spec);
      for (const id of newNames(change)) this.chosen.add(id);
    };
    const transport = inProcess((request) => this.house.handle(request));
    this.client = createClient({ transport, clock });
    this.program = new Program({
      name: this.name,
      seed,
      start: 1,
      clock,
      house: this.house,
      wires,
      trace,
      weather: { lagMs: 0, isBroken: false, isDoubled: false, isCut: false, loseReply: 0 },
      isEmbedded: true,
      amnesia: world.amnesia,
      place,
      onAsk: (name) => world.guard(() => this.laws.atAsk(name)),
      metrics: undefined,
      onLog: (line) => world.hearLog(line),
      mayDestroy: () => true,
    });
  }

  start(): void {
    this.program.start().catch((error: unknown) => {
      this.#world.guard(() => {
        throw error;
      });
    });
  }

  /** What a worker of this life left is in its own Claim alone: the original cannot know of it. */
  #noteLeft(claim: Claim["spec"] | undefined): void {
    if (claim?.probableVolumes === undefined || claim.probableVolumes.length === 0) return;
    this.#world.sites.get(claim.hypervisor.name)?.forgotten.add(claim.externalId);
  }

  end(): void {
    this.program.life.die();
    this.endedMs = this.#world.clock.nowMs();
  }

  /** Whether both may have work under way. */
  isBeside(): boolean {
    return this.#world.clock.nowMs() < this.endedMs + afterMs;
  }

  /** Ids under which only this life made something, as [cluster, id]. */
  ownIds(): (readonly [site: string, id: string])[] {
    return [...this.records.claims.values()].flatMap(({ spec }) => {
      const { hypervisor, externalId } = spec;
      const other = this.#world.records.claimOf(hypervisor.name, externalId)?.spec;
      const text = this.#world.sites.get(hypervisor.name)?.text(externalId);
      return isOnlyOf(spec, other, text) ? [[hypervisor.name, externalId] as const] : [];
    });
  }
}

/** Names that were chosen with this change. Those of the backup are the original's too. */
export function newNames({ before, after }: ClaimChange): string[] {
  const old = chosenNames(before?.spec.allocation);
  return chosenNames(after?.spec.allocation).filter((id) => !old.includes(id));
}

/**
 * Whether what is under the id of a copy's Claim is a VM that the original does not know. What the
 * original released, or what another object of it took over, is the same VM, and it says what
 * became of it. It may also have made another one there since: then the VM bears that identity.
 */
export function isOnlyOf(own: Claim["spec"], other: Claim["spec"] | undefined, text = ""): boolean {
  const isThere = other !== undefined && (isHeld(other) || other.state === "Released");
  if (!isThere) return true;
  return other.identity !== own.identity && !text.includes(other.identity);
}
