import {
  enumeration,
  exactlyOne,
  listMap,
  object,
  optional,
  rule,
  string,
  withDefault,
} from "../schema/index.ts";
import {
  externalId,
  hypervisorName,
  objectName,
  partName,
  text,
  volumeId,
} from "../parts/names.ts";
import { ref } from "../parts/references.ts";

/** The disk that a source fills, by its name in `disks`. */
const filledDisk = withDefault(
  partName("The disk that this fills: the entry of `disks` with this name."),
  "root",
);

const image = object("Fill a disk from a VMImage.", {
  name: objectName("Name of the VMImage, in the same namespace."),
  disk: filledDisk,
});

const clone = object(
  "Copy the disks of another machine.",
  {
    vmRef: optional(ref("VirtualMachine", "A VirtualMachine of this namespace.")),
    imageRef: optional(ref("VMImage", "A VMImage whose source is a template.")),
    externalId: optional(
      externalId("A machine or template that no object declares, by its id on the hypervisor."),
    ),
    mode: withDefault(
      enumeration(
        "Full copies everything and depends on nothing. Linked shares the blocks of a template, which then cannot be deleted.",
        ["Full", "Linked"],
      ),
      "Full",
    ),
    snapshot: optional(
      hypervisorName("Copy the state of this snapshot instead of the present one."),
    ),
    disk: withDefault(
      partName("The name in `disks` that the copy of the source's boot disk gets."),
      "root",
    ),
    disks: optional(
      listMap(
        "The source's further disks and the names that their copies get. What is not listed here is not copied, unless a linked clone brings it.",
        object("One further disk.", {
          name: partName("The name in `disks`."),
          device: text(
            "The disk of the source: its name there if an object declares it, else the device as the hypervisor shows it, such as `scsi1` or `vdb`.",
            64,
          ),
        }),
        { key: "name", maxItems: 64 },
      ),
    ),
  },
  {
    rules: [
      exactlyOne(
        ["vmRef", "imageRef", "externalId"],
        "name what to clone by exactly one of vmRef, imageRef and externalId",
      ),
    ],
  },
);

const importedDisk = object(
  "Start from a disk that is already on the hypervisor, for example after a migration.",
  {
    diskId: volumeId("The disk. Without `path`, the id of a volume in the target storage."),
    path: optional(
      string(
        "The absolute path of the file on the hypervisor. The Hypervisor has to allow it for this namespace.",
        {
          minLength: 2,
          maxLength: 1024,
          pattern: "^/[A-Za-z0-9_ ./:@+()-]*$",
          rules: [
            rule(
              "!self.contains('/../') && !self.endsWith('/..')",
              "path cannot contain '..': write the path without it",
            ),
          ],
        },
      ),
    ),
    format: withDefault(
      enumeration(
        "The format of the disk. It is never guessed from the content, which a guest could have written.",
        ["qcow2", "raw", "vmdk", "vdi", "vhd", "vhdx"],
      ),
      "qcow2",
    ),
    from: withDefault(
      enumeration("Where the disk came from, for the record.", [
        "migration",
        "clone",
        "import",
        "snapshot",
        "manual",
      ]),
      "manual",
    ),
    migrationRef: optional(ref("VMMigration", "The VMMigration that brought the disk.")),
    mode: withDefault(
      enumeration(
        "Copy leaves the disk alone and works on a copy. Take makes the disk itself this machine's, and with that deletable as its `onDelete` says.",
        ["Copy", "Take"],
      ),
      "Copy",
    ),
    disk: filledDisk,
  },
  {
    rules: [
      rule(
        "!has(self.migrationRef) || self.from == 'migration'",
        "migrationRef is only for a disk that came from a migration: set from to migration",
        { fieldPath: ".migrationRef" },
      ),
    ],
  },
);

const blank = object(
  "Start with empty disks, for example to install from an ISO in `cdroms` or over the network.",
  {},
);

const sourceKinds = ["image", "clone", "importedDisk", "blank"] as const;

/** What the machine is made from. */
export const source = object(
  "What the machine is made from: exactly one of image, clone, importedDisk and blank. It counts until the machine first stood; a later edit is refused as ReplacementRequired and changes nothing.",
  {
    image: optional(image),
    clone: optional(clone),
    importedDisk: optional(importedDisk),
    blank: optional(blank),
  },
  {
    rules: [
      exactlyOne(
        sourceKinds,
        "source must have exactly one of image, clone, importedDisk and blank",
      ),
    ],
  },
);
