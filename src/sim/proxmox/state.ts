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
  /** Groups of users; none in what was kept by an earlier build. */
  groups?: GroupState[];
  acl: AclEntry[];
  pools: PoolState[];
  /** Roles that people made; the built-in ones belong to the release. */
  roles: Record<string, string[]>;
  /** HA resources, by "vm:101". */
  ha: Record<string, HaResource>;
  /** Groups of nodes for HA resources; release 9 has rules instead. */
  haGroups?: Record<string, Record<string, string>>;
  haRules?: Record<string, Record<string, string>>;
  /** Devices of the hosts under names that the whole cluster knows, by "pci/gpu" or "usb/key". */
  mappings?: Record<string, MappingState>;
  tickets: TicketState[];
  nextPid: number;
}

export interface HaResource {
  /** What is asked for: "started", "stopped", "disabled", "ignored". */
  state: string;
  group?: string;
  comment?: string;
  max_restart?: number;
  max_relocate?: number;
  failback?: number;
  /** A move that is asked for and not done yet. */
  target?: string;
  /** When the manager last found its node gone; it waits a while before it believes it. */
  lostMs?: number;
  /** A graceful stop may take so long; none means that QEMU is ended at once. */
  stopTimeoutMs?: number;
  /** How often a start has failed since the last one that did not. */
  failures?: number;
}

export interface MappingState {
  /** "node=pve1,path=0000:01:00.0,id=10de:1db6" as they were given. */
  map: string[];
  description?: string;
  mdev?: number;
}

export interface NodeState {
  name: string;
  address: string;
  isOnline: boolean;
  bootedMs: number;
  /**
   * How far its clock is ahead of the real time; below 0, behind. Times in this state are real
   * ones: only what the node tells is on its own clock.
   */
  clockAheadMs?: number;
  cpus: number;
  memoryBytes: number;
  bridges: string[];
  /** What can be passed through to guests, by path: "0000:01:00.0", "1-2". */
  devices?: Record<string, HostDevice>;
  /** QEMU processes, by VMID. They end with the node. */
  machines: Record<string, MachineState>;
  /** Finished and running tasks, oldest first. */
  tasks: TaskState[];
  /** How long the index of finished tasks is; a full one is set aside. */
  indexBytes?: number;
  /** Since when tasks are entered into it; those before are in the one that was set aside. */
  indexFromMs?: number;
  /** Tasks that ended before are in no index any more; only their logs are left. */
  listedFromMs?: number;
  /** The day on which logs that no index names were last removed. */
  cleanedDay?: number;
}

/** Replaced as a whole when it is written. */
export interface GuestFile {
  readonly node: string;
  readonly text: string;
}

export interface HostDevice {
  kind: "pci" | "usb";
  /** "10de:1db6": vendor and device. */
  id: string;
  name: string;
}

export interface MachineState {
  pid: number;
  startedMs: number;
  isPaused: boolean;
  /** It is started anew as soon as it ends. */
  willReboot?: boolean;
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
  /** How long it takes to; half a second if nothing is said. */
  shutdownMs?: number;
  /** Its file systems are frozen. */
  isFrozen?: boolean;
  /** Programs that were run by way of the agent, by their pids. */
  programs?: Record<string, { outData: string; exitcode: number }>;
  /** Files that were written by way of the agent. */
  files?: Record<string, string>;
}

export interface TaskState {
  upid: string;
  node: string;
  pid: number;
  pstart: number;
  startMs: number;
  /** How far the node's clock was ahead when it began, which is in its name. */
  clockAheadMs?: number;
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
  /** The format of new volumes, for files; raw where it is absent. */
  format?: string;
  preallocation?: string;
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
  /** Seconds since 1970; 0 and nothing mean never. */
  expire?: number;
  firstname?: string;
  lastname?: string;
  email?: string;
  comment?: string;
  keys?: string;
  password?: string;
  tokens: TokenState[];
}

export interface GroupState {
  groupid: string;
  comment?: string;
  /** The members' user ids. */
  users: string[];
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
