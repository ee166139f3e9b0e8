import type { ClaimSpec, Hypervisor, VirtualMachine, VMNetwork } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { bytesOf } from "./quantities.ts";

type Resources = NonNullable<ClaimSpec["resources"]>;

/** What the namespace may not use of the hypervisor, all at once. */
export function forbidden(
  vm: VirtualMachine,
  hypervisor: Hypervisor,
  networks: ReadonlyMap<string, VMNetwork>,
): Failure | undefined {
  const namespace = vm.metadata.namespace ?? "";
  const denied = [...deniedNetworks(networks, namespace), ...deniedHere(vm, hypervisor)];
  if (denied.length === 0) return undefined;
  const name = hypervisor.metadata.name ?? "";
  const what = [...new Set(denied)].join(", ");
  return {
    category: "PermissionDenied",
    message: `The namespace ${namespace} may not use ${what} on ${name}.`,
    remedy:
      `Add it to spec.allow of the Hypervisor ${name}, ` +
      "or to allowedNamespaces of the VMNetwork.",
  };
}

function deniedNetworks(networks: ReadonlyMap<string, VMNetwork>, namespace: string): string[] {
  const closed = [...networks].filter(([, { spec }]) => {
    return spec.allowedNamespaces !== undefined && !includes(spec.allowedNamespaces, namespace);
  });
  return closed.map(([name]) => `the VMNetwork ${name}`);
}

function deniedHere({ metadata, spec }: VirtualMachine, hypervisor: Hypervisor): string[] {
  const { allow } = hypervisor.spec;
  const entry = allow && entryOf(allow, metadata.namespace ?? "");
  // Always by an entry: these reach what is not Berth's.
  const special = deniedSpecial(spec, entry);
  if (allow === undefined) return special;
  const usual = deniedUsual(spec, entry, hypervisor.spec.defaults?.storage);
  return [...usual, ...special];
}

function deniedUsual(
  spec: VirtualMachine["spec"],
  entry: AllowEntry | undefined,
  storageDefault: string | undefined,
): string[] {
  const bridges = (spec.networks ?? []).map(({ bridge }) => bridge);
  const storages = (spec.disks ?? []).map(({ storage }) => storage ?? storageDefault);
  const isId = spec.externalId !== undefined && entry?.externalId !== true;
  return [
    ...notIn(entry?.networks, bridges).map((bridge) => `the bridge ${bridge}`),
    ...notIn(entry?.storages, storages).map((storage) => `the storage ${storage}`),
    ...(isId ? ["spec.externalId"] : []),
  ];
}

type AllowEntry = NonNullable<Hypervisor["spec"]["allow"]>[number];

function deniedSpecial(spec: VirtualMachine["spec"], entry: AllowEntry | undefined): string[] {
  const { pci = [], usb = [] } = spec.devices ?? {};
  const mappings = [...pci, ...usb].map(({ mapping }) => mapping);
  const isAdopting = spec.adopt !== undefined && entry?.adopt !== true;
  return [
    ...notIn(entry?.passthrough, mappings).map((mapping) => `the mapping ${mapping}`),
    ...(isAdopting ? ["spec.adopt"] : []),
  ];
}

function notIn(
  allowed: readonly string[] | undefined,
  names: readonly (string | undefined)[],
): string[] {
  const given = names.filter((name) => name !== undefined);
  return given.filter((name) => !includes(allowed, name));
}

/** What would be more than the namespace may take, all at once. */
export function overQuota(
  { spec, metadata }: Hypervisor,
  namespace: string,
  { held, wanted }: { readonly held: readonly ClaimSpec[]; readonly wanted: Resources },
): Failure | undefined {
  const quota = spec.quotas && entryOf(spec.quotas, namespace);
  if (quota === undefined) return undefined;
  const all = [...held.map(({ resources }) => resources), wanted].filter(
    (one) => one !== undefined,
  );
  const sum = (of: (one: Resources) => number): number =>
    all.reduce((total, one) => total + of(one), 0);
  const bounds: readonly (readonly [string, number, number | undefined])[] = [
    ["machines", held.length + 1, quota.machines],
    ["cpu", sum(({ cpu }) => cpu), quota.cpu],
    ["memory", sum(({ memory }) => bytesOf(memory)), bytes(quota.memory)],
    ["storage", sum(({ storage }) => bytesOf(storage)), bytes(quota.storage)],
  ];
  const over = bounds.filter(([, needed, bound]) => bound !== undefined && needed > bound);
  if (over.length === 0) return undefined;
  const figures = over.map(([what, needed, bound]) => `${what} ${needed} of ${bound ?? 0}`);
  return {
    category: "QuotaExceeded",
    message: `The namespace ${namespace} would pass its quota: ${figures.join(", ")}.`,
    remedy: `Raise spec.quotas of the Hypervisor ${metadata.name ?? ""}, or delete other machines.`,
  };
}

/** A namespace's own entry, else that of all. */
function entryOf<Entry extends { namespace: string }>(
  entries: readonly Entry[],
  namespace: string,
): Entry | undefined {
  const own = entries.find((entry) => entry.namespace === namespace);
  return own ?? entries.find((entry) => entry.namespace === "*");
}

function includes(names: readonly string[] | undefined, name: string): boolean {
  return names?.some((candidate) => candidate === "*" || candidate === name) ?? false;
}

function bytes(quantity: string | number | undefined): number | undefined {
  return quantity === undefined ? undefined : bytesOf(quantity);
}
