import { answered, checks } from "../../../hypervisor/index.ts";
import type { Answer, Diagnosis, Finding, HypervisorDoctor } from "../../../hypervisor/index.ts";
import type { Clock } from "../../../kernel/clock.ts";
import type { JsonObject } from "../../../kernel/json.ts";
import { ConfigReader } from "../config-reader.ts";
import { readFailureOf } from "../errors.ts";
import { isSupported, type Release } from "../release.ts";
import type { ProxmoxConnection } from "../transport.ts";
import { PveApi } from "../wire/api.ts";
import { failingOver } from "../wire/failover.ts";
import { httpsSend, type TlsTrust } from "../wire/https.ts";
import { limited } from "../wire/limited.ts";
import { rowsOf } from "../wire/rows.ts";
import type { Send } from "../wire/wire.ts";
import { hasBerthRole, judgeRights } from "./grants.ts";
import { examineCluster, type HealthOptions } from "./health.ts";
import { examineLocks } from "./locks.ts";
import { NodeClocks } from "../node-clocks.ts";
import { readOwnWork } from "./own-work.ts";
import { type Probe, probeEndpoint } from "./probe.ts";
import { takeSnapshot } from "./snapshot.ts";
import { judgeVisits, type Visit, visitEndpoint } from "./visit.ts";

/** One way into the cluster: how to look at its certificate, and how to ask it. */
export interface DoctorEndpoint {
  readonly url: string;
  readonly probe: () => Promise<Probe>;
  readonly send: Send;
  readonly close?: () => void;
}

export interface ProxmoxDoctorOptions {
  readonly endpoints: readonly DoctorEndpoint[];
  readonly tls: TlsTrust;
  readonly tokenId: string;
  readonly clock: Clock;
  /** The system that it should be, where that is known. */
  readonly systemId?: string;
  readonly defaults?: HealthOptions["defaults"];
  readonly callsPerNode?: number;
}

const callsPerNodeDefault = 2;

/** Diagnosis of a Proxmox VE cluster. It reads, and never writes. */
export function proxmoxDoctor(options: ProxmoxDoctorOptions): HypervisorDoctor {
  const { endpoints, callsPerNode = callsPerNodeDefault } = options;
  const clocks = new NodeClocks(options.clock);
  const transport = failingOver(endpoints.map((endpoint) => endpoint.send));
  const send = limited(clocks.timed(transport), callsPerNode);
  const api = new PveApi(send);
  return {
    diagnose: () => diagnose(options, send),
    snapshot: () => snapshot(send),
    ownWork: (sinceMs) => readOwnWork({ api, clocks }, { user: options.tokenId, sinceMs }),
    close: () => {
      for (const endpoint of endpoints) endpoint.close?.();
    },
  };
}

/** The endpoints of a connection over real HTTPS. */
export function httpsEndpoints({ endpoints, ...rest }: ProxmoxConnection): DoctorEndpoint[] {
  const { tls, timeoutMs, clock } = rest;
  return endpoints.map((url) => ({
    url,
    probe: () => probeEndpoint(url, { tls, timeoutMs, clock }),
    ...httpsSend({ url, ...rest }),
  }));
}

async function diagnose(options: ProxmoxDoctorOptions, send: Send): Promise<Diagnosis> {
  const visits = await Promise.all(options.endpoints.map((each) => visitEndpoint(each, options)));
  const about = judgeVisits(visits, options);
  const met = visits.find(hasAnswered);
  if (met === undefined) return { findings: inOrder(about) };
  const { release, systemId } = met.system;
  const api = new PveApi(send);
  const findings = [...about, ...(await examineRights(api, release, options.tokenId))];
  findings.push(...(await examineRest(api, release, options.defaults ?? {})));
  return { findings: inOrder(findings), version: release.text, systemId };
}

function hasAnswered(visit: Visit): visit is Visit & { readonly is: "met" } {
  return visit.is === "met";
}

async function examineRights(api: PveApi, release: Release, tokenId: string): Promise<Finding[]> {
  if (!isSupported(release)) return [];
  const permissions = await api.get("/access/permissions");
  if (permissions.type !== "data") {
    const { message } = readFailureOf(permissions, "ask for the rights");
    return [{ check: "Rights", level: "warning", message }];
  }
  // Everybody may list the roles; who may not gets the command for a new one.
  const roles = await api.get("/access/roles");
  const hasRole = roles.type === "data" && hasBerthRole(rowsOf(roles.data));
  return judgeRights(permissions.data, { tokenId, release, hasRole });
}

async function examineRest(
  api: PveApi,
  release: Release,
  defaults: HealthOptions["defaults"],
): Promise<Finding[]> {
  const resources = await api.get("/cluster/resources");
  if (resources.type !== "data") {
    const { message } = readFailureOf(resources, "look at the cluster");
    return [{ check: "Nodes", level: "problem", message }];
  }
  const rows = rowsOf(resources.data);
  return [
    ...(await examineCluster(api, rows, { release, defaults })),
    ...(await examineLocks(api, new ConfigReader(api), rows)),
  ];
}

function inOrder(findings: readonly Finding[]): Finding[] {
  return findings.toSorted((a, b) => checks.indexOf(a.check) - checks.indexOf(b.check));
}

async function snapshot(send: Send): Promise<Answer<JsonObject>> {
  const taken = await takeSnapshot(new PveApi(send));
  // cast: an inventory is plain JSON, which an interface cannot say.
  return taken.ok ? answered(taken.value as unknown as JsonObject) : taken;
}
