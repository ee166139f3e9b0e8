import type { VirtualMachine } from "../../api/index.ts";

/**
 * Volumes of a hypervisor that objects declare to be their disks: a machine takes them when it is
 * made, so until then nothing on the hypervisor refers to them, and they are nobody's leftovers.
 */
export function takenOn(hypervisor: string, vms: readonly VirtualMachine[]): ReadonlySet<string> {
  const taken = vms.flatMap(({ spec: { hypervisorRef, source } }) => {
    const { mode, diskId } = source?.importedDisk ?? {};
    return hypervisorRef.name === hypervisor && mode === "Take" && diskId ? [diskId] : [];
  });
  return new Set(taken);
}
