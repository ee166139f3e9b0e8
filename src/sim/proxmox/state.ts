import type { Release } from "./release.ts";

/**
 * All that a cluster knows, as plain data: what survives a power loss, and nothing else. Running
 * processes and flocks are not in here, for they do not survive one either.
 */
export interface ClusterState {
  /** The form of this data; a later build reads it. */
  version: 1;
  release: Release;
  clusterName: string;
  /** SHA-256 of the cluster's root certificate: what a cluster is known by. */
  rootFingerprint: string;
  nodes: NodeState[];
  /** /etc/pve: guests' configuration files, by VMID. */
  guests: Record<string, GuestFile>;
  /** /etc/pve/storage.cfg, in its order. */
  storages: StorageConfig[];
  /** What lies on the disks, by backing; see storage/backing.ts. */
  volumes: Record<string, Volume[]>;
  /** Space of a backing in bytes. */
  capacities: Record<string, number>;
  users: UserState[];
  acl: AclEntry[];
  pools: PoolState[];
  /** Roles that people made; the built-in ones belong to the release. */
  roles: Record<string, string[]>;
  /** HA resources, by "vm:101". */
  ha: Record<string, { state: string }>;
  tickets: TicketState[];
  nextPid: number;
}

export interface NodeState {
  name: string;
  address: string;
  isOnline: boolean;
  bootedMs: number;
  cpus: number;
  memoryBytes: number;
  bridges: string[];
  /** QEMU processes, by VMID. They end with the node. */
  machines: Record<string, MachineState>;
  /** Finished and running tasks, oldest first. */
  tasks: TaskState[];
}

export interface GuestFile {
  node: string;
  text: string;
}

export interface MachineState {
  pid: number;
  startedMs: number;
  isPaused: boolean;
  /** A guest that answers: it has an agent, and shuts down when asked. */
  guest?: GuestBehaviour;
}

export interface GuestBehaviour {
  /** The agent answers, is silent (and blocks its caller), or is not there. */
  agent: "running" | "silent" | "absent";
  /** How long it takes until the agent is up. */
  agentAfterMs: number;
  /** Whether it ends when it is asked to shut down. */
  obeysShutdown: boolean;
}

export interface TaskState {
  upid: string;
  node: string;
  pid: number;
  pstart: number;
  startMs: number;
  type: string;
  id: string;
  /** The full user, with the token's name where it was one. */
  user: string;
  log: string[];
  warnings: number;
  endMs?: number;
  exitStatus?: string;
}

export interface StorageConfig {
  storage: string;
  type: string;
  content: string;
  path?: string;
  pool?: string;
  vgname?: string;
  thinpool?: string;
  server?: string;
  export?: string;
  nodes?: string;
  shared?: number;
  disable?: number;
}

export type Format = "raw" | "qcow2" | "vmdk" | "iso" | "tgz" | "subvol" | "ova" | "snippet";

export interface Volume {
  /** As in a volume id, behind the colon: "101/vm-101-disk-0.qcow2", "vm-101-disk-0". */
  name: string;
  content: string;
  format: Format;
  /** The size that a guest or a reader sees. */
  sizeBytes: number;
  /** What it takes on the storage. */
  usedBytes: number;
  createdMs: number;
  vmid?: number;
  /** The base volume of a linked clone, by name. */
  base?: string;
  snapshots?: string[];
  /** What it holds, as a name: two volumes with the same data carry the same. */
  data?: string;
  sha256?: string;
  /** The virtual size that the header of an uploaded image states. */
  virtualBytes?: number;
  isCorrupt?: boolean;
  /** Set while it is being written; a crash leaves it so. */
  isPartial?: boolean;
}

export interface UserState {
  userid: string;
  isEnabled: boolean;
  comment?: string;
  password?: string;
  tokens: TokenState[];
}

export interface TokenState {
  tokenid: string;
  secret: string;
  privsep: number;
  expire: number;
  comment?: string;
}

export interface AclEntry {
  path: string;
  type: "user" | "token" | "group";
  ugid: string;
  roleid: string;
  propagate: number;
}

export interface PoolState {
  poolid: string;
  comment?: string;
  vms: number[];
  storages: string[];
}

export interface TicketState {
  ticket: string;
  csrf: string;
  userid: string;
  expiresMs: number;
}
