import type { FailureCategory } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import type { PveError, PveResult } from "./wire/api.ts";

/**
 * What an error means to the driver, beside its category.
 *
 * - `taken`: the id belongs to something already.
 * - `notHere`: no machine of this id on this node. It may be on another.
 * - `changed`: the machine is not as it was seen.
 * - `blocked`: somebody holds a lock, or a limit is reached. It passes.
 * - `noWorker`: the work was never begun, but a reservation may stand.
 * - `alreadySo`: it is as it should be already.
 * - `noTask`: nobody remembers the task.
 */
export type Meaning =
  | "taken"
  | "notHere"
  | "changed"
  | "blocked"
  | "noWorker"
  | "alreadySo"
  | "noTask";

export interface Classified {
  readonly category: FailureCategory;
  readonly meaning?: Meaning;
  readonly remedy?: string;
}

interface ErrorRule extends Classified {
  readonly text: RegExp;
}

/** A volume whose name the hypervisor chose, or Berth for one attempt. */
const ownName = String.raw`vm-\d+-(?:disk-\d+|state-suspend-[\d-]+|berth-[0-9a-f]+)`;

/**
 * The exact texts, found in the sources of qemu-server, pve-storage, pve-common and pve-cluster and
 * in recordings of 7.4-20, 8.4.21 and 9.2.11. The same text is the reason phrase of a call that was
 * refused and the exit status of a worker that failed. Where releases differ, a comment says how.
 * Whatever is not here is CreationFailed: work that was accepted and failed. Of a read it is not.
 */
