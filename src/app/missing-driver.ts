import type { Failure, HypervisorDriver } from "../hypervisor/index.ts";

/** Stands for a type of hypervisor that this version cannot drive: every answer says so. */
export function missingDriver(type: string): HypervisorDriver {
  const failure: Failure = {
    category: "APINotSupported",
    message: `this version of Berth has no driver for hypervisors of type ${type}`,
    remedy: "Use a Hypervisor of type proxmox, or a later version of Berth.",
  };
  const no = { ok: false, failure } as const;
  return {
    system: async () => no,
    inventory: async () => no,
    observe: async () => ({ at: "unknown", failure }),
    propose: async () => no,
    fit: (shape) => ({ shape, refusals: [failure] }),
    preflight: async () => ({ findings: [failure], otherVolumes: [] }),
    begin: async () => ({ outcome: "refused", failure }),
    look: async () => ({ state: "unknown", failure }),
    recall: async () => no,
    leftovers: async () => no,
    survey: async () => no,
    images: async () => no,
    discs: async () => no,
    guest: async () => no,
    changeOf: () => ({ class: "Impossible", detail: failure.message }),
    epoch: async () => no,
    advance: async () => ({ outcome: "refused", failure }),
    close: () => undefined,
  };
}
