import type { PveReply, PveRequest } from "../../drivers/proxmox/index.ts";
import { sleep } from "../../kernel/clock.ts";
import { askModel, type ApiToken } from "../wire/index.ts";
import type { NamedDice } from "./dice.ts";
import type { Life } from "./life.ts";
import type { Site } from "./site.ts";
import type { Trace } from "./trace.ts";

/** What the network does to requests, while it does it. Chances are per request. */
export interface Weather {
  isCut: boolean;
  /** Whoever answers shows a certificate that is not the cluster's. */
  isUntrusted: boolean;
  loseRequest: number;
  loseReply: number;
  /** The gateway gives up on the reply: 596, and what was asked goes on. */
  gatewayTimeout: number;
  /** How much longer a request may be under way. */
  delayMs: number;
  /** Answered by something in between that has nothing to do with it, and nothing is asked. */
  refuse: number;
  /** The caller is told that the connection ended, and the request arrives some seconds later. */
  late: number;
  /** A write arrives twice, and the caller hears one of the two answers. */
  double: number;
  /** The reply breaks off in its middle. */
  garble: number;
  /** Questions with this in their path have no answer, while all others do. */
  unanswered: string | undefined;
  /** The record of the work that a request began is lost some moments later, whatever it does. */
  forgetTask: number;
  /** Lists of machines leave out those of one node. */
  hiddenNode: string | undefined;
  /** Lists leave out these: volumes by their ids, machines by theirs. */
  hidden: ((row: ListedRow) => boolean) | undefined;
  /** What surely happens to the next write, and to nothing before and after it. */
  nextWrite: "double" | "loseReply" | "forgetTask" | undefined;
}

export const fairWeather: Weather = {
  isCut: false,
  isUntrusted: false,
  loseRequest: 0,
  loseReply: 0,
  gatewayTimeout: 0,
  delayMs: 0,
  refuse: 0,
  late: 0,
  double: 0,
  garble: 0,
  unanswered: undefined,
  forgetTask: 0,
  hiddenNode: undefined,
  hidden: undefined,
  nextWrite: undefined,
};

/** Of a machine or a volume in a list, what says which it is. */
export interface ListedRow {
  readonly type?: string;
  readonly vmid?: number;
  readonly volid?: string;
}

export interface WireOptions {
  readonly site: Site;
  /** Each kind of weather rolls its own. */
  readonly dice: NamedDice;
  readonly trace: Trace;
  readonly weather: Weather;
  /** Told of every request. */
  readonly onCall: (site: Site, sender: string) => void;
  /** Told what the cluster did, and what the caller was told of it. */
  readonly onDone: (site: Site, heard: Heard) => void;
  readonly onTold: (site: Site, heard: Heard) => void;
  /** Asked before every request that changes something leaves. Throws where a law is broken. */
  readonly onEffect: (site: Site, request: PveRequest, sender: string) => void;
  /** Told what the sender of such a request is told. */
  readonly onAnswered: (request: PveRequest, reply: PveReply) => void;
}

/** A request and the answer to it. */
export interface Heard {
  readonly request: PveRequest;
  readonly sender: string;
  /** Absent: it was refused, or the answer did not come. */
  readonly body: string | undefined;
}

/** Who sends a request, and what proves it to the cluster. */
export interface Sender {
  readonly name: string;
  readonly token: ApiToken;
}

interface Sent extends PveRequest {
  readonly sender: string;
  readonly token: ApiToken;
  /** What the weather had for this very write. */
  readonly fate?: Weather["nextWrite"];
}

/** A caller whose replies are cut off by the client after so long, as the real transport does. */
const giveUpMs = 35_000;

