import type { Connect, Credentials } from "../controllers/index.ts";
import type { Hypervisor } from "../api/index.ts";
import { httpsTransport, proxmoxDriver } from "../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../hypervisor/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { failingSend, type ProcessFailpoints } from "./failpoints.ts";
import { missingDriver } from "./missing-driver.ts";

interface Environment {
  readonly clock: Clock;
  readonly random: Random;
  readonly failpoints?: ProcessFailpoints | undefined;
}

/** The one place that knows which types of hypervisors there are. A new driver is a line here. */
export function createConnect(environment: Environment): Connect {
  return (hypervisor, credentials) => {
    switch (hypervisor.spec.type) {
      case "proxmox":
        return connectProxmox(hypervisor, credentials ?? {}, environment);
      case "libvirt":
      case "vsphere":
        return missingDriver(hypervisor.spec.type);
    }
  };
}

function connectProxmox(
  { spec }: Hypervisor,
  credentials: Credentials,
  environment: Environment,
): HypervisorDriver {
  const { ca, fingerprints, serverName } = spec.tls ?? {};
  const token = { id: credentials["tokenId"] ?? "", secret: credentials["tokenSecret"] ?? "" };
  const transport = httpsTransport({
    endpoints: spec.endpoints,
    token,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(fingerprints === undefined ? {} : { fingerprints }),
      ...(serverName === undefined ? {} : { serverName }),
    },
    timeoutMs: spec.limits.callTimeoutSeconds * 1000,
    clock: environment.clock,
  });
  const exclusive = (spec.storages ?? []).filter((storage) => storage.exclusive === true);
  return proxmoxDriver({
    send: failingSend(transport.send, environment.failpoints),
    close: transport.close,
    tokenId: token.id,
    random: environment.random,
    callsPerNode: spec.limits.callsPerNode,
    settings: {
      ...(spec.idRange === undefined ? {} : { idRange: spec.idRange }),
      exclusiveStorages: exclusive.map(({ name }) => name),
    },
  });
}