const rules: readonly ErrorRule[] = [
  // The id. 9.2 answers the first while a create of the same id holds the file lock.
  rule(/^unable to create VM \d+ - (?:VM|CT) \d+ already exists on node '[^']+'$/, "taken"),
  rule(/^unable to create VM \d+: config file already exists$/, "taken"),
  rule(/^(?:VM|CT) \d+ already exists$/, "taken"),
  // Not "Missing": that a VM is gone is concluded by observing every node, and by nothing else.
  {
    text: /^Configuration file 'nodes\/[^']+' does not exist$/,
    category: "UnknownOutcome",
    meaning: "notHere",
  },

  // The version that a change rests on. 7.4 spells it "missmatch"; move_disk has words of its own.
  changed(/^checksum miss?match \(file change by other user\?\)$/),
  changed(
    /^(?:VM \d+: )?detected modified configuration - file changed by other user\? Try again\.$/,
  ),
  changed(/^VM \d+ is running - destroy failed$/),
  changed(/^VM \d+ (?:is )?not running$/),
  { text: /^VM \d+ already running$/, category: "CreationFailed", meaning: "alreadySo" },
  // A guest that does not let go of a device, or does not take one: the change is written all the
  // same, and waits for the next start as pending (qemu-server, vmconfig_hotplug_pending).
  { text: /(?:^|: )hotplug problem - /, category: "ConfigurationError", meaning: "alreadySo" },

  // Locks and limits. A config lock that outlived its task is found by looking at the task.
  blocked(/^(?:unable to create VM \d+ - )?VM is locked \([a-z-]+\)$/),
  blocked(/can't lock file '[^']+' - got timeout$/),
  blocked(/cfs-lock '[^']+' error: got lock request timeout$/),
  blocked(/^'storage-[^']+'-locked command timed out - aborting$/),

  // Nodes.
  node(/^cluster not ready - no quorum\?$/),
  node(/cfs-lock '[^']+' error: no quorum!$/),
  node(/^storage '[^']+' is not online$/),
  {
    text: /^got no worker upid - start worker failed$/,
    category: "NodeUnhealthy",
    meaning: "noWorker",
  },

  // What the declaration names and the cluster does not have.
  wrong(/storage '[^']+' does not exist$/),
  wrong(/storage '[^']+' is not available on node '[^']+'$/),
  wrong(/storage '[^']+' does not support (?:vm images|content-type '[^']+'|'[^']+' content)$/),
  wrong(/^hostname lookup '[^']+' failed - /),
  wrong(/bridge '[^']+' does not exist$/),
  wrong(/^can't migrate (?:VM|local|running|live)/),
  wrong(/^can't migrate '[^']+' - /),
  wrong(/^Cannot suspend HA managed VM to disk$/),
  wrong(/^cannot suspend VM to disk due to passed-through PCI device\(s\), /),
  wrong(/^you can't move a disk with snapshots and delete the source$/),
  wrong(/^cannot move disk '[^']+' of a running VM to another one$/),
  wrong(/^Can't move disk used by a snapshot to another VM$/),
  wrong(/^Can't move disks from or to template VMs$/),
  wrong(/^Storage does not support moving of this disk to another VM$/),
  wrong(/^Volume '[^']+' not managed by PVE$/),
  wrong(/^balloon value too large \(must be smaller than assigned memory\)$/),
  wrong(/^can't remove VM \d+ - protection mode enabled$/),
  {
    text: /^can't remove vmstate '[^']+' - protection mode enabled$/,
    category: "ConfigurationError",
    remedy:
      "Switch the machine's protection off on the hypervisor until its saved memory is gone; " +
      "where it is locked (suspended), clear that first, on its node, as root: qm unlock.",
  },
  wrong(/^unable to remove VM \d+ - used in HA resources and purge parameter not set\.$/),
  wrong(/^There is a replication job '[^']+' for guest '\d+' - Please remove that first\.$/),
  { text: /storage '[^']+' is disabled$/, category: "DependencyNotReady" },
  {
    text: /^base volume '[^']+' is still in use by linked cloned$/,
    category: "DependencyNotReady",
  },
  {
    text: /^can't resize volume: \w+ if snapshot exists$/,
    category: "DependencyNotReady",
    remedy: "Remove the snapshots of the machine. The disk grows then by itself.",
  },
  { text: /^shrinking disks is not supported$/, category: "ReplacementRequired" },

  // Images. Up to 8.2 a wrong kind of volume is "not an image".
  image(/cannot import from '[^']+' - /),
  image(/volume '[^']+' does not exist$/),
  image(/^owner VM \d+ not on local node$/),
  wrong(/ has wrong type '[^']+' - needs to be 'images' or 'import'$/),

  // The hypervisor chose this name itself. As one that is not listed: then the program of a worker
  // that was killed has made the volume in between, and the next try gets the next name. Or by the
  // day: then it is memory that a suspend saved and that is removed before the next one.
  outrun(/zfs error: cannot create '[^']+\/OWN': dataset already exists$/),
  outrun(/disk image '[^']+\/OWN\.\w+' already exists$/),
  outrun(/ {3}Logical Volume "OWN" already exists in volume group/),
  outrun(/rbd create '[^']*OWN' error: .*File exists/),

  // Left over from a machine that had the id before: the name of a volume is taken.
  orphaned(/zfs error: cannot create '[^']+': dataset already exists$/),
  orphaned(/disk image '[^']+' already exists$/),
  orphaned(/ {3}Logical Volume "[^"]+" already exists in volume group/),
  orphaned(/rbd create .*File exists/),

  // Space.
  full(/not enough free space \(.*\)/),
  full(/zfs error: cannot create '[^']+': out of space$/),
  full(/No space left on device/),

  wrong(/^(?:403 )?Permission check failed \(pool '[^']+' does not exist\)$/),

  // Rights. In a worker the status code stands before the text.
  { text: /^(?:403 )?Permission check failed/, category: "PermissionDenied" },
  // A token is never root@pam, whatever its rights: no grant can help.
  token(/^only root can set '[^']+' config$/),
  token(/^Only root may use this option\.$/),
  token(/^Only root can pass arbitrary filesystem paths\.$/),
  token(/not available with API token, need proper ticket\.$/),

  { text: /^no such task$/, category: "UnknownOutcome", meaning: "noTask" },
];

/** Classifies a text: of a reply, of one of its fields, or of a worker's end. */
export function classifyText(text: string): Classified {
  const found = rules.find((candidate) => candidate.text.test(text));
  if (found !== undefined) return found;
  // In a worker: "400 Parameter verification failed. scsi1: hotplug problem - ..." on one line.
  if (text.startsWith("400 Parameter verification failed.")) {
    return { category: "ConfigurationError" };
  }
  return { category: "CreationFailed" };
}

/** Classifies a refusal by the fields it names, then by its text, then by its status. */
export function classifyError({ status, text, fields }: PveError): Classified {
  for (const message of Object.values(fields)) {
    const byField = rules.find((candidate) => candidate.text.test(message));
    if (byField !== undefined) return byField;
  }
  const byText = rules.find((candidate) => candidate.text.test(text));
  if (byText !== undefined) return byText;
  const byStatus = statuses[status];
  if (byStatus !== undefined) return { category: byStatus };
  return { category: status >= 502 && status < 505 ? "NetworkError" : "CreationFailed" };
}

const statuses: Readonly<Record<number, FailureCategory>> = {
  400: "ConfigurationError",
  401: "PermissionDenied",
  403: "PermissionDenied",
  404: "APINotSupported",
  // The method does not exist in this version (HTTPServer.pm, rest_handler).
  501: "APINotSupported",
  // pveproxy could not connect to the owner node: surely nothing was done.
  595: "NodeUnhealthy",
};

const tokenRemedy =
  "Check tokenId (user@realm!name) and tokenSecret in the Secret, and on a node that the token " +
  "is there and has not expired: pveum user token list USER. Then write the Secret anew.";

const certificateRemedy =
  "If the certificate was renewed, compare its fingerprint with what a node shows (pvenode cert " +
  "info) and put it into spec.tls.fingerprints of the Hypervisor. If not, somebody else answers " +
  "there: nothing was sent to it.";

/** Anything but data, as a failure of what was attempted. */
export function failureOf(
  result: Exclude<PveResult, { type: "data" }>,
  attempted: string,
): Failure {
  if (result.type === "error") {
    const isRefused = result.status === 401;
    const { category, remedy = isRefused ? tokenRemedy : undefined } = classifyError(result);
    const cause = causeOf(result);
    return {
      category,
      message: `could not ${attempted}: ${cause}`,
      cause,
      ...(remedy === undefined ? {} : { remedy }),
      ...(isRefused ? { connection: "CredentialsRefused" } : {}),
    };
  }
  const { detail } = result;
  if (result.type === "lost") {
    return {
      category: "UnknownOutcome",
      message: `could not ${attempted}: no answer`,
      cause: detail,
    };
  }
  if (result.why === "certificate") {
    return {
      category: "PermissionDenied",
      message: `could not ${attempted}: the server did not prove who it is`,
      cause: detail,
      remedy: certificateRemedy,
      connection: "CertificateMismatch",
    };
  }
  return {
    category: "NetworkError",
    message: `could not ${attempted}: not reachable`,
    cause: detail,
  };
}

/**
 * A read has no outcome to be unsure of, and is no work that could be tried too often. Where it was
 * lost, the hypervisor did not answer. Where it was answered with words that nobody knows, as
 * `500 ipcc_send_rec[1] failed: Connection refused` while pmxcfs restarts, whoever answered is not
 * well: that passes, and says nothing about the machine.
 */
export function readFailureOf(
  result: Exclude<PveResult, { type: "data" }>,
  attempted: string,
): Failure {
  const failure = failureOf(result, attempted);
  if (result.type === "lost") return { ...failure, category: "NetworkError" };
  const isWork = failure.category === "CreationFailed";
  return isWork ? { ...failure, category: "NodeUnhealthy" } : failure;
}

/** The server's own words: status, text, and what it says of each parameter. */
export function causeOf({ status, text, fields }: PveError): string {
  const details = Object.entries(fields).map(([field, message]) => `${field}: ${message}`);
  return [`${status} ${text}`, ...details].join("; ");
}

function rule(text: RegExp, meaning: Meaning): ErrorRule {
  return { text, category: "IdentityConflict", meaning };
}

function changed(text: RegExp): ErrorRule {
  return { text, category: "UnknownOutcome", meaning: "changed" };
}

function blocked(text: RegExp): ErrorRule {
  return { text, category: "LockError", meaning: "blocked" };
}

function node(text: RegExp): ErrorRule {
  return { text, category: "NodeUnhealthy" };
}

function wrong(text: RegExp): ErrorRule {
  return { text, category: "ConfigurationError" };
}

function image(text: RegExp): ErrorRule {
  return { text, category: "ImageNotFound" };
}

/** OWN stands for a name that the hypervisor chose. */
function outrun({ source }: RegExp): ErrorRule {
  return {
    text: new RegExp(source.replace("OWN", ownName)),
    category: "CreationFailed",
    remedy:
      "Berth removes what is provably its own, and tries again. If it stays so, what has this name " +
      "is not: `berth orphans list` tells of it, and `berth orphans destroy` removes it. " +
      "If it is not there, the storage does not list it: look on its node.",
  };
}

function orphaned(text: RegExp): ErrorRule {
  return { text, category: "OrphanedVolumes" };
}

function full(text: RegExp): ErrorRule {
  return { text, category: "QuotaExceeded" };
}

function token(text: RegExp): ErrorRule {
  return {
    text,
    category: "APINotSupported",
    remedy: "Proxmox allows this to root's password login only, never to an API token.",
  };
}
