import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { Failure } from "../../hypervisor/index.ts";
import {
  hasAccessNetwork,
  hasImportContent,
  hasMappings,
  needsSdnUse,
  type Release,
} from "./release.ts";

/** A right that Berth needs and where, and what for. */
export interface NeededRight {
  readonly path: string;
  readonly privilege: string;
  readonly reason: string;
}

const vmRights = [
  ["VM.Allocate", "make and destroy machines"],
  ["VM.Audit", "see machines"],
  ["VM.Clone", "copy the disks of other machines"],
  ["VM.Config.CPU", "set cpus"],
  ["VM.Config.Memory", "set memory"],
  ["VM.Config.Disk", "add and grow disks"],
  ["VM.Config.Network", "set network cards"],
  ["VM.Config.HWType", "stamp the identity"],
  ["VM.Config.Options", "stamp the mark"],
  ["VM.Config.Cloudinit", "set cloud-init"],
  ["VM.Config.CDROM", "attach drives"],
  ["VM.PowerMgmt", "start and stop"],
  ["VM.Migrate", "move machines to other nodes"],
] as const;

const storageRights = [
  ["Datastore.AllocateSpace", "make disks"],
  ["Datastore.AllocateTemplate", "bring in images"],
  ["Datastore.Allocate", "see and remove what a crash left behind"],
  ["Datastore.Audit", "see storages"],
] as const;

/** The epoch is a pool. Without these Berth writes nothing: it cannot tell that it acts alone. */
const poolRights = [
  ["Pool.Allocate", "record which run of this installation acts"],
  ["Pool.Audit", "see which run of this installation acts"],
] as const;

/** What a token needs on a release. `docs/drivers/proxmox.md` has the commands that grant it. */
export function neededRights(release: Release): readonly NeededRight[] {
  return [
    ...vmRights.map(([privilege, reason]) => ({ path: "/vms", privilege, reason })),
    { path: "/vms", privilege: agentRight(release), reason: "ask guests for their addresses" },
    ...storageRights.map(([privilege, reason]) => ({ path: "/storage", privilege, reason })),
    { path: "/", privilege: "Sys.Audit", reason: "see nodes, the quorum and tasks" },
    ...poolRights.map(([privilege, reason]) => ({ path: "/pool", privilege, reason })),
    ...(hasImportContent(release)
      ? [{ path: "/nodes", privilege: "Sys.AccessNetwork", reason: "let nodes fetch images" }]
      : []),
    ...(needsSdnUse(release)
      ? [{ path: "/sdn/zones", privilege: "SDN.Use", reason: "use bridges" }]
      : []),
  ];
}

/** Rights that one part of Berth needs, and who does not use that part need not grant. */
export function optionalRights(release: Release): readonly NeededRight[] {
  return [
    { path: "/", privilege: "Sys.Console", reason: "declare high availability" },
    ...fetchRights(release),
    ...(hasMappings(release)
      ? [{ path: "/mapping", privilege: "Mapping.Use", reason: "pass devices through" }]
      : []),
  ];
}

/** Before nodes fetch images they fetch discs only, which a person may as well upload. */
function fetchRights(release: Release): readonly NeededRight[] {
  const order = { path: "/", privilege: "Sys.Modify", reason: "set the order of start-up" };
  if (hasImportContent(release)) return [order];
  const reason = "let nodes fetch discs";
  if (hasAccessNetwork(release)) {
    return [order, { path: "/nodes", privilege: "Sys.AccessNetwork", reason }];
  }
  return [{ ...order, reason: `${order.reason} and ${reason}` }];
}

/** Renamed in pve-access-control 9.0.2: a role that names the other one is refused. */
function agentRight(release: Release): string {
  return release.major >= 9 ? "VM.GuestAgent.Audit" : "VM.Monitor";
}

/** The rights that are missing, as findings for a status. */
export function missingRights(permissions: unknown, release: Release): Failure[] {
  return lackedRights(permissions, release).map(({ path, privilege, reason }) => ({
    category: "PermissionDenied",
    message: `the token lacks ${privilege} on ${path}, which it needs to ${reason}`,
    remedy: "berth doctor prints the commands that grant it.",
  }));
}

/** Needed and not granted, from GET /access/permissions: `{path: {privilege: propagate}}`. */
export function lackedRights(
  permissions: unknown,
  release: Release,
  needed = neededRights(release),
): NeededRight[] {
  const granted = isJsonObject(permissions) ? permissions : {};
  return needed.filter(({ path, privilege }) => !has(granted, path, privilege));
}

/** What is granted anywhere and not needed by everybody: more than a token has to be able to do. */
export function spareRights(permissions: unknown, release: Release): string[] {
  const granted = isJsonObject(permissions) ? Object.values(permissions) : [];
  const needed = new Set(neededRights(release).map(({ privilege }) => privilege));
  const held = granted.flatMap((rights) => (isJsonObject(rights) ? Object.keys(rights) : []));
  return [...new Set(held)].filter((privilege) => !needed.has(privilege)).toSorted();
}

/**
 * Whether a right holds on a path and all below it. The server lists the usual paths with all that
 * holds there, inherited or not; for one that it does not list, the next above it counts.
 */
function has(granted: JsonObject, path: string, privilege: string): boolean {
  const rights = [path, path.slice(0, path.lastIndexOf("/")), "/"]
    .map((candidate) => granted[candidate])
    .find(isJsonObject);
  const value = rights?.[privilege];
  // 1: with propagation. 0 is enough only where nothing below is asked for.
  return value === 1 || (path === "/" && value === 0);
}
