import {
  boolean,
  byteSize,
  enumeration,
  listMap,
  object,
  optional,
  string,
} from "../schema/index.ts";
import { hypervisorName, partName } from "../parts/names.ts";

const pci = listMap(
  "PCI devices of the node, keyed by name. The Hypervisor has to allow the mapping.",
  object("One PCI device.", {
    name: partName("The device's own name in this object."),
    mapping: hypervisorName(
      "The hypervisor's resource mapping, which says which device it is on each node.",
    ),
    mediatedType: optional(
      string("The type of mediated device to take from it, such as a share of a GPU.", {
        minLength: 1,
        maxLength: 64,
        pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
      }),
    ),
    pcie: optional(boolean("Show it as PCI Express. Needs a machine type that has it.")),
    primaryDisplay: optional(boolean("It is the machine's screen.")),
    romBar: optional(boolean("Let the guest see the device's own firmware. Absent: true.")),
  }),
  { key: "name", maxItems: 16 },
);

const usb = listMap(
  "USB devices of the node, keyed by name. The Hypervisor has to allow the mapping.",
  object("One USB device.", {
    name: partName("The device's own name in this object."),
    mapping: hypervisorName(
      "The hypervisor's resource mapping, which says which device it is on each node.",
    ),
    usb3: optional(boolean("Attach it to a USB 3 controller. Absent: true.")),
  }),
  { key: "name", maxItems: 14 },
);

/** What is attached beside disks and networks. */
export const devices = object("What is attached beside disks and networks.", {
  serialConsole: optional(
    boolean("A serial port on which `berth console` can talk to the guest. Absent: true."),
  ),
  display: optional(
    object("The screen. Absent: the hypervisor's default.", {
      type: enumeration(
        "The kind of graphics card. Serial sends the screen's text to the serial console.",
        ["None", "Standard", "Virtio", "VirtioGL", "QXL", "VMware", "Serial"],
      ),
      memory: optional(byteSize("The memory of the graphics card.")),
    }),
  ),
  scsiController: optional(
    enumeration("The controller of disks on the scsi bus. Absent: the best that there is.", [
      "Virtio",
      "VirtioSingle",
      "LSILogic",
      "LSILogicSAS",
      "BusLogic",
      "MegaRAID",
      "PVSCSI",
    ]),
  ),
  pci: optional(pci),
  usb: optional(usb),
});

/** The guest's operating system, as far as the hypervisor wants to know it. */
export const guestOs = object(
  "The operating system, by which the hypervisor chooses what suits it. Absent: that of the image, else Linux.",
  {
    family: enumeration("The family.", ["Linux", "Windows", "BSD", "Solaris", "Other"]),
    name: optional(
      string("The distribution or edition, such as `debian` or `server`.", {
        minLength: 1,
        maxLength: 32,
        pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
      }),
    ),
    version: optional(
      string("Its version, such as `12` or `2022`, in quotes.", {
        minLength: 1,
        maxLength: 16,
        pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
      }),
    ),
  },
);

export const guestAgent = object("The agent in the guest, which knows its addresses.", {
  enabled: optional(
    boolean("Whether there is a channel for it. Nothing waits for an agent. Absent: true."),
  ),
  trimAfterClone: optional(boolean("Ask it to free unused blocks after a disk was copied.")),
  freezeForBackup: optional(
    boolean("Ask it to quiet the file systems while a backup or snapshot is taken. Absent: true."),
  ),
});
