import type { Hypervisor } from "../../api/index.ts";

/** What a connection would meet among the Hypervisors that are declared already. */
export interface Wanted {
  readonly name: string;
  readonly type: string;
  readonly endpoints: readonly string[];
  readonly systemId: string | undefined;
}

/**
 * Why a connection cannot be declared under its name, in one sentence; undefined if it can. A
 * Hypervisor is changed only if it is the same system: by its identity, or where it never had one,
 * by an endpoint. Pure.
 */
export function conflictOf(wanted: Wanted, declared: readonly Hypervisor[]): string | undefined {
  const { name, type, endpoints, systemId } = wanted;
  const same = declared.find(({ metadata }) => metadata.name === name);
  const twin = declared.find(({ metadata, spec }) => {
    return systemId !== undefined && spec.systemId === systemId && metadata.name !== name;
  });
  if (twin !== undefined) {
    const other = twin.metadata.name ?? "";
    return `the Hypervisor ${other} is this system already: say --name ${other} to change it`;
  }
  if (same === undefined) return undefined;
  const advice = "choose another --name, or delete it first";
  if (same.spec.type !== type) {
    return `the Hypervisor ${name} is there, of type ${same.spec.type}: ${advice}`;
  }
  if (same.spec.systemId === undefined) {
    const isMeant = same.spec.endpoints.some((endpoint) => endpoints.includes(endpoint));
    if (isMeant) return undefined;
    const at = same.spec.endpoints.join(", ");
    return `the Hypervisor ${name} is there, for ${at}: ${advice}`;
  }
  if (systemId === undefined || same.spec.systemId === systemId) return undefined;
  return `the Hypervisor ${name} is another system, ${same.spec.systemId}: ${advice}`;
}
