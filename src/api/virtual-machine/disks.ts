import {
  atMostOne,
  boolean,
  byteSize,
  enumeration,
  integer,
  listMap,
  object,
  optional,
  rule,
  ruled,
  string,
} from "../schema/index.ts";
import { hypervisorName, partName, volumeId } from "../parts/names.ts";
import { ref } from "../parts/references.ts";

/** As many as the busses of any hypervisor take in practice. */
const disksMax = 64;

const bytesPerSecond = { minimum: 1024, maximum: Number.MAX_SAFE_INTEGER };
const perSecond = { minimum: 10, maximum: 10_000_000 };

const limits = object("Bounds of what the guest may ask of the disk. Absent: none.", {
  readBytesPerSecond: optional(integer("Bytes read per second.", bytesPerSecond)),
  writeBytesPerSecond: optional(integer("Bytes written per second.", bytesPerSecond)),
  readOperationsPerSecond: optional(integer("Reads per second.", perSecond)),
  writeOperationsPerSecond: optional(integer("Writes per second.", perSecond)),
  burst: optional(
    object("Higher bounds for short peaks.", {
      readBytesPerSecond: optional(integer("Bytes read per second.", bytesPerSecond)),
      writeBytesPerSecond: optional(integer("Bytes written per second.", bytesPerSecond)),
      readOperationsPerSecond: optional(integer("Reads per second.", perSecond)),
      writeOperationsPerSecond: optional(integer("Writes per second.", perSecond)),
    }),
  ),
});

const disk = object(
  "One disk.",
  {
    name: partName("The disk's own name. It stays the same whatever the order or the bus."),
    size: optional(
      byteSize(
        "How large the disk is, such as `20Gi`. It can grow, never shrink. Absent: as large as what fills it. A disk that nothing fills needs it.",
      ),
    ),
    storage: optional(
      hypervisorName("The storage that holds the disk. Absent: the Hypervisor's default."),
    ),
    bus: optional(
      enumeration("How the guest sees the disk. Absent: the best that the hypervisor has.", [
        "virtio",
        "scsi",
        "sata",
        "ide",
        "nvme",
      ]),
    ),
    format: optional(
      enumeration("How a new disk is stored, where the storage leaves the choice.", [
        "raw",
        "qcow2",
        "vmdk",
      ]),
    ),
    provisioning: optional(
      enumeration("Whether the space is taken as it is used or at once, where there is a choice.", [
        "Thin",
        "Thick",
      ]),
    ),
    cache: optional(
      enumeration("How the node caches the disk. Absent: the hypervisor's default.", [
        "None",
        "WriteThrough",
        "WriteBack",
        "DirectSync",
        "Unsafe",
      ]),
    ),
    discard: optional(boolean("Pass on what the guest frees, so that the storage can reuse it.")),
    ioThread: optional(boolean("Serve the disk from a thread of its own.")),
    asyncIo: optional(
      enumeration("How the node does the disk's input and output.", [
        "IoUring",
        "Native",
        "Threads",
      ]),
    ),
    ssd: optional(boolean("Tell the guest that the disk is an SSD.")),
    readOnly: optional(boolean("The guest cannot write to it.")),
    backup: optional(boolean("Include it in the hypervisor's backups. Absent: true.")),
    replicate: optional(boolean("Include it in the hypervisor's replication. Absent: true.")),
    serial: optional(
      string("The serial number that the guest sees.", {
        minLength: 1,
        maxLength: 20,
        pattern: "^[A-Za-z0-9_.-]+$",
      }),
    ),
    limits: optional(limits),
    onDelete: optional(
      enumeration(
        "What becomes of the disk when the machine is deleted: deleted with it, or kept for a machine to come. Not given: Delete.",
        ["Delete", "Retain"],
      ),
    ),
    state: optional(
      enumeration(
        "Absent destroys the disk and all its data. To detach a disk and keep it, remove its entry instead. Not given: Present.",
        ["Present", "Absent"],
      ),
    ),
  },
  {
    rules: [
      rule(
        "!has(self.state) || self.state == 'Present' || !has(self.onDelete) || self.onDelete == 'Delete'",
        "state: Absent destroys the disk and needs onDelete: Delete; to detach it and keep its data, remove the entry",
        { fieldPath: ".state" },
      ),
    ],
  },
);

const description =
  "The machine's disks, keyed by name. Removing an entry only detaches the disk; adding the same name again attaches it again.";

/** Disks as a template has them, whose members may be replaced by smaller ones. */
export const templateDisks = listMap(description, disk, { key: "name", maxItems: disksMax });

/** Disks of one machine: they only grow. */
export const disks = listMap(
  description,
  ruled(
    disk,
    rule(
      "!has(self.size) || !has(oldSelf.size) || quantity(self.size).compareTo(quantity(oldSelf.size)) >= 0",
      "a disk cannot shrink: keep the size or make it larger",
      { fieldPath: ".size", reason: "FieldValueForbidden" },
    ),
  ),
  { key: "name", maxItems: disksMax },
);

/** Drives with removable media. */
export const cdroms = listMap(
  "CD drives, keyed by name. A drive with neither imageRef nor volume is empty.",
  object(
    "One drive.",
    {
      name: partName("The drive's own name."),
      imageRef: optional(ref("VMImage", "The VMImage of format iso that is in the drive.")),
      volume: optional(
        volumeId(
          "An ISO that is already on the hypervisor, by its id there. It is used, never owned.",
        ),
      ),
      bus: optional(enumeration("How the guest sees the drive.", ["sata", "ide", "scsi"])),
    },
    {
      rules: [atMostOne(["imageRef", "volume"], "a drive takes an imageRef or a volume, not both")],
    },
  ),
  { key: "name", maxItems: 8 },
);
