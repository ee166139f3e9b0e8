import {
  externalId,
  hypervisorName,
  objectName,
  partName,
  text,
  time,
  uuid,
  volumeId,
} from "../parts/names.ts";
import { owningObject } from "../parts/references.ts";
import {
  array,
  boolean,
  enumeration,
  immutable,
  integer,
  listMap,
  object,
  observedBytes,
  optional,
  string,
  withDefault,
} from "../schema/index.ts";
import { claimRules } from "./rules.ts";

const hypervisor = object("The hypervisor that it is on.", {
  name: objectName("Name of the Hypervisor object."),
  systemId: string("The hypervisor's own identity. Part of what the Claim's name is a hash of.", {
    minLength: 1,
    maxLength: 256,
    rules: [immutable("systemId cannot change: the Claim's name is a hash of it")],
  }),
});

const volumes = listMap(
  "The volumes that are known to belong to the machine. What is not in here is not ours to delete.",
  object("One volume.", {
    id: volumeId("Its id on the hypervisor."),
    role: enumeration("What it is for.", ["Disk", "Firmware", "TPM", "CloudInit", "State"]),
    disk: optional(partName("The disk's name in the spec.")),
    storage: optional(hypervisorName("The storage that holds it.")),
    size: optional(observedBytes("How large it is.")),
    growsTo: optional(
      observedBytes(
        "How large an operation makes it. Written before that begins, and kept until the VM is seen with a disk of that size.",
      ),
    ),
    state: enumeration("Whether the machine uses it.", ["Attached", "Detached"]),
    onDelete: optional(enumeration("What becomes of it with the machine.", ["Delete", "Retain"])),
    since: optional(time("When it was detached.")),
    madeBy: optional(text("The id of the operation that made it.", 64)),
    proof: optional(
      enumeration(
        "What proves that it belongs to the VM. Config: the configuration that our own task ended with names it. TaskLog: the log of our own task names it. Named: Berth chose its name and wrote it down before it was made. Taken: a declaration names it to be taken over. Followed: only its place and its size say that it is the disk, because somebody renamed or moved it, because nobody knows how the operation that makes the disk ended, or because the Claim was lost. Such a one is used, and never destroyed. Recorded: a release before 0.2 recorded it, or a person had the whole VM destroyed. A disk without a proof is never destroyed.",
        ["Config", "TaskLog", "Named", "Taken", "Followed", "Recorded"],
      ),
    ),
  }),
  { key: "id", maxItems: 128 },
);

const otherVolumes = listMap(
  "Volumes that were seen under this id and that are not ours. They are never destroyed. While one of them exists, no VM is created under the id. One that complete lists do not show for ten minutes is believed to be gone; its name is remembered, because its storage may only be unmounted, and a volume of ours that gets the name is never destroyed.",
  object("One volume.", {
    id: volumeId("Its id on the hypervisor."),
    seenAt: optional(time("When it was first seen.")),
    missingSince: optional(
      time("Since when complete lists do not show it. Its storage may only be unmounted."),
    ),
  }),
  { key: "id", maxItems: 256 },
);

const allocation = object(
  "The open operation that makes volumes, with what existed under the id before it began. A volume that such an operation leaves behind is told from others by this.",
  {
    operation: text("The id of the operation.", 64),
    node: hypervisorName("The node that it runs on."),
    storage: hypervisorName("The storage that it allocates on."),
    disk: optional(partName("The disk's name in the spec, where it makes one disk.")),
    size: optional(observedBytes("The exact size that it asks for, where it is known.")),
    volume: optional(
      volumeId(
        "The volume of a blank disk, whose name Berth chose: the id of the operation is in it. Whatever has this name is ours.",
      ),
    ),
    earlier: optional(
      array(
        "Volumes that operations before this one were to make under names of Berth's choice. One that appears late is ours.",
        volumeId("The id of a volume."),
        { maxItems: 16 },
      ),
    ),
    also: optional(
      array(
        "Further volumes that the same operation makes.",
        object("One volume.", {
          storage: hypervisorName("The storage that it is allocated on."),
          size: optional(observedBytes("The exact size that is asked for, where it is known.")),
        }),
        { maxItems: 64 },
      ),
    ),
    source: optional(
      externalId("The VM that is copied. The hypervisor lists the task under this id."),
    ),
    since: time("When it was begun."),
    task: optional(text("The hypervisor's name of the task.", 512)),
    listed: array(
      "All volumes under the id that were listed before it began.",
      volumeId("The id of a volume."),
      { maxItems: 256 },
    ),
    complete: boolean("Whether the storage was listed in full before it began."),
    settledAt: optional(
      time("When all that it made or left behind was accounted for. Absent: not yet."),
    ),
  },
);

