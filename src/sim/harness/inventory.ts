import type { ClusterState } from "../proxmox/index.ts";

/**
 * What is on a cluster beside the machines and their own volumes, which have laws of their own:
 * files that no machine owns, pools and their members, HA, rights, storages. Sorted lines.
 */
export function inventoryOf(state: ClusterState): string[] {
  const files = Object.entries(state.volumes).flatMap(([backing, volumes]) => {
    return volumes.filter(({ vmid }) => vmid === undefined).map(({ name }) => `${backing}/${name}`);
  });
  // A machine that was let go of stays under high availability, where people put it.
  const ha = Object.keys(state.ha).filter((sid) => !(sid.replace("vm:", "") in state.guests));
  const { pools: all, haGroups = {}, haRules = {}, mappings = {}, acl, roles, storages } = state;
  const pools = all.filter((pool) => !newestEpochs(all).includes(pool));
  const rest = { pools, ha, haGroups, haRules, mappings, acl, roles, storages };
  const lines = Object.entries(rest).map(([name, part]) => `${name} ${JSON.stringify(part)}`);
  return [...files, ...lines].toSorted();
}

/** What is there now and was not, and what was there and is not. */
export function differences(before: readonly string[], after: readonly string[]): string[] {
  const come = after.filter((line) => !before.includes(line)).map((line) => `+ ${line}`);
  const gone = before.filter((line) => !after.includes(line)).map((line) => `- ${line}`);
  return [...come, ...gone];
}

/** The epoch stays while Berth runs, with the one before it where its removal was lost. */
function newestEpochs(pools: ClusterState["pools"]): ClusterState["pools"] {
  const epochs = pools.filter(({ poolid }) => poolid.startsWith("berth-epoch-"));
  const numberOf = (poolid: string): number => Number(poolid.slice(poolid.lastIndexOf("-") + 1));
  return epochs.toSorted((a, b) => numberOf(b.poolid) - numberOf(a.poolid)).slice(0, 2);
}