/** The network between the drivers and one cluster. */
export class Wire {
  readonly #options: WireOptions;
  /** Requests under way that change something, by the id that they are about. */
  readonly effects = new Map<string, number>();
  /** Ids on which somebody is acting: from the look that proves them ours to the last answer. */
  readonly beginning = new Map<string, Life>();
  /** Requests that make a machine and have not arrived, by its id. */
  readonly creating = new Map<string, number>();
  /** When a machine was last looked at and the answer came, by its id. */
  readonly lookedMs = new Map<string, number>();
  /** Somebody waits for a request that names the version of the machine that it changes. */
  onGuarded: ((id: string) => void) | undefined;
  /** Somebody waits for the moment before an operation looks at its machine for the last time. */
  onBegin: ((id: string, kind: string) => void) | undefined;
  requests = 0;
  writes = 0;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  async send(request: PveRequest, sender: Sender): Promise<PveReply> {
    const { site, weather, trace, onEffect, onCall, onAnswered } = this.#options;
    const { clock } = site;
    const why = obstacleOf(weather);
    if (why !== undefined) {
      await sleep(clock, 5);
      trace.say(site.name, () => `${nameOf(request)}: ${why}`);
      return { type: "notSent", why, detail: obstacles[why] };
    }
    if (request.mayWrite !== undefined && !request.mayWrite()) {
      return { type: "notSent", why: "fenced", detail: "the fence is closed" };
    }
    this.requests += 1;
    onCall(site, sender.name);
    const sent = { ...request, token: sender.token, sender: sender.name };
    if (request.method === "GET") return await this.#look(sent);
    this.writes += 1;
    onEffect(site, request, sender.name);
    const id = subjectOf(request) ?? "";
    if (isGuarded(request)) this.onGuarded?.(id);
    count(this.effects, id, 1);
    if (isCreate(request)) count(this.creating, id, 1);
    try {
      const reply = await this.#carry({ ...sent, fate: this.#takeFate() });
      onAnswered(request, reply);
      return reply;
    } finally {
      count(this.effects, id, -1);
    }
  }