const probableVolumes = listMap(
  "Volumes that a failed operation probably left: all evidence fits, and nothing proves it. They are reported, counted in the budget of failed attempts of their storage, never used again, and removed only by policy or approval.",
  object("One volume.", {
    id: volumeId("Its id on the hypervisor."),
    storage: hypervisorName("The storage that holds it."),
    node: hypervisorName("The node that listed it."),
    size: observedBytes("How large it is."),
    operation: text("The id of the operation that probably left it.", 64),
    seenAt: time("When it was first seen."),
    evidence: array("Why it is probably ours.", text("One fact.", 512), { maxItems: 16 }),
  }),
  { key: "id", maxItems: 64 },
);

const driver = object("What only this kind of hypervisor needs to know. Opaque to everyone else.", {
  version: integer("The version of its form.", { minimum: 1, maximum: 1_000_000 }),
  data: text("Its content, as JSON.", 8192),
});

const holder = {
  externalId: externalId("Its id on the same hypervisor."),
  identity: uuid("Its identity."),
};

const diskHolder = object(
  "The disk-holder VM that disks are transferred to or taken back from. Known from before its own Claim exists until it was released again.",
  holder,
);

const file = object(
  "The file, where target is File: an image or an ISO that Berth brings to a storage.",
  {
    storage: hypervisorName("The storage that holds it."),
    name: text("Its name on the storage.", 256),
    content: enumeration("What the storage holds it as.", ["Image", "ISO"]),
    checksum: optional(text("The checksum that it is brought with.", 135)),
    size: optional(
      observedBytes(
        "How large it is, once that is known. A Bound file that has another size by now is somebody else's.",
      ),
    ),
    createdAt: optional(
      time(
        "When the file was created or last changed, as the storage said when the file was observed; absent where the storage says nothing. A Bound file that has another time by now is somebody else's.",
      ),
    ),
    volume: optional(volumeId("Its id on the hypervisor, once it was observed.")),
    operation: optional(
      object(
        "The last operation that was to bring it. A VMImage that lost its status finds its task by this.",
        {
          id: text("The id of the operation.", 64),
          key: optional(text("Its key: the same operation has the same key.", 64)),
          step: text("The step, Download or Upload.", 64),
          node: hypervisorName("The node that it runs on."),
          since: time("When it was begun."),
          task: optional(
            text(
              "The task of an upload that did not end well. It proves that a part of the file is Berth's.",
              512,
            ),
          ),
        },
      ),
    ),
  },
);

/** The id of a VM, or for a file its place: `pve1/local/Image/debian.qcow2`. */
const claimedId = string(
  "Its id on the hypervisor. For a file its place there: the node where the storage is not shared, the storage, what it is held as, and its name.",
  {
    minLength: 1,
    maxLength: 512,
    pattern: "^[A-Za-z0-9_]([A-Za-z0-9 _.:()+=/-]*[A-Za-z0-9_.)+=-])?$",
    rules: [immutable("externalId cannot change: the Claim's name is a hash of it")],
  },
);

const createdField = object("One field.", {
  field: text(
    "The field of the VirtualMachine, such as spec.source; image for its VMImage; secret and a field of spec.cloudInit for a Secret.",
    128,
  ),
  digest: text(
    "The beginning of the SHA-256 of what it said; of a Secret an HMAC with the installation's key.",
    64,
  ),
});

const createdFrom = listMap(
  "What the VM was created from, by field. A later edit of a field of its spec is refused. A later change of its VMImage or a Secret has no effect on it.",
  createdField,
  { key: "field", maxItems: 32 },
);

/**
 * Names that 0.1 wrote. They stay readable until every Claim was rewritten: on Kubernetes a field
 * that the CRD does not have is pruned, and a lost `everStood` would recreate a VM that is gone.
 */
