import assert from "node:assert/strict";
import { vmImageKind } from "../../api/index.ts";
import { proxmoxDriver } from "../../drivers/proxmox/index.ts";
import type { PveReply, PveRequest, Send, UnlockAccount } from "../../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import {
  ProxmoxModel,
  smallCluster,
  tokenName,
  tokenUser,
  type ModelOptions,
  type Release,
} from "../../sim/index.ts";
import { askModel, sendTo } from "../../sim/wire/index.ts";
import { countingRandom, openWorld, type World } from "./world.ts";

const tokenSecret = "00000000-0000-4000-8000-0000000000aa";
const tokenId = `${tokenUser}!${tokenName}`;
const token = { id: tokenId, secret: tokenSecret };

interface Simulated {
  readonly model: ProxmoxModel;
  readonly driver: () => HypervisorDriver;
  /** Every request so far but those for the epoch, which each start of Berth makes. */
  readonly requests: PveRequest[];
  readonly epochRequests: PveRequest[];
  readonly wire: Send;
}

/** How a simulated cluster differs from the usual one. */
export interface StageOptions extends Pick<ModelOptions, "timing" | "fetch"> {
  readonly nodes?: readonly string[];
  /** How far the clocks of all nodes are ahead of Berth's. */
  readonly clockAheadMs?: number;
  /** Root's login, for unlocking. */
  readonly unlock?: UnlockAccount;
  /** Stands between driver and model: it may lose, change or hold a reply. */
  readonly between?: (request: PveRequest, send: Send) => Promise<PveReply>;
  /** Stands between the controllers and the driver. */
  readonly around?: (driver: HypervisorDriver) => HypervisorDriver;
}

/** A simulated Proxmox cluster on the world's clock, and drivers for it. */
function simulateProxmox(
  release: Release,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  {
    between,
    unlock,
    clockAheadMs = 0,
    around = (driver) => driver,
    nodes = ["pve1", "pve2", "pve3"],
    ...unusual
  }: StageOptions,
): Simulated {
  const options = { release, nodes, clock, random, password: "secret", tokenSecret };
  const model = new ProxmoxModel({ state: smallCluster(options), clock, random, ...unusual });
  model.cluster.setClocks(clockAheadMs);
  const requests: PveRequest[] = [];
  const epochRequests: PveRequest[] = [];
  const wire = sendTo(model, token);
  const send: Send = (request) => {
    const isForEpoch = /^\/pools(\/berth-epoch-|$)/.test(request.path);
    (isForEpoch ? epochRequests : requests).push(request);
    return between === undefined ? wire(request) : between(request, wire);
  };
  const made = { send, tokenId, clock, random, unlock };
  const driver = (): HypervisorDriver => around(proxmoxDriver(made));
  return { model, requests, epochRequests, wire, driver };
}

/** What somebody else does with a token of all rights; the task that it began may go on. */
export async function actAsPerson(model: ProxmoxModel, request: PveRequest): Promise<void> {
  const reply = await askModel(model, request, token);
  assert.ok(reply.type === "answered" && reply.status < 300, JSON.stringify(reply));
}

const image = "local:import/debian-12-generic-amd64.qcow2";

export interface SimulatedWorld {
  readonly world: World;
  readonly proxmox: ProxmoxModel;
  readonly requests: PveRequest[];
  readonly epochRequests: PveRequest[];
  /** What a person does beside Berth, while time passes. Its work then goes on by itself. */
  byHand(request: Pick<PveRequest, "method" | "path" | "params">): Promise<void>;
  /** The same, by root and not with Berth's own token. */
  asRoot(request: Pick<PveRequest, "method" | "path" | "params">): Promise<void>;
}

/** A whole Berth with a simulated Proxmox cluster, each of whose nodes has the image. */
export async function openProxmox(
  release: Release = "8.4",
  options: StageOptions = {},
): Promise<SimulatedWorld> {
  const made: { simulated?: Simulated } = {};
  const world = await openWorld((clock) => {
    made.simulated = simulateProxmox(release, { clock, random: countingRandom(99) }, options);
    return made.simulated.driver;
  });
  assert.ok(made.simulated);
  const spec = { source: { volume: { hypervisorRef: { name: "model" }, id: image } } };
  const merge = { spec };
  await world.client.of(vmImageKind).patch({ namespace: "default", name: "debian" }, { merge });
  const { model: proxmox, requests, epochRequests, wire } = made.simulated;
  const byHand = async (request: PveRequest): Promise<void> => {
    const reply = await wire(request);
    assert.ok(reply.type === "answered" && reply.status === 200, JSON.stringify(reply));
  };
  const asRoot: SimulatedWorld["asRoot"] = async (request) => {
    return byHand({ ...request, ticket: await rootTicket(wire) });
  };
  return { world, proxmox, requests, epochRequests, byHand, asRoot };
}

async function rootTicket(wire: Send): Promise<NonNullable<PveRequest["ticket"]>> {
  const params = { username: "root@pam", password: "secret" };
  const reply = await wire({ method: "POST", path: "/access/ticket", params });
  assert.ok(reply.type === "answered");
  const { data } = JSON.parse(reply.body) as { data: Record<string, string> };
  return { ticket: data["ticket"] ?? "", csrf: data["CSRFPreventionToken"] ?? "" };
}
