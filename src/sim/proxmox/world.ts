import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import type { Release } from "./release.ts";
import type { ClusterState, NodeState, StorageConfig, Volume } from "./state.ts";

const gib = 1024 ** 3;
const dayMs = 24 * 60 * 60 * 1000;

/** All rights there are: what a token can do with less is the concern of other worlds. */
const berthRole = "Administrator";

export interface WorldOptions {
  readonly release: Release;
  readonly nodes: readonly string[];
  readonly clock: Clock;
  readonly random: Random;
  /** The administrator's password. */
  readonly password: string;
  readonly tokenSecret: string;
  /** Of the cluster's root certificate, where there is a real one. */
  readonly rootFingerprint?: string;
}

export const tokenUser = "berth@pve";
export const tokenName = "berth";

/** A small cluster as a person would set it up: three storages, one image, one token for Berth. */
export function smallCluster(options: WorldOptions): ClusterState {
  const { release, nodes, clock, password, tokenSecret } = options;
  const token = { tokenid: tokenName, secret: tokenSecret, privsep: 0, expire: 0 };
  return {
    version: 1,
    release,
    clusterName: "sim",
    rootFingerprint: options.rootFingerprint ?? madeUpFingerprint(options.random),
    nextPid: 1e3,
    nodes: nodes.map((name, index) => newNode(name, index, clock.nowMs())),
    guests: {},
    capacities: capacitiesOf(nodes),
    pools: [],
    roles: {},
    ha: {},
    tickets: [],
    storages: storagesOf(release),
    volumes: Object.fromEntries(
      nodes.map((name) => [`${name}:/var/lib/vz`, imagesOf(release, clock.nowMs())]),
    ),
    users: [
      {
        userid: "root@pam",
        isEnabled: true,
        password,
        tokens: [],
      },
      {
        userid: tokenUser,
        isEnabled: true,
        tokens: [token],
      },
    ],
    acl: [
      {
        path: "/",
        type: "user",
        ugid: tokenUser,
        roleid: berthRole,
        propagate: 1,
      },
    ],
  };
}

function newNode(name: string, index: number, nowMs: number): NodeState {
  return {
    name,
    address: `192.0.2.${10 + index}`,
    isOnline: true,
    bootedMs: nowMs - 3 * dayMs,
    cpus: 16,
    memoryBytes: 64 * gib,
    bridges: ["vmbr0"],
    machines: {},
    tasks: [],
  };
}

function storagesOf(release: Release): StorageConfig[] {
  const imports = release === "7.4" ? "" : "import,";
  const nfs = { server: "192.0.2.2", export: "/export/shared" };
  return [
    {
      storage: "local",
      type: "dir",
      path: "/var/lib/vz",
      content: `backup,images,${imports}iso,rootdir,snippets,vztmpl`,
    },
    { storage: "local-zfs", type: "zfspool", pool: "rpool/data", content: "images,rootdir" },
    { storage: "shared", type: "nfs", ...nfs, content: "images,iso", shared: 1 },
  ];
}

function capacitiesOf(nodes: readonly string[]): Record<string, number> {
  const local = nodes.flatMap((name): [string, number][] => [
    [`${name}:/var/lib/vz`, 200 * gib],
    [`${name}:rpool/data`, 800 * gib],
  ]);
  const shared: [string, number] = ["shared:192.0.2.2:/export/shared", 4_096 * gib];
  return Object.fromEntries([...local, shared]);
}

function imagesOf(release: Release, nowMs: number): Volume[] {
  if (release === "7.4") return [];
  return [
    {
      name: "import/debian-12-generic-amd64.qcow2",
      content: "import",
      format: "qcow2",
      sizeBytes: 440 * 1024 ** 2,
      usedBytes: 440 * 1024 ** 2,
      virtualBytes: 3 * gib,
      createdMs: nowMs,
      data: "debian-12",
    },
  ];
}

function madeUpFingerprint(random: Random): string {
  const hex = Buffer.from(random.bytes(32)).toString("hex").toUpperCase();
  return hex.replaceAll(/(..)(?!$)/g, "$1:");
}
