import type { ClaimedMachine, Fence } from "../../hypervisor/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { Random } from "../../kernel/random.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { proxmoxDriver } from "./driver.ts";
import { writeNotes } from "./listing-notes.ts";
import type { PveReply, PveRequest, Send } from "./wire/wire.ts";

/** A Claim as the tests have it. */
export const claim: ClaimedMachine = {
  externalId: "1000101",
  identity: "5a0f9d3e-6f0e-4c53-9f5e-0a4f5a1b2c3d",
  installation: "11111111-2222-4333-8444-555555555555",
  owner: { namespace: "prod", name: "web" },
  node: "pve1",
  otherVolumes: [],
  driver: writeNotes({ listedOn: "pve1", unlisted: [] }),
  reservedAt: "2026-01-02T03:04:05Z",
};

export const tokenId = "berth@pve!prod";

export const open: Fence = { mayWrite: () => true };

/** A task of Proxmox, as one of ours or of somebody else. */
export function upid(type: string, id: string, user = tokenId): string {
  return `UPID:pve1:00001234:00ABCDEF:69573C86:${type}:${id}:${user}:`;
}

export function data(value: unknown): PveReply {
  return reply(200, "OK", { data: value });
}

/** An error as 8.4 and later send it. */
export function error(status: number, text: string, errors?: Record<string, string>): PveReply {
  return reply(status, text, { data: null, message: `${text}\n`, ...(errors ? { errors } : {}) });
}

function reply(status: number, reason: string, body: unknown): PveReply {
  return { type: "answered", status, reason, body: JSON.stringify(body), from: "pve1" };
}

type Script = Readonly<Record<string, PveReply | ((request: PveRequest) => PveReply)>>;

/** A server that answers by a script of "METHOD /path" and remembers what it was asked. */
export class ScriptedServer {
  readonly requests: PveRequest[] = [];
  readonly #script: Script;

  constructor(script: Script) {
    this.#script = script;
  }

  readonly send: Send = async (request) => {
    this.requests.push(request);
    if (request.mayWrite !== undefined && !request.mayWrite()) {
      return { type: "notSent", why: "fenced", detail: "the fence is closed" };
    }
    const answer =
      this.#pendingOf(request) ??
      timeOf(request) ??
      this.#script[`${request.method} ${request.path}`];
    if (answer === undefined)
      throw new Error(`not in the script: ${request.method} ${request.path}`);
    return typeof answer === "function" ? answer(request) : answer;
  };

  /**
   * The list of what is pending tells the whole config, as the real one does: of a script that has
   * the config it is made from that, and from what the script itself says to be pending.
   */
  #pendingOf({ method, path }: PveRequest): PveReply | undefined {
    const name = `${method} ${path}`;
    const answer = this.#script[name.replace(/\/pending$/, "/config")];
    if (!name.endsWith("/pending") || answer === undefined) return undefined;
    const config = typeof answer === "function" ? answer({ method, path }) : answer;
    if (config.type !== "answered" || config.status !== 200) return config;
    const waiting = dataOf(this.#script[name]);
    const said = Array.isArray(waiting) ? waiting.filter(isJsonObject) : [];
    const whole = dataOf(config);
    const rows = Object.entries(isJsonObject(whole) ? whole : {})
      .filter(([key]) => !said.some((row) => row["key"] === key))
      .map(([key, value]) => ({ key, value }));
    return data([...rows, ...said]);
  }

  get writes(): PveRequest[] {
    return this.requests.filter(({ method }) => method !== "GET");
  }
}

/** The clock of scripted servers, and of the drivers that ask them: it stands still. */
export const scriptClock = new VirtualClock();

function timeOf({ path }: PveRequest): PveReply | undefined {
  if (!/^\/nodes\/[^/]+\/time$/.test(path)) return undefined;
  return data({ timezone: "UTC", time: Math.floor(scriptClock.nowMs() / 1000) });
}

function dataOf(scripted: Script[string] | undefined): unknown {
  if (scripted === undefined || typeof scripted === "function") return [];
  const body: unknown = scripted.type === "answered" ? JSON.parse(scripted.body) : undefined;
  return isJsonObject(body) ? body["data"] : undefined;
}

export function driverOn(server: ScriptedServer): ReturnType<typeof proxmoxDriver> {
  return proxmoxDriver({ send: server.send, tokenId, clock: scriptClock, random: zeros });
}

const zeros: Random = {
  number: () => 0,
  bytes: (count) => new Uint8Array(count),
  uuid: () => "00000000-0000-4000-8000-000000000000",
};
