import { isJsonObject } from "../../kernel/json.ts";
import type { Draft, Failure } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";

/**
 * Rights without which making the machine would stop half way. What was read with the system is
 * believed where it says yes; where it says no, the server is asked anew, since a person may have
 * granted it in between.
 */
export async function checkRights(
  { api, permissions }: DriverContext,
  draft: Draft,
): Promise<Failure[]> {
  const known = permissions();
  if (known === undefined || lackedFor(draft, known).length === 0) return [];
  const result = await api.get("/access/permissions");
  const lacked = lackedFor(draft, result.type === "data" ? result.data : known);
  return lacked.map(({ privilege, tree }) => ({
    category: "PermissionDenied",
    message: `the token has ${privilege} nowhere under ${tree}, which the machine needs`,
    remedy: "berth doctor prints the commands that grant it. Berth goes on by itself.",
  }));
}

interface Need {
  readonly privilege: string;
  readonly tree: "/vms" | "/storage";
}

function lackedFor(draft: Draft, permissions: unknown): Need[] {
  return needsOf(draft).filter((need) => !isGrantedSomewhere(permissions, need));
}

/** What this very machine takes. Others have more: those are the doctor's affair. */
function needsOf(draft: Draft): Need[] {
  const { shape, disks, seedStorage } = draft;
  const adding: readonly (readonly [string, unknown])[] = [
    ["VM.Config.Network", shape.networks],
    ["VM.Config.Disk", disks[0]],
  ];
  const needed = draft.isAddition === true ? adding : [...adding, ...makingOf(draft)];
  const machine = needed.filter(([, isNeeded]) => isNeeded !== undefined);
  const needs = machine.map(([privilege]): Need => ({ privilege, tree: "/vms" }));
  if (disks.length > 0) needs.push({ privilege: "Datastore.AllocateSpace", tree: "/storage" });
  if (seedStorage !== undefined) {
    needs.push({ privilege: "Datastore.AllocateTemplate", tree: "/storage" });
  }
  return needs;
}

function makingOf({ shape, clone, seedStorage }: Draft): readonly (readonly [string, unknown])[] {
  return [
    ["VM.Allocate", true],
    ["VM.Config.Options", true],
    ["VM.Config.HWType", true],
    ["VM.Config.CPU", shape.cpu],
    ["VM.Config.Memory", shape.memory],
    // The disc of the first boot lies in a drive.
    ["VM.Config.CDROM", shape.cdroms ?? seedStorage],
    ["VM.Config.Cloudinit", shape.cloudInit],
    ["VM.Clone", clone],
    ["VM.PowerMgmt", true],
  ];
}

/**
 * Rights may be given on single machines, storages or pools, and the id of a new machine is in no
 * list. So only what is given nowhere is known to be lacking.
 */
function isGrantedSomewhere(permissions: unknown, { privilege, tree }: Need): boolean {
  if (!isJsonObject(permissions)) return true;
  return Object.entries(permissions).some(([path, rights]) => {
    const isNear = path === "/" || path.startsWith(tree) || path.startsWith("/pool");
    return isNear && isJsonObject(rights) && privilege in rights;
  });
}
