import type { HypervisorDoctor } from "../../../hypervisor/index.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { ProxmoxModel, seededRandom, smallCluster, tokenUser } from "../../../sim/index.ts";
import type { ClusterState, Release } from "../../../sim/index.ts";
import type { TlsTrust } from "../wire/https.ts";
import { encodeParams, type Params, type PveReply, type Send } from "../wire/wire.ts";
import { type DoctorEndpoint, proxmoxDoctor, type ProxmoxDoctorOptions } from "./doctor.ts";
import type { Probe, ShownCertificate } from "./probe.ts";

/** What the tests of the diagnosis share: a doctor at the bed of a simulated cluster. */

export const url = "https://pve1.example:8006";
export const tokenId = "berth@pve!berth";
const tokenSecret = "00000000-0000-4000-8000-0000000000aa";

/** Valid in the days of the virtual clock, which begins with 2026. */
export const certificate: ShownCertificate = {
  fingerprint: Array(32).fill("AA").join(":"),
  subject: "OU=PVE Cluster Node, CN=pve1.example",
  issuer: "CN=Proxmox Virtual Environment",
  validFromMs: Date.UTC(2025, 0, 1),
  validToMs: Date.UTC(2027, 0, 1),
  names: ["pve1.example"],
};

export const pinned: TlsTrust = { fingerprints: [certificate.fingerprint] };

export interface Clinic {
  readonly model: ProxmoxModel;
  readonly clock: VirtualClock;
  readonly send: Send;
  /** Requests that reached the cluster, as "METHOD /path". */
  readonly requests: string[];
  doctor(options?: Partial<ProxmoxDoctorOptions>): HypervisorDoctor;
  /** Lets time pass until the work is done. */
  settle<T>(work: Promise<T>): Promise<T>;
}

export interface ClinicOptions {
  readonly release?: Release;
  readonly nodes?: readonly string[];
  readonly change?: (state: ClusterState) => void;
  readonly seed?: number;
  /** The clock of the server is so far off. */
  readonly skewMs?: number;
}

export function openClinic(options: ClinicOptions = {}): Clinic {
  const { release = "9.2", nodes = ["pve1", "pve2", "pve3"], seed = 1 } = options;
  const clock = new VirtualClock();
  const random = seededRandom(seed);
  const world = { release, nodes, clock, random, password: "root's", tokenSecret };
  const state = smallCluster(world);
  options.change?.(state);
  return clinicOf(new ProxmoxModel({ state, clock, random }), clock, options.skewMs);
}

export function clinicOf(model: ProxmoxModel, clock: VirtualClock, skewMs = 0): Clinic {
  const requests: string[] = [];
  const send = sendTo(model, { clock, requests, skewMs });
  return {
    model,
    clock,
    send,
    requests,
    doctor: (options) => {
      const endpoints = [endpoint(send)];
      return proxmoxDoctor({ endpoints, tls: pinned, tokenId, clock, ...options });
    },
    settle: (work) => settle(clock, work),
  };
}

export function endpoint(send: Send, shown: Partial<ShownCertificate> = {}): DoctorEndpoint {
  const probe: Probe = { is: "shown", certificate: { ...certificate, ...shown } };
  return { url, probe: async () => probe, send };
}

export const neverSends: Send = async ({ path }) => {
  throw new Error(`${path} was sent, and nothing may be`);
};

interface Line {
  readonly clock: VirtualClock;
  readonly requests: string[];
  readonly skewMs: number;
}

function sendTo(model: ProxmoxModel, { clock, requests, skewMs }: Line): Send {
  return async ({ method, path, params }): Promise<PveReply> => {
    requests.push(`${method} ${path}`);
    const authorization = `PVEAPIToken=${tokenId}=${tokenSecret}`;
    const query = encodeParams(params ?? {});
    const whole = `/api2/json${path}${query === "" ? "" : `?${query}`}`;
    const reply = await model.send({ method, path: whole, headers: { authorization } });
    const { status, reason, body } = reply;
    const date = new Date(clock.nowMs() + skewMs).toUTCString();
    return { type: "answered", status, reason, body, from: url, date };
  };
}

