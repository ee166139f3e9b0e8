import type { Connect, Credentials } from "../controllers/index.ts";
import type { Hypervisor } from "../api/index.ts";
import { httpsTransport, proxmoxDriver } from "../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../hypervisor/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { missingDriver } from "./missing-driver.ts";

/** The one place that knows which types of hypervisors there are. A new driver is a line here. */
export function createConnect(environment: {
  readonly clock: Clock;
  readonly random: Random;
}): Connect {
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

function connectProxmox(
  { spec }: Hypervisor,
  environment: {
    readonly clock: Clock;
    readonly random: Random;
    readonly credentials: Credentials | undefined;
    readonly unlock?: Credentials | undefined;
  },
): HypervisorDriver {
  const { credentials = {}, unlock } = environment;
  const token = { id: credentials["tokenId"] ?? "", secret: credentials["tokenSecret"] ?? "" };
  const transport = httpsTransport({
    endpoints: spec.endpoints,
    token,
    tls: trustOf(spec.tls ?? {}),
    timeoutMs: spec.limits.callTimeoutSeconds * 1000,
    clock: environment.clock,
  });
  const exclusive = (spec.storages ?? []).filter((storage) => storage.exclusive === true);
  return proxmoxDriver({
    send: transport.send,
    close: transport.close,
    tokenId: token.id,
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
