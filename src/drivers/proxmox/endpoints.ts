import type { PveRequest } from "./wire/wire.ts";

/** One call of the API that Berth makes. */
export interface EndpointLine {
  readonly method: PveRequest["method"];
  /** Below /api2/json, with names in braces. */
  readonly path: string;
  /** What the token needs for it; absent: nothing beyond being let in. */
  readonly rights?: string;
  readonly why: string;
}

const machine = "/nodes/{node}/qemu/{vmid}";
const storage = "/nodes/{node}/storage/{storage}";

const reads: readonly Omit<EndpointLine, "method">[] = [
  { path: "/version", why: "what this server can do" },
  { path: "/access/permissions", why: "whether the token has its rights" },
  { path: "/access/roles", why: "`berth doctor` only: whether the role is there already" },
  { path: "/nodes", why: "a node to ask for the cluster's identity" },
  { path: "/nodes/{node}/certificates/info", why: "the cluster's identity" },
  {
    path: "/cluster/resources",
    rights: "VM.Audit, Datastore.Audit, Sys.Audit, Pool.Audit",
    why: "the one glance of each tick: machines, storages, nodes, the epoch",
  },
  { path: "/cluster/status", rights: "Sys.Audit", why: "whether the cluster has its majority" },
  { path: "/cluster/nextid", why: "whether one id is free, in the whole cluster" },
  { path: "/cluster/tasks", rights: "Sys.Audit", why: "who reads an image, or uploads it" },
  { path: "/nodes/{node}/status", rights: "Sys.Audit", why: "whether a node is well" },
  {
    path: "/nodes/{node}/network",
    rights: "Sys.Audit or SDN.Use",
    why: "whether a bridge is there",
  },
  { path: "/nodes/{node}/storage", rights: "Datastore.Audit", why: "storages and their space" },
  { path: `${storage}/content`, rights: "Datastore.Allocate", why: "volumes, images and discs" },
  {
    path: `${storage}/content/{volume}`,
    rights: "Datastore.Allocate",
    why: "how large the volume is that a disk is copied from",
  },
  { path: "/nodes/{node}/time", rights: "Sys.Audit", why: "on which clock the times of tasks are" },
  { path: "/nodes/{node}/tasks", rights: "Sys.Audit", why: "our own tasks about a machine" },
  { path: "/nodes/{node}/tasks/{upid}/status", why: "how far a task of ours is" },
  { path: "/nodes/{node}/tasks/{upid}/log", why: "which VM a clone is, and which file an upload" },
  {
    path: `${machine}/pending`,
    rights: "VM.Audit",
    why: "the machine, and what waits for a start",
  },
  { path: `${machine}/status/current`, rights: "VM.Audit", why: "whether it runs" },
  { path: `${machine}/snapshot`, rights: "VM.Audit", why: "volumes that snapshots hold" },
  { path: `${machine}/snapshot/{name}/config`, rights: "VM.Audit", why: "volumes of one snapshot" },
  {
    path: `${machine}/agent/network-get-interfaces`,
    rights: "VM.GuestAgent.Audit (VM.Monitor before 9)",
    why: "the guest's addresses",
  },
  {
    path: "/cluster/ha/resources/{sid}",
    rights: "Sys.Audit",
    why: "how a machine is watched over",
  },
  {
    path: "/storage",
    rights: "Datastore.Audit",
    why: "the format of new disks on files and LVM; `berth doctor --snapshot`",
  },
  {
    path: "/pools",
    rights: "Pool.Audit",
    why: "which run of this installation wrote the epoch; `berth doctor --snapshot`",
  },
  {
    path: "/pools/{pool}",
    rights: "Pool.Audit",
    why: "whether the pool of `placement.pool` is there; `berth doctor --snapshot`",
  },
];

const configRights = "VM.Config.* of what changes, SDN.Use of bridges, Datastore.AllocateSpace";
const power = "VM.PowerMgmt";
const ha = "Sys.Console on /";