async function settle<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  const state = { isOver: false };
  const over = (): void => void (state.isOver = true);
  work.then(over, over);
  for (let ticks = 0; ticks < 10_000; ticks++) {
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    if (state.isOver) return await work;
    clock.advance(clock.nextInMs() ?? 0);
  }
  throw new Error("the work never ends");
}

/** A token that is its user's equal no more, and a user without rights: as somebody makes them. */
export function withoutRights(state: ClusterState): void {
  state.acl = [];
  for (const { userid, tokens } of state.users) {
    if (userid === tokenUser) for (const token of tokens) token.privsep = 1;
  }
}

/** Runs a `pveum` command as root would, on the cluster's own API. */
export async function pveum(clinic: Clinic, command: string): Promise<void> {
  const { method, path, params } = translate(words(command));
  const headers = { ...(await rootHeaders(clinic)), "content-type": formType };
  const work = clinic.model.send({
    method,
    path: `/api2/json${path}`,
    headers,
    body: encodeParams(params),
  });
  const { status, reason } = await clinic.settle(work);
  if (status !== 200) throw new Error(`${command}: ${status} ${reason}`);
}

interface Ticket {
  readonly ticket: string;
  readonly CSRFPreventionToken: string;
}

const formType = "application/x-www-form-urlencoded";

async function rootHeaders(clinic: Clinic): Promise<Record<string, string>> {
  const login = clinic.model.send({
    method: "POST",
    path: "/api2/json/access/ticket",
    headers: { "content-type": formType },
    body: encodeParams({ username: "root@pam", password: "root's" }),
  });
  // cast: what a login answers.
  const { data } = JSON.parse((await clinic.settle(login)).body) as { data: Ticket };
  const cookie = `PVEAuthCookie=${encodeURIComponent(data.ticket)}`;
  return { cookie, csrfpreventiontoken: data.CSRFPreventionToken };
}

/** As a shell takes a line apart, as far as our commands need it. */
function words(command: string): string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => {
    return double ?? single ?? plain ?? "";
  });
}

interface Called {
  readonly method: "POST" | "PUT";
  readonly path: string;
  readonly params: Params;
}

function translate([program, ...rest]: readonly string[]): Called {
  if (program !== "pveum") throw new Error(`${program} is not pveum`);
  const [text = "", ...options] = rest.join("\n").split(/\n--/);
  const params = Object.fromEntries(
    options.map((option) => option.split("\n")).map(([name = "", value = ""]) => [name, value]),
  );
  const plain = text.replaceAll("\n", " ");
  const known = verbs.find(({ form }) => form.test(plain));
  if (known === undefined) throw new Error(`pveum has no "${plain}" here`);
  const [, first = "", second = ""] = known.form.exec(plain) ?? [];
  return known.call(params, first, second);
}

interface Verb {
  readonly form: RegExp;
  readonly call: (params: Params, first: string, second: string) => Called;
}

const verbs: readonly Verb[] = [
  {
    form: /^role add (\S+)$/,
    call: (params, roleid) => post("/access/roles", { roleid, ...params }),
  },
  {
    form: /^role modify (\S+)$/,
    call: (params, role) => ({ method: "PUT", path: `/access/roles/${role}`, params }),
  },
  {
    form: /^user add (\S+)$/,
    call: (params, userid) => post("/access/users", { userid, ...params }),
  },
  {
    form: /^user token add (\S+) (\S+)$/,
    call: (params, user, token) => post(`/access/users/${user}/token/${token}`, params),
  },
  {
    form: /^acl modify (\S+)$/,
    call: (params, path) => ({ method: "PUT", path: "/access/acl", params: { path, ...params } }),
  },
];

function post(path: string, params: Params): Called {
  return { method: "POST", path, params };
}
