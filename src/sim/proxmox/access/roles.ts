import type { Release } from "../release.ts";

const vmUse = "VM.Audit VM.Backup VM.Config.CDROM VM.Config.Cloudinit VM.Console VM.PowerMgmt";
const vmConfig =
  "VM.Allocate VM.Clone VM.Config.CPU VM.Config.Disk VM.Config.HWType VM.Config.Memory " +
  "VM.Config.Network VM.Config.Options VM.Migrate VM.Snapshot VM.Snapshot.Rollback";
const datastoreUse = "Datastore.AllocateSpace Datastore.Audit";
const datastoreAll = `${datastoreUse} Datastore.Allocate Datastore.AllocateTemplate`;
const sysAll =
  "Sys.Audit Sys.Console Sys.Modify Sys.PowerMgmt Sys.Syslog Sys.Incoming Permissions.Modify";
const userAll = "Group.Allocate Realm.AllocateUser Realm.Allocate User.Modify";
const agentAll =
  "VM.GuestAgent.Audit VM.GuestAgent.FileRead VM.GuestAgent.FileWrite " +
  "VM.GuestAgent.FileSystemMgmt VM.GuestAgent.Unrestricted VM.Replicate";

/** What guests' monitors and agents are guarded by changed with release 9. */
function agentOf(release: Release): { all: string; audit: string } {
  return release === "9.2"
    ? { all: agentAll, audit: "VM.GuestAgent.Audit" }
    : { all: "VM.Monitor", audit: "" };
}

function newerOf(release: Release): { all: string; audit: string; user: string } {
  if (release === "7.4") {
    return { all: "SDN.Allocate SDN.Audit SDN.Use", audit: "SDN.Audit", user: "" };
  }
  return {
    all: "SDN.Allocate SDN.Audit SDN.Use Mapping.Audit Mapping.Modify Mapping.Use Sys.AccessNetwork",
    audit: "SDN.Audit Mapping.Audit",
    user: "SDN.Use",
  };
}

const built = new Map<Release, Readonly<Record<string, readonly string[]>>>();

/** The roles that come with a release. */
export function builtInRoles(release: Release): Readonly<Record<string, readonly string[]>> {
  const known = built.get(release);
  if (known !== undefined) return known;
  const agent = agentOf(release);
  const newer = newerOf(release);
  const pool = "Pool.Allocate Pool.Audit";
  const vmAdmin = `${vmUse} ${vmConfig} ${agent.all}`;
  const auditor = `Datastore.Audit VM.Audit ${agent.audit} Sys.Audit Pool.Audit ${newer.audit}`;
  const all = `${vmAdmin} ${datastoreAll} ${sysAll} ${userAll} ${pool} ${newer.all}`;
  const roles = Object.fromEntries(
    Object.entries({
      Administrator: all,
      NoAccess: "",
      PVEAdmin: all.replace("Permissions.Modify", "").replace("Realm.Allocate ", ""),
      PVEAuditor: auditor,
      PVEDatastoreAdmin: datastoreAll,
      PVEDatastoreUser: datastoreUse,
      PVEPoolAdmin: pool,
      PVEPoolUser: "Pool.Audit",
      PVESDNUser: `SDN.Audit ${newer.user}`,
      PVESysAdmin: "Sys.Audit Sys.Console Sys.Syslog",
      PVETemplateUser: "VM.Audit VM.Clone",
      PVEUserAdmin: "Group.Allocate Realm.AllocateUser User.Modify",
      PVEVMAdmin: vmAdmin,
      PVEVMUser: vmUse,
    }).map(([role, text]) => [role, text.split(/\s+/).filter((each) => each !== "")]),
  );
  built.set(release, roles);
  return roles;
}