const writes: readonly EndpointLine[] = [
  {
    method: "POST",
    path: "/nodes/{node}/qemu",
    rights: "VM.Allocate, VM.Config.*",
    why: "make a machine without disks",
  },
  {
    method: "POST",
    path: `${machine}/config`,
    rights: configRights,
    why: "what makes or frees a volume: disks, firmware, import",
  },
  { method: "PUT", path: `${machine}/config`, rights: configRights, why: "everything else" },
  { method: "PUT", path: `${machine}/resize`, rights: "VM.Config.Disk", why: "grow a disk" },
  {
    method: "POST",
    path: `${machine}/move_disk`,
    rights: "VM.Config.Disk, Datastore.AllocateSpace",
    why: "another storage, or hand a volume over",
  },
  { method: "POST", path: `${machine}/clone`, rights: "VM.Clone", why: "linked and of snapshots" },
  { method: "POST", path: `${machine}/migrate`, rights: "VM.Migrate", why: "another node" },
  { method: "POST", path: `${machine}/status/start`, rights: power, why: "start, go on" },
  { method: "POST", path: `${machine}/status/shutdown`, rights: power, why: "ask the guest" },
  { method: "POST", path: `${machine}/status/stop`, rights: power, why: "by force" },
  { method: "POST", path: `${machine}/status/reboot`, rights: power, why: "restart by the guest" },
  { method: "POST", path: `${machine}/status/suspend`, rights: power, why: "save its memory" },
  {
    method: "POST",
    path: `${machine}/status/resume`,
    rights: power,
    why: "let a paused one go on",
  },
  { method: "DELETE", path: machine, rights: "VM.Allocate", why: "destroy" },
  {
    method: "POST",
    path: `${storage}/download-url`,
    rights: "Datastore.AllocateTemplate, Sys.AccessNetwork on the node (7: Sys.Audit, Sys.Modify)",
    why: "let the node fetch an image or a disc",
  },
  {
    method: "POST",
    path: `${storage}/upload`,
    rights: "Datastore.AllocateTemplate",
    why: "bring an image, a disc or the data of the first boot",
  },
  {
    method: "POST",
    path: `${storage}/content`,
    rights: "Datastore.AllocateSpace",
    why: "the volume of a blank disk, under a name that is recorded before",
  },
  {
    method: "DELETE",
    path: `${storage}/content/{volume}`,
    rights: "Datastore.Allocate",
    why: "free one volume or file of ours",
  },
  {
    method: "DELETE",
    path: "/nodes/{node}/tasks/{upid}",
    why: "`berth cancel`: end a task of our own",
  },
  {
    method: "POST",
    path: "/access/ticket",
    why: "only where `spec.unlockCredentials` is given: to clear a dead lock of our own",
  },
  { method: "POST", path: "/cluster/ha/resources", rights: ha, why: "watch over a machine" },
  { method: "PUT", path: "/cluster/ha/resources/{sid}", rights: ha, why: "change that" },
  { method: "DELETE", path: "/cluster/ha/resources/{sid}", rights: ha, why: "end that" },
  { method: "PUT", path: "/pools/{pool}", rights: "Pool.Allocate", why: "into a pool, out of one" },
  {
    method: "POST",
    path: "/pools",
    rights: "Pool.Allocate",
    why: "at start and takeover: the epoch of this run, as an empty pool",
  },
  {
    method: "DELETE",
    path: "/pools/{pool}",
    rights: "Pool.Allocate",
    why: "the pools of earlier epochs of this installation",
  },
];

/** Every call that Berth makes. `docs/drivers/proxmox.md` shows it. */
export const endpointTable: readonly EndpointLine[] = [
  ...reads.map((line) => ({ method: "GET" as const, ...line })),
  ...writes,
];

const forms = endpointTable.map((line) => ({ line, form: formOf(line.path) }));

/** The line of a request; undefined for one that the page does not promise. */
export function endpointOf({
  method,
  path,
}: Pick<PveRequest, "method" | "path">): EndpointLine | undefined {
  return forms.find(({ line, form }) => line.method === method && form.test(path))?.line;
}

function formOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
}
