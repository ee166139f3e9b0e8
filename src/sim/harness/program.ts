import type { VirtualMachine } from "../../api/index.ts";
import { createClient, inProcess, NetworkError, type Client } from "../../client/index.ts";
import { forgetLease, startControllers } from "../../controllers/index.ts";
import type { ControllersOptions, Place, RunningControllers } from "../../controllers/index.ts";
import { proxmoxDriver } from "../../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import { sleep } from "../../kernel/clock.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { Metrics } from "../../runtime/index.ts";
import { isStream, type WireRequest, type WireResponse } from "../../kernel/wire.ts";
import { NamedDice } from "./dice.ts";
import type { House } from "./house.ts";
import { Life } from "./life.ts";
import type { Trace } from "./trace.ts";
import { delayed, type WatchWeather } from "./watch-delay.ts";
import type { Wire } from "./wire.ts";

/** What lies between a program and the API. In the same process there is nothing. */
export interface ApiWeather extends WatchWeather {
  isCut: boolean;
  loseReply: number;
}

export const fairApiWeather: Readonly<ApiWeather> = {
  lagMs: 0,
  isBroken: false,
  isDoubled: false,
  isCut: false,
  loseReply: 0,
};

/** Before which of its turns a program forgets everything. */
export type Forgetting = "none" | "half" | "all";

export interface ProgramOptions {
  readonly name: string;
  readonly seed: number;
  /** How often it was started before: every start has its own randomness. */
  readonly start: number;
  readonly clock: VirtualClock;
  readonly house: House;
  readonly wires: ReadonlyMap<string, Wire>;
  readonly trace: Trace;
  readonly weather: ApiWeather;
  /** The API is in the same process and dies with it. */
  readonly isEmbedded: boolean;
  /** Told of every request to the API but watches. */
  readonly onAsk: (program: string) => void;
  /** Told of every line of its log. */
  readonly onLog: (line: string) => void;
  readonly amnesia: Forgetting;
  /** Where it is; absent: nobody can tell. */
  readonly place?: Place | undefined;
  /** Where it reports what it does. */
  readonly metrics: Metrics | undefined;
  /** Whether the kinds stay: while they go no machine may be destroyed. */
  readonly mayDestroy: () => boolean;
}

/** A leader that holds no lease for long would spend most of a history on renewing it. */
const embeddedLease = { durationMs: 3_600_000, validMs: 3_000_000, retryMs: 600_000 };
const replicaLease = { durationMs: 30_000, validMs: 20_000, retryMs: 6_000 };

/** One process of Berth: the controllers, and in the embedded home the API too. */
export class Program {
  readonly name: string;
  readonly life: Life;
  readonly #options: ProgramOptions;
  readonly #dice: NamedDice;
  #controllers: RunningControllers | undefined;

  constructor(options: ProgramOptions) {
    this.#options = options;
    this.name = options.name;
    this.#dice = new NamedDice(options.seed, `${options.name} ${options.start}`);
    this.life = new Life(options.clock, () => this.#died());
  }

  isLeader(): boolean {
    return !this.life.isDead && (this.#controllers?.isLeader() ?? false);
  }

  async start(): Promise<void> {
    const { house, isEmbedded, trace } = this.#options;
    trace.say(this.name, () => "starts");
    if (isEmbedded) await house.open(this.life.clock());
    const client = this.#client();
    // The lock of the data folder says that there is no other process.
    if (isEmbedded) await forgetLease(client);
    if (this.life.isDead) return;
    this.#controllers = startControllers(this.#controllersOptions(client));
  }

  #died(): void {
    const { house, isEmbedded, trace } = this.#options;
    trace.say(this.name, () => "is killed");
    if (isEmbedded) house.crash();
  }

  #client(): Client {
    const transport = inProcess((request) => this.#ask(request));
    return createClient({ transport, clock: this.life.clock() });
  }

  #controllersOptions(client: Client): ControllersOptions {
    const { isEmbedded, trace, wires, metrics, amnesia, place } = this.#options;
    const share = { none: 0, half: 0.5, all: 1 }[amnesia];
    const forgets = (): boolean => this.#dice.of("amnesia").chance(share);
    return {
      ...(metrics === undefined ? {} : { metrics }),
      ...(place === undefined ? {} : { place }),
      ...(amnesia === "none" ? {} : { forgets }),
      client,
      clock: this.life.clock(),
      random: this.#dice.of("controllers").random,
      identity: this.name,
      graceMs: 35_000,
      lease: isEmbedded ? embeddedLease : replicaLease,
      mayDestroy: async () => this.#options.mayDestroy(),
      whenAbsent: isEmbedded ? "trust" : "wait",
      log: (level, message, fields) => {
        this.#options.onLog(`${message} ${JSON.stringify(fields)}`);
        trace.say(this.name, () => `logs ${level}: ${message} ${JSON.stringify(fields)}`);
      },
      connect: ({ metadata, spec }, credentials) => {
        const wire = wires.get(metadata.name ?? "");
        if (wire === undefined) throw new Error(`there is no cluster ${metadata.name}`);
        const { tokenId = "", tokenSecret = "" } = credentials ?? {};
        const sender = { name: this.name, token: { id: tokenId, secret: tokenSecret } };
        const driver = proxmoxDriver({
          send: (request) => {
            const isEffect = request.method !== "GET";
            return this.life.call(() => wire.send(request, sender), isEffect);
          },
          tokenId,
          clock: this.life.clock(),
          random: this.#dice.of(`driver of ${metadata.name}`).random,
          settings: spec.idRange === undefined ? {} : { idRange: spec.idRange },
        });
        return {
          ...driver,
          begin: (operation, fence) => this.#begin(wire, driver, [operation, fence]),
        };
      },
    };
  }

