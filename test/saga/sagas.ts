import type { Saga } from "../../src/controllers/testing/saga.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const grown = { ...root, size: "12Gi" };
const data = { name: "data", size: "20Gi", storage: "local-zfs" };
const small = { ...data, size: "4Gi", storage: "local" };
const shutdown = { graceSeconds: 5, force: true };

export const fromImage: Saga = {
  name: "from an image, in a pool, with a disc for its first boot",
  spec: {
    disks: [root, data],
    placement: { pool: "prod" },
    updatePolicy: "Reboot",
    cloudInit: { userData: { inline: "#cloud-config\nruncmd: [id]\n" } },
    shutdown,
  },
  changes: [
    { cpu: { cores: 4 }, disks: [grown, data] },
    { disks: [grown, { ...data, state: "Absent", onDelete: "Delete" }] },
  ],
};

export const fromClone: Saga = {
  name: "cloned from a template, highly available, with an id that a person chose",
  spec: {
    externalId: "500",
    source: { clone: { externalId: "900", mode: "Linked" } },
    disks: [root],
    highAvailability: { enabled: true },
    shutdown,
  },
  changes: [{ highAvailability: { enabled: false } }, { powerState: "Stopped" }],
};

export const changed: Saga = {
  name: "that loses a disk and gets it back, has it moved to another storage, and sleeps",
  spec: { disks: [root, small], shutdown },
  changes: [
    { disks: [root] },
    { disks: [root, small] },
    // To where the machine has a disk already: elsewhere nobody listed what stood there before.
    { disks: [root, { ...small, storage: "local-zfs" }] },
    { powerState: "Suspended" },
    { powerState: "Running" },
  ],
};

/** With an account that may clear locks, workers that die leave nothing for a person to do. */
export const unlucky: Saga = {
  name: "whose workers die, with an account that may clear their locks",
  spec: { disks: [root], shutdown },
  changes: [{ powerState: "Suspended" }, { powerState: "Running" }],
  // Not at the fifth step of a suspend: what that leaves on ZFS is only probably ours, and a person
  // decides about it.
  dying: ["qmcreate, step 3", "qmsuspend, step 7", "qmstart, step 5"],
  mayUnlock: true,
};

export const lent: Saga = {
  name: "that is let go, taken back, and leaves a disk to the one after it",
  spec: { disks: [root], deletionPolicy: "Retain", shutdown },
  changes: [{ placement: { pool: "prod" } }, "paused"],
  again: [
    { disks: [root, { ...data, onDelete: "Retain" }], shutdown },
    { disks: [root, { ...data, onDelete: "Delete" }], shutdown },
  ],
};

const own = { source: { image: { name: "own" } }, disks: [root], shutdown };

export const fromFetched: Saga = {
  name: "from an image that the nodes fetch",
  spec: own,
  changes: [],
  image: "fetched",
};

export const fromPut: Saga = {
  name: "from an image that Berth puts there",
  spec: own,
  changes: [],
  image: "put",
};

/** Without disks: of a copy that is cut off on another node nobody can tell whose it is. */
export const travelling: Saga = {
  name: "without disks that goes from node to node, and back",
  spec: {
    source: { blank: {} },
    disks: [],
    placement: { node: "pve1", mode: "Enforce" },
    shutdown,
  },
  changes: [{ placement: { node: "pve2" } }, { placement: { node: "pve1" } }],
};
