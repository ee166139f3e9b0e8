import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Lock, Machine, Seen } from "../../hypervisor/index.ts";
import { keyOf } from "../operations/index.ts";
import { claim, declared, gib, machine, reserved, volume } from "./fixture.ts";
import type { Next, PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";

const withByHand = [
  ...machine.volumes,
  { id: "store:byHand", role: "Disk", storage: "store", state: "Detached", isOwn: true } as const,
];
const open = { step: "Create", intent: "Make the machine 100 on node n1." };
const held: Lock = { kind: "Backup", detail: "backup", state: "Held" };
const dead: Lock = { kind: "Create", detail: "create", state: "Dead", remedy: "qm unlock 100" };
const larger = declared.disks.map((disk) => ({ ...disk, sizeBytes: 12 * gib }));
const leaving = { ...declared, isDeleting: true, shape: {}, disks: [] };
const stranger: Seen = { at: "foreign", reason: "Stranger", detail: "no mark" };
const unknown: Seen = { at: "unknown", failure: { category: "NetworkError", message: "away" } };
const pooled = { ...declared, pool: "lab", isEdited: true };
const regroup = { kind: "regroup", claim, at: { node: "n1", version: "0" }, pool: "lab" } as const;
const inLab = { step: "SetPool", key: keyOf(regroup).key };
const leftover = { volume: "store:x", storage: "store", node: "n1", sizeBytes: 1 } as const;

interface Case {
  readonly reason: string;
  readonly input: Partial<PlanInput>;
  /** `do`, and what tells it from others of the same. */
  readonly next: string;
}

function ours(change: Partial<Machine> = {}): Seen {
  return { at: "ours", machine: { ...machine, ...change } };
}

function told(next: Next): string {
  switch (next.do) {
    case "step":
      return `step ${next.step.name}`;
    case "fail":
      return `fail ${next.failure.category}`;
    case "wait":
      return `wait ${next.kind}`;
    case "finish":
      return `finish ${next.how}`;
    case "moveOn":
      return `moveOn ${next.leaves}`;
    case "keep":
      return `keep ${next.from ?? "any"}`;
    case "recordKeeper":
      return `recordKeeper ${Object.keys(next.change).join(" ")}`;
    case "dropKeeper":
      return `dropKeeper ${next.how}`;
    case "record":
      return `record ${Object.keys(next.change).join(" ")}`;
    case "rest":
      return `rest ${next.drift.length} ${next.pending.length}`;
    case "reserve":
    case "sweep":
    case "look":
    case "protect":
      return next.do;
  }
}

const absent: Seen = { at: "absent" };

const cases: readonly Case[] = [
  {
    reason: "without a Claim an id is reserved first",
    input: { claim: undefined },
    next: "reserve",
  },
  {
    reason: "without a Claim there is nothing to delete",
    input: { claim: undefined, declared: leaving },
    next: "finish Nothing",
  },
  {
    reason: "what is not seen leads to nothing",
    input: { seen: unknown },
    next: "fail NetworkError",
  },
  {
    reason: "not even when it goes away",
    input: { seen: unknown, declared: leaving },
    next: "fail NetworkError",
  },
  {
    reason: "a reserved id is filled",
    input: { claim: reserved, seen: absent },
    next: "step Create",
  },
  {
    reason: "a request that may still land is waited for",
    input: { claim: reserved, seen: absent, open },
    next: "wait Task",
  },
  { reason: "the disks of what is gone are looked for", input: { seen: absent }, next: "sweep" },
  {
    reason: "what once stood is not made anew",
    input: { seen: absent, leftovers: [] },
    next: "fail Missing",
  },
  {
    reason: "what once stood is not made anew, also where its storages are not seen",
    input: { seen: absent, isUnlisted: true },
    next: "fail Missing",
  },
  {
    reason: "unless told so, and then its volumes are looked for",
    input: { seen: absent, declared: { ...declared, onMissing: "Recreate" } },
    next: "sweep",
  },
  {
    reason: "volumes that are still there are not forgotten",
    input: {
      seen: absent,
      declared: { ...declared, onMissing: "Recreate" },
      leftovers: [{ ...leftover, proof: "Claimed" }],
    },
    next: "fail OrphanedVolumes",
  },
  {
    reason: "a deleted machine is gone only when its volumes are",
    input: { seen: absent, declared: leaving },
    next: "sweep",
  },
  {
    reason: "what it left behind and is ours is removed",
    input: {
      seen: absent,
      declared: leaving,
      leftovers: [{ ...leftover, proof: "TaskLogged" }],
    },
    next: "step RemoveVolume",
  },
  {
    reason: "what was there before is a stranger's for ever",
    input: { seen: absent, declared: leaving, leftovers: [{ ...leftover, proof: "Before" }] },
    next: "finish Retire",
  },
  {
    reason: "Retain keeps the disks also where somebody took the machine away",
    input: {
      seen: absent,
      declared: { ...leaving, fate: "Retain" },
      leftovers: [{ ...leftover, proof: "Claimed" }],
    },
    next: "finish Release",
  },
  {
    reason: "Retain has nothing to keep where nothing is left",
    input: { seen: absent, declared: { ...leaving, fate: "Retain" }, leftovers: [] },
    next: "finish Retire",
  },
  {
    reason: "an absence that may not last ends no deletion",
    input: { claim: reserved, seen: absent, declared: leaving, open },
    next: "wait Task",
  },
  {
    reason: "a machine in the making is waited for",
    input: {
      claim: reserved,
      seen: { at: "opaque", node: "n1", lock: { ...held, kind: "Create" } },
    },
    next: "wait Lock",
  },
  {
    reason: "a dead husk under Berth's id is left behind",
    input: { claim: reserved, seen: { at: "opaque", node: "n1", lock: dead } },
    next: "moveOn Husk",
  },
  {
    reason: "a dead husk under the user's id is the user's to clear",
    input: {
      claim: { ...reserved, idChosenBy: "User" },
      seen: { at: "opaque", node: "n1", lock: dead },
    },
    next: "fail LockError",
  },
  {
    reason: "a stranger under Berth's id keeps it",
    input: { claim: reserved, seen: stranger },
    next: "moveOn Nothing",
  },
  {
    reason: "a stranger under the user's id is a conflict",
    input: { claim: { ...reserved, idChosenBy: "User" }, seen: stranger },
    next: "fail IdentityConflict",
  },
  {
    reason: "a stranger where our machine stood is a conflict, also when it goes away",
    input: { seen: stranger, declared: leaving },
    next: "fail IdentityConflict",
  },
  {
    reason: "a lost mark may be our machine's",
    input: { claim: reserved, seen: { at: "foreign", reason: "MarkLost", detail: "" } },
    next: "fail IdentityConflict",
  },
  {
    reason: "a machine that was let go before a crash is let go",
    input: { seen: { at: "foreign", reason: "Released", detail: "" }, declared: leaving },
    next: "finish Release",
  },
  {
    reason: "a mark that was read back binds the Claim before anything else",
    input: { claim: reserved },
    next: "record state volumes",
  },
  { reason: "all is as declared", input: {}, next: "rest 0 0" },
  {
    reason: "the ledger knows of a disk before it is made",
    input: {
      claim: { ...claim, everExisted: false, volumes: [] },
      seen: ours({ disks: [], volumes: [] }),
    },
    next: "record expectedDisks",
  },
  {
    reason: "a disk that is missing is made",
    input: {
      claim: { ...claim, everExisted: false, volumes: [], expectedDisks: ["root"] },
      seen: ours({ disks: [], volumes: [] }),
    },
    next: "step AddDisk",
  },
  {
    reason: "a disk that was there is not replaced by an empty one",
    input: { seen: ours({ disks: [], volumes: [] }) },
    next: "fail Missing",
  },
  {
    reason: "a disk that should be larger grows",
    input: {
      declared: {
        ...declared,
        disks: [{ name: "root", storage: "store", sizeBytes: 20 * gib, fill: { from: "blank" } }],
      },
    },
    next: "step Grow",
  },
  {
    reason: "a disk that should be smaller is refused",
    input: {
      declared: {
        ...declared,
        disks: [{ name: "root", storage: "store", sizeBytes: gib, fill: { from: "blank" } }],
      },
    },
    next: "fail ReplacementRequired",
  },
  {
    reason: "drift is corrected",
    input: { seen: ours({ shape: { name: "other", memory: { sizeBytes: gib } } }) },
    next: "step Configure",
  },
  {
    reason: "or reported",
    input: {
      declared: { ...declared, driftPolicy: "Warn" },
      seen: ours({ shape: { name: "other", memory: { sizeBytes: gib } } }),
    },
    next: "rest 1 0",
  },
  {
    reason: "a lock of others is waited for, never broken",
    input: { seen: ours({ shape: { name: "other" }, lock: held }) },
    next: "wait Lock",
  },
  {
    reason: "a dead lock names its remedy",
    input: { seen: ours({ shape: { name: "other" }, lock: dead }) },
    next: "fail LockError",
  },
  {
    reason: "at rest a lock does not matter",
    input: { seen: ours({ lock: held }) },
    next: "rest 0 0",
  },
  { reason: "it is started", input: { seen: ours({ power: "Stopped" }) }, next: "step Start" },
  {
    reason: "it is asked to shut down",
    input: { declared: { ...declared, power: "Stopped" } },
    next: "step Shutdown",
  },
  {
    reason: "and switched off if it does not",
    input: { declared: { ...declared, power: "Stopped" }, isShutdownIgnored: true },
    next: "step PowerOff",
  },
  {
    reason: "unless that is not allowed",
    input: {
      declared: { ...declared, power: "Stopped", shutdown: { graceSeconds: 60, force: false } },
      isShutdownIgnored: true,
    },
    next: "wait Task",
  },
  {
    reason: "a change that waits for a restart waits",
    input: { seen: ours({ pending: ["cpu"] }) },
    next: "rest 0 1",
  },
  {
    reason: "unless it may be restarted",
    input: { declared: { ...declared, updatePolicy: "Reboot" }, seen: ours({ pending: ["cpu"] }) },
    next: "step Reboot",
  },
  {
    reason: "a running machine is shut down first",
    input: { declared: leaving },
    next: "step Shutdown",
  },
  {
    reason: "an empty reservation that may be ours is left, and the Claim goes on saying where",
    input: {
      claim: reserved,
      seen: { at: "foreign", reason: "Husk", detail: "no task of ours" },
    },
    next: "moveOn Husk",
  },
  {
    reason: "also when the object goes",
    input: {
      claim: reserved,
      declared: leaving,
      seen: { at: "foreign", reason: "Husk", detail: "no task of ours" },
    },
    next: "finish Release",
  },
  {
    reason: "before a stopped one goes, what failed steps left under its id is looked for",
    input: { declared: leaving, seen: ours({ power: "Stopped" }) },
    next: "sweep",
  },
  {
    reason: "what is there is written down while the machine proves whose it is",
    input: {
      declared: leaving,
      seen: ours({ power: "Stopped" }),
      leftovers: [{ ...leftover, proof: "TaskLogged" }],
    },
    next: "record volumes",
  },
  {
    reason: "then it is destroyed, whatever else bears its id",
    input: {
      declared: leaving,
      seen: ours({ power: "Stopped" }),
      leftovers: [{ ...leftover, proof: "Before" }],
    },
    next: "step Destroy",
  },
  {
    reason: "what nobody declared goes to a keeper first",
    input: { declared: leaving, seen: ours({ power: "Stopped", volumes: withByHand }) },
    next: "keep any",
  },
  {
    reason: "and not while the machine runs",
    input: { declared: leaving, seen: ours({ volumes: withByHand }) },
    next: "step Shutdown",
  },
  {
    reason: "nor while it sleeps: its memory has data for that disk",
    input: { declared: leaving, seen: ours({ power: "Suspended", volumes: withByHand }) },
    next: "step Start",
  },
  {
    reason: "what has to stay of a machine that others destroyed is still named by its Claim",
    input: {
      declared: leaving,
      seen: absent,
      claim: { ...claim, volumes: [{ ...volume, state: "Attached", onDelete: "Retain" }] },
      leftovers: [{ ...leftover, volume: volume.id, proof: "Claimed" }],
    },
    next: "finish Release",
  },
  ...keeperCases(),
  {
    reason: "a pool that it was just put into has to be seen",
    input: { declared: pooled, lastDone: inLab, seenPool: { name: "prod", isOld: true } },
    next: "wait Task",
  },
  {
    reason: "and where a later look shows another, it is put there again",
    input: { declared: pooled, lastDone: inLab, seenPool: { name: "prod", isOld: false } },
    next: "step SetPool",
  },
  {
    reason: "protection holds",
    input: { declared: { ...leaving, isProtected: true } },
    next: "protect",
  },
  {
    reason: "Retain only lets go",
    input: { declared: { ...leaving, fate: "Retain" }, leftovers: [] },
    next: "step Release",
  },
  {
    reason: "and what sleeps is not woken for it: its Claim says so alone",
    input: {
      declared: { ...leaving, fate: "Retain" },
      seen: ours({ power: "Suspended", lock: { ...held, kind: "Suspend", detail: "suspended" } }),
      leftovers: [],
    },
    next: "finish Release",
  },
  {
    reason: "a disk that waits for a restart to be there does not grow before that",
    input: {
      declared: { ...declared, disks: larger },
      seen: ours({ pending: ["disks[root]"] }),
    },
    next: "rest 0 1",
  },
  {
    reason: "but one of a machine that is off is put there first",
    input: {
      declared: { ...declared, disks: larger },
      seen: ours({ pending: ["disks[root]"], power: "Stopped" }),
    },
    next: "step Grow",
  },
  ...memoryCases(),
];

function memoryCases(): Case[] {
  const state = { id: "store:memory", role: "State", storage: "store", state: "Attached" } as const;
  const volumes = [...machine.volumes, { ...state, isOwn: true }];
  const known = { ...claim, volumes: [...(claim.volumes ?? []), state] };
  const sleepy = { ...declared, power: "Suspended" } as const;
  const unproven = { ...leftover, proof: "Unattributed", isSavedMemory: true } as const;
  const paused = ours({ volumes, power: "Paused" });
  const left = { ...leftover, proof: "TaskLogged", isSavedMemory: true } as const;
  const others = [{ ...leftover, proof: "TaskLogged" } as const, unproven];
  const probable = { ...unproven, proof: "Probable" } as const;
  const { volume: id, storage, node } = leftover;
  const seenAt = "2026-01-02T03:04:05Z";
  const recorded = { id, storage, node, size: "1", operation: "op-1", seenAt, evidence: [] };
  return [
    {
      reason: "what runs beside saved memory has it removed before anything else",
      input: { claim: known, seen: ours({ volumes }), declared: sleepy },
      next: "step DestroyDisk",
    },
    {
      reason: "also before it is shut down to be destroyed: it may still be called suspended",
      input: { claim: known, seen: ours({ volumes }), declared: leaving },
      next: "step DestroyDisk",
    },
    {
      reason: "and before it is let go",
      input: { claim: known, seen: paused, declared: { ...leaving, fate: "Retain" } },
      next: "step DestroyDisk",
    },
    {
      reason: "but not while it is saved by somebody",
      input: { claim: known, seen: ours({ volumes, lock: held }), declared: sleepy },
      next: "wait Lock",
    },
    {
      reason: "what is off starts from its saved memory: it stays",
      input: { claim: known, seen: ours({ volumes, power: "Stopped" }), declared: sleepy },
      next: "step Start",
    },
    {
      reason: "before memory is saved, what an earlier time left is looked for",
      input: { declared: sleepy },
      next: "sweep",
    },
    {
      reason: "and removed where it is provably ours",
      input: { declared: sleepy, leftovers: [left] },
      next: "step RemoveVolume",
    },
    {
      reason: "neither a disk nor what may be another's is touched for it",
      input: { declared: sleepy, leftovers: others },
      next: "step Suspend",
    },
    {
      reason: "what has the name of today's saved memory and is probably ours is recorded",
      input: { declared: sleepy, leftovers: [{ ...probable, day: "1970-01-01" }] },
      next: "record probableVolumes",
    },
    {
      reason: "and then a person decides about it: a request could only fail",
      input: {
        declared: sleepy,
        claim: { ...claim, probableVolumes: [recorded] },
        leftovers: [{ ...probable, day: "1970-01-01" }],
      },
      next: "fail OrphanedVolumes",
    },
    {
      reason: "so it is with a stranger's",
      input: { declared: sleepy, leftovers: [{ ...unproven, day: "1970-01-01" }] },
      next: "fail OrphanedVolumes",
    },
    {
      reason: "but that of another day is not in the way",
      input: { declared: sleepy, leftovers: [{ ...unproven, day: "1969-12-30" }] },
      next: "step Suspend",
    },
  ];
}

function keeperCases(): Case[] {
  const keeperClaim: ClaimSpec = {
    ...reserved,
    role: "DiskHolder",
    externalId: "101",
    identity: "k",
    node: "n1",
  };
  const named = { ...claim, diskHolder: { externalId: "101", identity: "k" } };
  const stopped = { declared: leaving, seen: ours({ power: "Stopped", volumes: withByHand }) };
  const since = "2026-01-02T03:04:05Z";
  // As after an old backup: it has a name, and nothing says what becomes of it.
  const byHand = { ...volume, id: "store:byHand", disk: "old", state: "Detached", since } as const;
  const unsaid = { ...named, volumes: [...(claim.volumes ?? []), byHand] };
  const bound: ClaimSpec = { ...keeperClaim, state: "Bound", everExisted: true };
  const entry = {
    id: "store:byHand",
    role: "Disk",
    disk: "kept-1",
    state: "Detached",
    onDelete: "Retain",
  } as const;
  const shell: Machine = { ...machine, externalId: "101", disks: [], volumes: [] };
  const coming = { ...bound, volumes: [entry] };
  const slot: Machine = { ...shell, mark: { ...markOf(shell), disks: { "kept-1": "d1" } } };
  const full: Machine = {
    ...slot,
    disks: machine.disks.map((disk) => {
      return { ...disk, name: "kept-1", slot: "d1", volume: "store:101-0" };
    }),
    volumes: [{ ...volume, id: "store:101-0", disk: "kept-1", state: "Attached", isOwn: true }],
  };
  const settled = { ...bound, volumes: [{ ...entry, id: "store:101-0" }] };
  const view = (of: ClaimSpec, seen: Seen): Pick<PlanInput, "keeper"> => ({
    keeper: { claim: of, seen },
  });
  const at = (of: Machine): Seen => ({ at: "ours", machine: of });
  const gone = { declared: leaving, seen: absent, leftovers: [] };
  const awaiting = {
    id: "store:byHand",
    role: "Disk",
    state: "Detached",
    onDelete: "Retain",
  } as const;
  const came: Seen = ours({ power: "Stopped" });
  const waiting = { ...named, volumes: [...(claim.volumes ?? []), awaiting] };
  const lent = { ...bound, volumes: [{ ...entry, disk: "root" }] };
  return [
    {
      reason: "a disk that came back while the object was deleted is no longer the keeper's",
      input: { declared: leaving, seen: came, claim: waiting, ...view(lent, at(shell)) },
      next: "recordKeeper volumes",
    },
    {
      reason: "nor is it waited for",
      input: { declared: leaving, seen: came, claim: waiting, ...view(bound, at(shell)) },
      next: "record volumes",
    },
    {
      reason:
        "a name that leads to nothing, since its volume was handed over, stays without a disk",
      input: {
        declared: leaving,
        seen: came,
        leftovers: [],
        claim: { ...claim, volumes: (claim.volumes ?? []).map(({ disk: _disk, ...rest }) => rest) },
      },
      next: "step Destroy",
    },
    {
      reason: "but one that went to the keeper and did not arrive is searched for",
      input: { declared: leaving, seen: came, claim: unsaid, ...view(coming, at(slot)) },
      next: "step TransferDisk",
    },
    {
      reason: "a keeper that is claimed is made",
      input: { ...stopped, claim: named, ...view(keeperClaim, absent) },
      next: "step CreateDiskHolder",
    },
    {
      reason: "but not while a lost request may still make it",
      input: { ...stopped, claim: named, open, ...view(keeperClaim, absent) },
      next: "wait Task",
    },
    {
      reason: "and its mark is read back",
      input: { ...stopped, claim: named, ...view(keeperClaim, at(shell)) },
      next: "recordKeeper state everExisted node",
    },
    {
      reason: "an id that a stranger has is given up",
      input: { ...stopped, claim: named, ...view(keeperClaim, stranger) },
      next: "dropKeeper Retire",
    },
    {
      reason: "an empty reservation may be our own: its Claim goes on saying where it is",
      input: {
        ...stopped,
        claim: named,
        ...view(keeperClaim, { at: "foreign", reason: "Husk", detail: "empty" }),
      },
      next: "dropKeeper Release",
    },
    {
      reason: "so does one whose work is dead",
      input: {
        ...stopped,
        claim: named,
        ...view(keeperClaim, { at: "opaque", node: "n1", lock: dead }),
      },
      next: "dropKeeper Release",
    },
    {
      reason: "its Claim says that the volume has to stay, before it comes",
      input: { ...stopped, claim: named, ...view(bound, at(shell)) },
      next: "recordKeeper volumes",
    },
    {
      reason: "there is a place for it, before it comes",
      input: { ...stopped, claim: named, ...view(coming, at(shell)) },
      next: "step WriteDiskHolderMarker",
    },
    {
      reason: "then it is handed over",
      input: { ...stopped, claim: named, ...view(coming, at(slot)) },
      next: "step TransferDisk",
    },
    {
      reason: "also if no spec ever said what becomes of it",
      input: { ...stopped, claim: unsaid, ...view(coming, at(slot)) },
      next: "step TransferDisk",
    },
    {
      reason: "a keeper elsewhere comes first",
      input: { ...stopped, claim: named, ...view({ ...coming, node: "n2" }, at(onNode2(slot))) },
      next: "step MigrateDiskHolder",
    },
    {
      reason: "a disk under its name is no proof while the machine still has the volume",
      input: { ...stopped, claim: named, ...view(coming, at(full)) },
      next: "step TransferDisk",
    },
    {
      reason: "what was seen with the keeper is written down there",
      input: {
        declared: leaving,
        seen: ours({ power: "Stopped" }),
        claim: named,
        ...view(coming, at(full)),
      },
      next: "recordKeeper volumes",
    },
    {
      reason: "and only then the machine goes",
      input: {
        declared: leaving,
        seen: ours({ power: "Stopped" }),
        claim: named,
        leftovers: [],
        ...view(settled, at(full)),
      },
      next: "step Destroy",
    },
    {
      reason: "a keeper that holds something is let go before its object",
      input: { ...gone, claim: named, ...view(settled, at(full)) },
      next: "step ReleaseDiskHolder",
    },
    {
      reason: "one that holds nothing is destroyed",
      input: { ...gone, claim: named, ...view(bound, at(shell)) },
      next: "step DestroyDiskHolder",
    },
    {
      reason: "one that waits for a volume is not, though it holds nothing",
      input: { ...gone, claim: named, ...view(coming, at(slot)) },
      next: "step ReleaseDiskHolder",
    },
    {
      reason: "a keeper that was let go is",
      input: {
        ...gone,
        claim: named,
        ...view(settled, { at: "foreign", reason: "Released", detail: "", machine: full }),
      },
      next: "dropKeeper Release",
    },
    {
      reason: "what cannot be seen of a keeper holds everything up",
      input: { ...gone, claim: named, ...view(settled, unknown) },
      next: "fail NetworkError",
    },
    {
      reason: "without a keeper's Claim there is none",
      input: { ...gone, claim: named },
      next: "dropKeeper Forget",
    },
  ];
}

function markOf({ mark }: Machine): NonNullable<Machine["mark"]> {
  assert.ok(mark);
  return mark;
}

function onNode2(of: Machine): Machine {
  return { ...of, node: "n2" };
}

it("a volume that has the name of one that was removed is not taken for it", () => {
  const logs = { ...volume, disk: "logs" } as const;
  const disks = machine.disks.map((disk) => ({ ...disk, name: "logs" }));
  const volumes = [{ ...logs, state: "Attached", sizeBytes: 10 * gib, isOwn: true } as const];
  const asked = { operation: "o1", node: "n1", storage: "store", disk: "logs" };
  const allocation = { ...asked, since: "", listed: [], complete: true };
  const input: PlanInput = {
    declared: { ...leaving, onDelete: { logs: "Retain" } },
    claim: { ...claim, allocation },
    seen: ours({ power: "Stopped", disks, volumes }),
    nowMs: 1000,
  };
  const next = planVm(input);
  assert.equal(next.do, "record");
  const known = next.do === "record" ? next.change.volumes : undefined;
  assert.deepEqual(
    known?.map(({ disk, onDelete }) => [disk, onDelete]),
    [["logs", "Retain"]],
  );
  const after: ClaimSpec = { ...claim, ...(known === undefined ? {} : { volumes: known }) };
  assert.equal(told(planVm({ ...input, claim: after })), "keep any");
});

it("a disk whose entry went while it was made is detached, as one that a spec has named", () => {
  const disk = { ...volume, state: "Attached", sizeBytes: 10 * gib, isOwn: true } as const;
  const asked = { operation: "o1", node: "n1", storage: "store", disk: "root" };
  const allocation = { ...asked, since: "", listed: [], complete: true };
  const named = { ...claim, volumes: [], expectedDisks: ["root"], allocation };
  const lastDone = { id: "o1", step: "AddDisk" };
  const input = { declared: { ...declared, disks: [], onDelete: {} }, nowMs: 1000, lastDone };
  const first = planVm({ ...input, claim: named, seen: ours({ volumes: [disk] }) });
  assert.equal(told(first), "record volumes allocation");
  const change = first.do === "record" ? first.change : {};
  const seen = ours({ volumes: [disk] });
  assert.equal(told(planVm({ ...input, claim: { ...named, ...change }, seen })), "step Detach");
  const unnamed = { ...named, ...change, expectedDisks: [] };
  assert.equal(told(planVm({ ...input, claim: unnamed, seen })), "rest 0 0");
});

describe("the plan of a VirtualMachine", () => {
  for (const { reason, input, next } of cases) {
    it(`${reason}: ${next}`, () => {
      const whole: PlanInput = { declared, claim, seen: ours(), nowMs: 1000, ...input };
      assert.equal(told(planVm(whole)), next);
    });
  }
});