  /** Notes for how long an operation acts on an id. */
  async #begin(
    wire: Wire,
    driver: HypervisorDriver,
    [operation, fence]: Parameters<HypervisorDriver["begin"]>,
  ): ReturnType<HypervisorDriver["begin"]> {
    const id = "claim" in operation ? operation.claim.externalId : "";
    wire.onBegin?.(id, operation.kind);
    wire.beginning.set(id, this.life);
    try {
      return await driver.begin(operation, fence);
    } finally {
      wire.beginning.delete(id);
    }
  }

  /** Leases and watches are no places to crash at: there are so many of them. */
  #ask(request: WireRequest): Promise<WireResponse> {
    if (this.life.isDead) return new Promise(() => undefined);
    if (request.url.includes("watch=true")) return this.#watch(request);
    this.#options.onAsk(this.name);
    return this.life.call(() => this.#exchange(request));
  }

  async #watch(request: WireRequest): Promise<WireResponse> {
    const { weather, house } = this.#options;
    if (weather.isCut) throw new NetworkError("Unreachable", "the API cannot be reached");
    const response = await house.handle(request);
    if (!isStream(response.body)) return response;
    const watch = { url: request.url, stream: response.body };
    return { ...response, body: delayed(watch, weather, this.life.clock()) };
  }

  async #exchange(request: WireRequest): Promise<WireResponse> {
    const { weather, house, isEmbedded, trace } = this.#options;
    if (weather.isCut) throw new NetworkError("Unreachable", "the API cannot be reached");
    const dice = this.#dice;
    if (!isEmbedded) await sleep(this.life.clock(), dice.of("API delay").between(1, 3));
    const response = await house.handle(request);
    trace.say(
      this.name,
      () => `${request.method} ${shortUrl(request.url)}: ${response.status}${bodyOf(request)}`,
    );
    if (dice.of("lose the API's replies").chance(weather.loseReply)) {
      trace.say(this.name, () => "does not get the reply");
      throw new NetworkError("UnknownOutcome", "the connection ended");
    }
    return response;
  }
}

function shortUrl(url: string): string {
  return url.replace(/^\/apis\/berth\.dev\/v1alpha1/, "").replace(/\?.*/, "");
}

/** What a status says in short: a trace is read by people. */
function bodyOf({ method, url, body }: WireRequest): string {
  if (method === "GET" || !url.includes("/status")) return "";
  // cast: our own controllers wrote it.
  const { status } = JSON.parse(new TextDecoder().decode(body)) as Pick<VirtualMachine, "status">;
  return status === undefined ? "" : shortStatus(status);
}

function shortStatus(status: NonNullable<VirtualMachine["status"]>): string {
  const { operation, failure, conditions = [] } = status;
  const ready = conditions.find(({ type }) => type === "Ready");
  const step = operation === undefined ? "" : `, ${operation.step} (attempt ${operation.attempt})`;
  const why = failure === undefined ? "" : `, ${failure.category}: ${failure.message}`;
  return ` Ready=${ready?.status ?? ""} ${ready?.reason ?? ""}${step}${why}`;
}