  #takeFate(): Weather["nextWrite"] {
    const { weather } = this.#options;
    const { nextWrite } = weather;
    weather.nextWrite = undefined;
    return nextWrite;
  }

  /** Notes when somebody was told how a machine is. */
  async #look(request: Sent): Promise<PveReply> {
    const reply = await this.#carry(request);
    const { site, onTold } = this.#options;
    onTold(site, { request, sender: request.sender, body: bodyOf(reply) });
    const id = /\/qemu\/(\d+)\/status\/current$/.exec(request.path)?.[1];
    const isTold = reply.type === "answered" && reply.status === 200;
    if (id !== undefined && isTold) this.lookedMs.set(id, this.#options.site.clock.nowMs());
    return reply;
  }

  async #carry(request: Sent): Promise<PveReply> {
    const { site, dice, weather } = this.#options;
    const { clock } = site;
    if (request.method !== "GET" && dice.of("late").chance(weather.late)) {
      void this.#arriveLate(request, dice.of("late").between(500, 25_000));
      await sleep(clock, 10);
      return lost;
    }
    await sleep(clock, this.#travelMs());
    if (isCreate(request)) count(this.creating, subjectOf(request) ?? "", -1);
    const held = await this.#heldUp(request);
    if (held !== undefined) return held;
    const isUnlucky = request.method !== "GET" && dice.of("double").chance(weather.double);
    const isDoubled = isUnlucky || request.fate === "double";
    const reply = await (isDoubled ? this.#askTwice(request) : this.#ask(request));
    await sleep(clock, this.#travelMs());
    return (await this.#spoilt(request)) ?? this.#garbled(request, reply);
  }

  /** How long a request or a reply is under way. */
  #travelMs(): number {
    const { dice, weather } = this.#options;
    const usualMs = dice.of("travel").between(1, 6);
    return weather.delayMs > 0 ? usualMs + dice.of("delay").between(0, weather.delayMs) : usualMs;
  }

  /** What becomes of a request that does not arrive. */
  async #heldUp(request: PveRequest): Promise<PveReply | undefined> {
    const { site, dice, weather, trace } = this.#options;
    const refuse = dice.of("refuse");
    const refusal = refuse.chance(weather.refuse) ? refuse.pick(refusals) : undefined;
    if (refusal !== undefined) {
      trace.say(site.name, () => `${nameOf(request)}: ${refusal.status} from in between`);
      return { ...answer, ...refusal, body: "<html>" };
    }
    const lose = dice.of("lose requests");
    if (!lose.chance(weather.loseRequest)) return undefined;
    trace.say(site.name, () => `${nameOf(request)}: lost on its way`);
    await sleep(site.clock, lose.chance(0.5) ? 10 : giveUpMs);
    return lost;
  }

  /** What becomes of a reply that does not come back. */
  async #spoilt(request: Sent): Promise<PveReply | undefined> {
    const { site, dice, weather, trace } = this.#options;
    const lose = dice.of("lose replies");
    const isLost = lose.chance(weather.loseReply) || request.fate === "loseReply";
    if (isLost || isUnanswered(request, weather)) {
      trace.say(site.name, () => `${nameOf(request)}: the reply is lost`);
      await sleep(site.clock, lose.chance(0.5) ? 10 : giveUpMs);
      return lost;
    }
    if (!dice.of("time out").chance(weather.gatewayTimeout)) return undefined;
    trace.say(site.name, () => `${nameOf(request)}: 596`);
    return { ...answer, status: 596, reason: "Connection timed out", body: "" };
  }

  async #arriveLate(request: Sent, afterMs: number): Promise<void> {
    const { site, trace } = this.#options;
    const id = subjectOf(request) ?? "";
    trace.say(site.name, () => `${nameOf(request)}: will arrive in ${afterMs} ms`);
    count(this.effects, id, 1);
    await sleep(site.clock, afterMs);
    if (isCreate(request)) count(this.creating, id, -1);
    await this.#ask(request);
    count(this.effects, id, -1);
  }

  /** As a proxy does that sends again what was not answered soon: one of the answers is dropped. */
  async #askTwice(request: Sent): Promise<PveReply> {
    const { site, dice, trace } = this.#options;
    const double = dice.of("double");
    const afterMs = double.pick([0, 20, 2_000]);
    trace.say(site.name, () => `${nameOf(request)}: will arrive again in ${afterMs} ms`);
    const replies = [this.#ask(request), this.#askAgain(request, afterMs)] as const;
    return double.chance(0.5) ? replies[0] : replies[1];
  }

  async #askAgain(request: Sent, afterMs: number): Promise<PveReply> {
    const id = subjectOf(request) ?? "";
    count(this.effects, id, 1);
    await sleep(this.#options.site.clock, afterMs);
    const reply = await this.#ask(request);
    count(this.effects, id, -1);
    return reply;
  }

  #forget(body: string, { fate }: Sent): void {
    const { site, dice, weather, trace } = this.#options;
    const task = /"data":"(UPID:[^"]+)"/.exec(body)?.[1];
    // A change without a task has nothing to be forgotten: the next one is meant.
    if (task === undefined && fate === "forgetTask") weather.nextWrite ??= fate;
    if (task === undefined) return;
    const forget = dice.of("forget tasks");
    if (!forget.chance(weather.forgetTask) && fate !== "forgetTask") return;
    site.clock.after(forget.pick([0, 100, 3_000]), () => {
      trace.say(site.name, () => `nobody remembers the task ${task}`);
      site.forgetTask(task);
    });
  }

  #garbled(request: PveRequest, reply: PveReply): PveReply {
    const { site, dice, weather, trace } = this.#options;
    if (reply.type !== "answered") return reply;
    if (dice.of("garble").chance(weather.garble)) {
      trace.say(site.name, () => `${nameOf(request)}: the reply breaks off`);
      return { ...reply, body: reply.body.slice(0, reply.body.length / 2) };
    }
    const isHidden = weather.hidden;
    if (isHidden !== undefined && isListing(request)) {
      return { ...reply, body: withoutRows(reply.body, isHidden) };
    }
    const isList = request.path === "/cluster/resources" && weather.hiddenNode !== undefined;
    return isList ? { ...reply, body: withoutNode(reply.body, weather.hiddenNode) } : reply;
  }

  async #ask(request: Sent): Promise<PveReply> {
    const { site, trace, onDone } = this.#options;
    const reply = await askModel(site.model, request, request.token);
    onDone(site, { request, sender: request.sender, body: bodyOf(reply) });
    trace.say(site.name, () => `${nameOf(request)}: ${outcomeOf(reply)}`);
    if (reply.type === "answered") this.#forget(reply.body, request);
    return reply;
  }
}

