import type { Hypervisor } from "../api/index.ts";

/** How many may work at once on what a slot names, as the Hypervisor says. */
export function slotLimit(
  name: string,
  find: (hypervisor: string) => Hypervisor | undefined,
): number {
  const [, kind = "", of = "", hypervisor = of] = /^(\w+) (.+?)(?: of (\S+))?$/.exec(name) ?? [];
  const found = find(hypervisor);
  return found === undefined ? 1 : limitIn(found, kind, of);
}

function limitIn({ spec }: Hypervisor, kind: string, name: string): number {
  if (kind === "hypervisor") return spec.slots.hypervisor;
  // Machines that have begun: one that is worked on, and one that is ready for when it is done.
  if (kind === "begin") return 2 * spec.slots.hypervisor;
  if (kind === "node") return spec.slots.node;
  // Of a storage that each node has for itself, each has as many.
  const [storage] = name.split(" on ");
  return spec.storages?.find((row) => row.name === storage)?.slots ?? spec.slots.storage;
}
