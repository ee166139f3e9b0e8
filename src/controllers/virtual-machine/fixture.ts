import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import type { Declared } from "./next.ts";

// A declaration, its Claim and its machine, all in agreement: what tests of plans begin with.

export const gib = 1024 ** 3;

export const declared: Declared = {
  isDeleting: false,
  fate: "Destroy",
  isProtected: false,
  shape: { name: "web", memory: { sizeBytes: gib } },
  disks: [{ name: "root", storage: "store", sizeBytes: 10 * gib, fill: { from: "blank" } }],
  onDelete: { root: "Delete" },
  node: "n1",
  power: "Running",
  shutdown: { graceSeconds: 60, force: true },
  updatePolicy: "Live",
  driftPolicy: "Correct",
  onMissing: "Stall",
  wantsRestart: false,
  isEdited: false,
};

export const volume = { id: "store:root", role: "Disk", disk: "root", storage: "store" } as const;

const known = { ...volume, proof: "Config" } as const;

export const claim: ClaimSpec = {
  target: "VM",
  hypervisor: { name: "hv", systemId: "s" },
  externalId: "100",
  idChosenBy: "Berth",
  state: "Bound",
  role: "VM",
  origin: "Created",
  everExisted: true,
  identity: "i",
  installation: "in",
  owner: { namespace: "default", name: "web", uid: "u" },
  node: "n1",
  volumes: [{ ...known, state: "Attached", onDelete: "Delete", size: String(10 * gib) }],
};

export const reserved: ClaimSpec = { ...claim, state: "Reserved", everExisted: false, volumes: [] };

export const machine: Machine = {
  externalId: "100",
  node: "n1",
  version: "1",
  power: "Running",
  isTemplate: false,
  mark: {
    state: "Owned",
    installation: "in",
    owner: { namespace: "default", name: "web" },
    identity: "i",
    externalId: "100",
    disks: { root: "d0" },
    networks: {},
  },
  shape: { name: "web", memory: { sizeBytes: gib } },
  disks: [
    {
      name: "root",
      slot: "d0",
      volume: "store:root",
      storage: "store",
      sizeBytes: 10 * gib,
      bus: "scsi",
    },
  ],
  networks: [],
  pending: [],
  volumes: [{ ...volume, state: "Attached", sizeBytes: 10 * gib, isOwn: true }],
  hasSnapshots: false,
};