/** What a connection that never stands says. */
const obstacles = {
  unreachable: "ECONNREFUSED",
  certificate: "self-signed certificate in certificate chain",
} as const;

function obstacleOf({ isCut, isUntrusted }: Weather): keyof typeof obstacles | undefined {
  if (isCut) return "unreachable";
  return isUntrusted ? "certificate" : undefined;
}

const answer = { type: "answered", from: "pve1" } as const;

const lost = { type: "lost", detail: "socket hang up" } as const;

/** A proxy whose backend is away, and one that knows nobody. */
const refusals: readonly [Refusal, ...Refusal[]] = [
  { status: 503, reason: "Service Unavailable" },
  { status: 502, reason: "Bad Gateway" },
  { status: 429, reason: "Too Many Requests" },
];

interface Refusal {
  readonly status: number;
  readonly reason: string;
}

function isUnanswered({ method, path }: PveRequest, { unanswered }: Weather): boolean {
  return method === "GET" && unanswered !== undefined && path.includes(unanswered);
}

/** Of these the server itself finds out whether the machine is still what it was. */
function isGuarded({ method, path }: PveRequest): boolean {
  return (method === "PUT" || method === "POST") && /\/qemu\/\d+\/(config|resize)$/.test(path);
}

export function isCreate({ method, path }: PveRequest): boolean {
  return method === "POST" && path.endsWith("/qemu");
}

function count(counts: Map<string, number>, id: string, change: number): void {
  counts.set(id, (counts.get(id) ?? 0) + change);
}

/** A list in which the machines of a node are missing, as while its status daemon hangs. */
function withoutNode(body: string, node: string | undefined): string {
  // cast: the model wrote it.
  const { data } = JSON.parse(body) as { data?: { type?: string; node?: string }[] };
  const rows = data?.filter((row) => row.type !== "qemu" || row.node !== node);
  return JSON.stringify({ data: rows });
}

/** The machines of a cluster, or what a storage holds. */
function isListing({ method, path }: PveRequest): boolean {
  return method === "GET" && /^\/cluster\/resources$|\/storage\/[^/]+\/content$/.test(path);
}

/** A list in which something is missing, as while a mount is. */
function withoutRows(body: string, isHidden: (row: ListedRow) => boolean): string {
  // cast: the model wrote it.
  const { data, ...rest } = JSON.parse(body) as { data?: ListedRow[] | null };
  return JSON.stringify({ ...rest, data: data?.filter((row) => !isHidden(row)) ?? null });
}

/** The id of the guest that a request is about, if it is about one. */
export function subjectOf({ path, params }: PveRequest): string | undefined {
  const inPath = /^\/nodes\/[^/]+\/qemu\/(\d+)/.exec(path)?.[1];
  if (inPath !== undefined) return inPath;
  const isInParams = /^\/nodes\/[^/]+\/(?:qemu|storage\/[^/]+\/content)$/.test(path);
  if (isInParams && params?.["vmid"] !== undefined) return String(params["vmid"]);
  const volume = /^\/nodes\/[^/]+\/storage\/[^/]+\/content\/(.+)$/.exec(path)?.[1];
  return /vm-(\d+)-/.exec(decodeURIComponent(volume ?? ""))?.[1];
}

export function nameOf({ method, path, params }: PveRequest): string {
  const said = Object.entries(params ?? {}).map(([key, value]) => `${key}=${cut(String(value))}`);
  return `${method} ${path}${said.length > 0 ? ` (${said.join(", ")})` : ""}`;
}

function bodyOf(reply: PveReply): string | undefined {
  return reply.type === "answered" && reply.status === 200 ? reply.body : undefined;
}

function outcomeOf(reply: PveReply): string {
  if (reply.type !== "answered") return reply.detail;
  return `${reply.status} ${reply.status === 200 ? cut(reply.body) : reply.reason}`;
}

function cut(text: string): string {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
