import type { Connect, Credentials } from "../controllers/index.ts";
import type { Hypervisor } from "../api/index.ts";
import { httpsTransport, proxmoxDialect, proxmoxDriver } from "../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../hypervisor/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { failingSend, type ProcessFailpoints } from "./failpoints.ts";
import type { HypervisorMetrics } from "./hypervisor-metrics.ts";
import { missingDriver } from "./missing-driver.ts";
import type { NoteCertificate } from "./program-metrics.ts";

export interface ConnectEnvironment {
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: HypervisorMetrics;
  readonly noteCertificate: NoteCertificate;
  /** Undefined but in tests of crashes. */
  readonly failpoints?: ProcessFailpoints | undefined;
}

/** The one place that knows which types of hypervisors there are. A new driver is a line here. */
export function createConnect(environment: ConnectEnvironment): Connect {
  return (hypervisor, credentials, unlock) => {
    switch (hypervisor.spec.type) {
      case "proxmox":
        return connectProxmox(hypervisor, { ...environment, credentials, unlock });
      case "libvirt":
      case "vsphere":
        return missingDriver(hypervisor.spec.type);
    }
  };
}

/** What a type of hypervisor does with a shape, as far as that is known without asking it. */
export function dialectOf({ spec, status }: Hypervisor): Dialect | undefined {
  switch (spec.type) {
    case "proxmox":
      return proxmoxDialect(status?.version ?? "");
    case "libvirt":
    case "vsphere":
      return undefined;
  }
}

type Dialect = Pick<HypervisorDriver, "fit" | "changeOf">;

function connectProxmox(
  { metadata, spec }: Hypervisor,
  environment: ConnectEnvironment & {
    readonly credentials: Credentials | undefined;
    readonly unlock?: Credentials | undefined;
  },
): HypervisorDriver {
  const { credentials = {}, unlock } = environment;
  const { name: hypervisor = "" } = metadata;
  const token = { id: credentials["tokenId"] ?? "", secret: credentials["tokenSecret"] ?? "" };
  const transport = httpsTransport({
    endpoints: spec.endpoints,
    token,
    tls: trustOf(spec.tls ?? {}),
    timeoutMs: spec.limits.callTimeoutSeconds * 1000,
    clock: environment.clock,
    onCertificate: noteEarliest((ms) => environment.noteCertificate("hypervisor", hypervisor, ms)),
  });
  const exclusive = (spec.storages ?? []).filter((storage) => storage.exclusive === true);
  return proxmoxDriver({
    send: failingSend(
      environment.metrics.measure(transport.send, hypervisor),
      environment.failpoints,
    ),
    close: transport.close,
    tokenId: token.id,
    clock: environment.clock,
    random: environment.random,
    callsPerNode: spec.limits.callsPerNode,
    unlock: unlock && accountOf(unlock),
    settings: {
      ...(spec.idRange === undefined ? {} : { idRange: spec.idRange }),
      exclusiveStorages: exclusive.map(({ name }) => name),
    },
  });
}

function trustOf({
  ca,
  fingerprints,
  serverName,
}: NonNullable<Hypervisor["spec"]["tls"]>): Parameters<typeof httpsTransport>[0]["tls"] {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(fingerprints === undefined ? {} : { fingerprints }),
    ...(serverName === undefined ? {} : { serverName }),
  };
}

/** Root's own login, which alone may clear a lock. */
function accountOf(secret: Credentials): { username: string; password: string } | undefined {
  const { username, password } = secret;
  return username === undefined || password === undefined ? undefined : { username, password };
}

/** Of several endpoints the one whose certificate ends first is the one to worry about. */
function noteEarliest(note: (expiresMs: number) => void): (expiresMs: number, url: string) => void {
  const known = new Map<string, number>();
  return (expiresMs, url) => {
    known.set(url, expiresMs);
    note(Math.min(...known.values()));
  };
}