const old = {
  everStood: optional(boolean("Written by 0.1: see everExisted.")),
  comingDisks: optional(
    array("Written by 0.1: see expectedDisks.", partName("The disk's name in the spec."), {
      maxItems: 128,
    }),
  ),
  preflightVolumes: optional(
    array("Written by 0.1: see otherVolumes.", volumeId("The id of a volume."), { maxItems: 256 }),
  ),
  preflightNode: optional(hypervisorName("Written by 0.1: see driver.")),
  keeper: optional(object("Written by 0.1: see diskHolder.", holder)),
  madeFrom: optional(
    listMap("Written by 0.1: see createdFrom.", createdField, { key: "field", maxItems: 32 }),
  ),
};

const resources = object("What the VM takes, as quotas count it.", {
  cpu: integer("Cores.", { minimum: 0, maximum: 65_536 }),
  memory: observedBytes("Memory."),
  storage: observedBytes("Space of all its volumes."),
});

export const claimSpec = object(
  "All of the Claim. There is no status, so that export and apply carry it whole.",
  {
    target: withDefault(
      enumeration(
        "What it is that Berth made or took over. File: an image file or ISO that Berth brought for a VMImage. The ISO of a VM's first boot is a volume of the VM's own Claim.",
        ["VM", "File", "Snapshot"],
      ),
      "VM",
    ),
    file: optional(file),
    hypervisor,
    externalId: claimedId,
    idChosenBy: withDefault(
      enumeration(
        "Who chose the id. One that Berth chose is given up for another when somebody has it.",
        ["Berth", "User"],
      ),
      "Berth",
    ),
    state: enumeration(
      "Reserved before the first request to the hypervisor; Bound once the ownership marker was read back, or the whole file was observed; Quarantined after its absence was proven, so that the id is not reused at once; Released when it stays on the hypervisor and is no longer Berth's.",
      ["Reserved", "Bound", "Quarantined", "Released"],
    ),
    role: withDefault(
      enumeration(
        "VM: the VM of an object. DiskHolder: a powered-off VM that only holds disks that have to be kept. Machine and Keeper are what 0.1 wrote for the same.",
        ["VM", "DiskHolder", "Machine", "Keeper"],
      ),
      "VM",
    ),
    origin: enumeration("Whether Berth made the machine or took over one that was there.", [
      "Created",
      "Adopted",
    ]),
    everExisted: withDefault(
      boolean("Whether the VM was ever seen complete. If it is gone, it is not recreated unasked."),
      false,
    ),
    identity: uuid(
      "What tells the VM from all others. It is written into the VM. That of a file is only here.",
    ),
    installation: uuid("The installation of Berth that it belongs to."),
    owner: owningObject(
      "The object that it belongs to: a VirtualMachine, or for a file a VMImage.",
    ),
    node: optional(
      hypervisorName(
        "The node that the VM was last seen on; for a file the node whose storage holds it, where that is not shared.",
      ),
    ),
    volumes: optional(volumes),
    expectedDisks: optional(
      array(
        "Disks that a spec has named and that the machine was not seen with yet. Known before they are made: only a disk that a spec has named is ever taken out.",
        partName("The disk's name in the spec."),
        { maxItems: 128 },
      ),
    ),
    otherVolumes: optional(otherVolumes),
    allocation: optional(allocation),
    probableVolumes: optional(probableVolumes),
    preflight: optional(
      enumeration(
        "Pending while it is not known whether the VM can be created: such a Claim only keeps its id. Nothing was sent for it, and quotas do not count it. Absent: Passed.",
        ["Pending", "Passed"],
      ),
    ),
    workerNeverStarted: optional(
      boolean(
        "Whether the hypervisor reserved the id and reported that it could not start a task. No task will ever prove whose the empty reservation is; this does.",
      ),
    ),
    driver: optional(driver),
    diskHolder: optional(diskHolder),
    createdFrom: optional(createdFrom),
    ...old,
    resources: optional(resources),
    reservedAt: optional(time("When it was reserved.")),
    boundAt: optional(time("When the mark was first read back.")),
    quarantineUntil: optional(time("Until when the id rests. After that the Claim is deleted.")),
    releasedAt: optional(time("When the machine was let go.")),
    releaseReason: optional(
      text("Why: retained by policy, or forgotten by whom and for what.", 1024),
    ),
  },
  { rules: claimRules },
);
