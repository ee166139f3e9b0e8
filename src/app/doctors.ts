import type { HypervisorSpec } from "../api/index.ts";
import type { Credentials } from "../controllers/index.ts";
import { httpsEndpoints, proxmoxDoctor, type TlsTrust } from "../drivers/proxmox/index.ts";
import type { HypervisorDoctor } from "../hypervisor/index.ts";
import type { Clock } from "../kernel/clock.ts";

/** What of a Hypervisor a doctor has to know. */
export type ExaminedSpec = Pick<
  HypervisorSpec,
  "type" | "endpoints" | "tls" | "systemId" | "defaults"
>;

/** Makes the doctor of a Hypervisor. */
export type CreateDoctor = (spec: ExaminedSpec, credentials: Credentials) => HypervisorDoctor;

/** A person waits for the answer, so less patience than the driver's. A refusal takes 3 s. */
const timeoutMs = 12_000;

/** The one place that knows who can examine which type of hypervisor. A new one is a line here. */
export function createDoctors(clock: Clock): CreateDoctor {
  return (spec, credentials) => {
    switch (spec.type) {
      case "proxmox":
        return examineProxmox(spec, credentials, clock);
      case "libvirt":
      case "vsphere":
        return missingDoctor(spec.type);
    }
  };
}

function examineProxmox(
  spec: ExaminedSpec,
  credentials: Credentials,
  clock: Clock,
): HypervisorDoctor {
  const tls = trustOf(spec);
  const token = { id: credentials["tokenId"] ?? "", secret: credentials["tokenSecret"] ?? "" };
  return proxmoxDoctor({
    endpoints: httpsEndpoints({ endpoints: spec.endpoints, token, tls, timeoutMs, clock }),
    tls,
    tokenId: token.id,
    clock,
    ...(spec.systemId === undefined ? {} : { systemId: spec.systemId }),
    defaults: defaultsOf(spec),
  });
}

function trustOf({ tls = {} }: ExaminedSpec): TlsTrust {
  const { ca, fingerprints, serverName } = tls;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(fingerprints === undefined ? {} : { fingerprints }),
    ...(serverName === undefined ? {} : { serverName }),
  };
}

function defaultsOf({ defaults = {} }: ExaminedSpec): { storage?: string; imageStorage?: string } {
  const { storage, imageStorage } = defaults;
  return {
    ...(storage === undefined ? {} : { storage }),
    ...(imageStorage === undefined ? {} : { imageStorage }),
  };
}

function missingDoctor(type: string): HypervisorDoctor {
  const message = `this version of Berth cannot examine hypervisors of type ${type}`;
  return {
    diagnose: async () => ({ findings: [{ check: "Version", level: "warning", message }] }),
    snapshot: async () => ({ ok: false, failure: { category: "APINotSupported", message } }),
    ownWork: async () => ({ ok: false, failure: { category: "APINotSupported", message } }),
    close: () => undefined,
  };
}
