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

const hypervisor = object("The hypervisor that the machine is on.", {
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
    state: enumeration("Whether the machine uses it.", ["Attached", "Detached"]),
    onDelete: optional(enumeration("What becomes of it with the machine.", ["Delete", "Retain"])),
    since: optional(time("When it was detached.")),
  }),
  { key: "id", maxItems: 128 },
);

const keeper = object(
  "The keeper that disks are handed over to or taken back from. Known from before its own Claim exists until it was let go again.",
  {
    externalId: externalId("Its id on the same hypervisor."),
    identity: uuid("Its identity."),
  },
);

const madeFrom = listMap(
  "What counted only until the machine stood, by field: an edit of it since then is refused.",
  object("One field.", {
    field: text("The field of the VirtualMachine, such as spec.source.", 128),
    digest: text("The beginning of the SHA-256 of what it said.", 64),
  }),
  { key: "field", maxItems: 32 },
);

const resources = object("What the machine takes, as quotas count it.", {
  cpu: integer("Cores.", { minimum: 0, maximum: 65_536 }),
  memory: observedBytes("Memory."),
  storage: observedBytes("Space of all its volumes."),
});

export const claimSpec = object(
  "All of the Claim. There is no status, so that export and apply carry it whole.",
  {
    hypervisor,
    externalId: externalId("The machine's id on the hypervisor.", {
      rules: [immutable("externalId cannot change: the Claim's name is a hash of it")],
    }),
    idChosenBy: withDefault(
      enumeration(
        "Who chose the id. One that Berth chose is given up for another when somebody has it.",
        ["Berth", "User"],
      ),
      "Berth",
    ),
    state: enumeration(
      "Reserved before the hypervisor hears of it; Bound once the mark was read back from the machine; Quarantined after its absence was proven, so that the id rests; Released when it was let go and stays where it is.",
      ["Reserved", "Bound", "Quarantined", "Released"],
    ),
    role: withDefault(
      enumeration("Machine is an object's own. Keeper only holds disks that have to be kept.", [
        "Machine",
        "Keeper",
      ]),
      "Machine",
    ),
    origin: enumeration("Whether Berth made the machine or took over one that was there.", [
      "Created",
      "Adopted",
    ]),
    everStood: withDefault(
      boolean("Whether the machine was ever seen whole. One that is gone is then not made anew."),
      false,
    ),
    identity: uuid("What tells the machine from all others. It is stamped into the machine."),
    installation: uuid("The installation of Berth that it belongs to."),
    owner: owningObject("The VirtualMachine that it belongs to."),
    node: optional(hypervisorName("The node that the machine was last seen on.")),
    volumes: optional(volumes),
    comingDisks: optional(
      array(
        "Disks that a spec has named and that the machine was not seen with yet. Known before they are made: only a disk that a spec has named is ever taken out.",
        partName("The disk's name in the spec."),
        { maxItems: 128 },
      ),
    ),
    preflightVolumes: optional(
      array(
        "Volumes that stood under this id before Berth began. They are a stranger's for ever.",
        volumeId("The id of a volume."),
        { maxItems: 256 },
      ),
    ),
    preflightNode: optional(
      hypervisorName(
        "The node on which they were listed. Of the own storages of other nodes the list says nothing.",
      ),
    ),
    keeper: optional(keeper),
    madeFrom: optional(madeFrom),
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
