import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { hasImportContent, needsSdnUse, type Release } from "./release.ts";

/** A right that Berth needs and where, and what for. */
interface NeededRight {
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
] as const;

const storageRights = [
  ["Datastore.AllocateSpace", "make disks"],
  ["Datastore.AllocateTemplate", "bring in images"],
  ["Datastore.Allocate", "see and remove what a crash left behind"],
  ["Datastore.Audit", "see storages"],
] as const;

/** What a token needs on a release. `docs/drivers/proxmox.md` has the commands that grant it. */
export function neededRights(release: Release): readonly NeededRight[] {
  return [
    ...vmRights.map(([privilege, reason]) => ({ path: "/vms", privilege, reason })),
    ...storageRights.map(([privilege, reason]) => ({ path: "/storage", privilege, reason })),
    { path: "/", privilege: "Sys.Audit", reason: "see nodes, the quorum and tasks" },
    ...(hasImportContent(release)
      ? [{ path: "/nodes", privilege: "Sys.AccessNetwork", reason: "let nodes fetch images" }]
      : []),
    ...(needsSdnUse(release)
      ? [{ path: "/sdn/zones", privilege: "SDN.Use", reason: "use bridges" }]
      : []),
  ];
}

/** The rights that are missing, from GET /access/permissions: `{path: {privilege: propagate}}`. */
export function missingRights(permissions: unknown, release: Release): Failure[] {
  const granted = isJsonObject(permissions) ? permissions : {};
  const missing = neededRights(release).filter(({ path, privilege }) => {
    return !has(granted, path, privilege);
  });
  return missing.map(({ path, privilege, reason }) => ({
    category: "PermissionDenied",
    message: `the token lacks ${privilege} on ${path}, which it needs to ${reason}`,
    remedy: `Grant it with propagation, to the token and to its user: pveum acl modify ${path} …`,
  }));
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
