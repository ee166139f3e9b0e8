import type { FieldLine } from "./field-line.ts";

const cpu: readonly FieldLine[] = [
  { field: "cpu.cores", change: "Reboot", does: "`cores`." },
  { field: "cpu.sockets", change: "Reboot", does: "`sockets`." },
  { field: "cpu.model", change: "Reboot", does: "`cpu`. `x86-64-v2` and later words need 8.0." },
  { field: "cpu.features[]", change: "Reboot", does: "`cpu: flags=`.", shape: "cpu.features" },
  {
    field: "cpu.features[].state",
    change: "Reboot",
    does: "`+name` or `-name`.",
    shape: "cpu.features[].isEnabled",
  },
  { field: "cpu.limit", change: "Live", does: "`cpulimit`.", shape: "cpu.limitMillicores" },
  { field: "cpu.weight", change: "Live", does: "`cpuunits`." },
  { field: "cpu.numa", change: "Reboot", does: "`numa`." },
  {
    field: "cpu.hostCpus",
    change: "Refused",
    does: "`affinity` can be set by root's password login only, never by a token.",
  },
];

const memory: readonly FieldLine[] = [
  {
    field: "memory.size",
    change: "Reboot",
    does: "`memory`, in MiB, rounded up.",
    shape: "memory.sizeBytes",
  },
  {
    field: "memory.minimum",
    change: "Live",
    does: "`balloon`, in MiB, rounded up.",
    shape: "memory.minimumBytes",
  },
  { field: "memory.ballooning", change: "Reboot", does: "`balloon: 0` takes the device away." },
  { field: "memory.weight", change: "Live", does: "`shares`." },
  {
    field: "memory.hugePages",
    change: "Refused",
    does: "`hugepages` can be set by root's password login only, never by a token.",
  },
];

const firmware: readonly FieldLine[] = [
  {
    field: "firmware.type",
    change: "Reboot",
    does: "`bios`; UEFI gets a volume for its variables, `efidisk0`.",
  },
  {
    field: "firmware.secureBoot",
    change: "Impossible",
    does: "The keys are enrolled when `efidisk0` is made (`pre-enrolled-keys`).",
  },
  {
    field: "firmware.tpm",
    change: "Reboot",
    does: "`tpmstate0` can be added. To change or remove it would lose the keys it holds: refused.",
  },
  {
    field: "firmware.storage",
    change: "Own",
    does: "Counts when these volumes are made; not given, beside the disk that it boots from.",
  },
  { field: "machineType", change: "Reboot", does: "`machine`." },
  { field: "guestOs.family", change: "Reboot", does: "`ostype`.", shape: "guestOs" },
  { field: "guestOs.name", change: "Own", does: "Proxmox has no word for it." },
  { field: "guestOs.version", change: "Reboot", does: "`ostype` of Windows, by the nearest word." },
];

const limit = "`mbps_…` and `iops_…`, in the drive's options.";

const disks: readonly FieldLine[] = [
  {
    field: "disks[]",
    change: "Live",
    onSlowBus: "Reboot",
    does: "A volume in the first free slot of its bus, which the name then keeps. Removing the entry makes it `unusedN`.",
  },
  {
    field: "disks[].size",
    change: "Live",
    does: "`PUT resize`, to an absolute size. Smaller is refused.",
    shape: "disks[].sizeBytes",
  },
  { field: "disks[].storage", change: "Live", does: "`move_disk`; the old volume goes after it." },
  {
    field: "disks[].bus",
    change: "PowerOff",
    does: "Another slot: detached there and attached here. There is no nvme.",
  },
  { field: "disks[].format", change: "Impossible", does: "Counts when the volume is made." },
  { field: "disks[].provisioning", change: "Own", does: "The storage decides it: no choice here." },
  { field: "disks[].cache", change: "Reboot", does: "`cache`." },
  { field: "disks[].discard", change: "Reboot", does: "`discard`." },
  { field: "disks[].ioThread", change: "Reboot", does: "`iothread`, on scsi and virtio." },
  { field: "disks[].asyncIo", change: "Reboot", does: "`aio`." },
  { field: "disks[].ssd", change: "Reboot", does: "`ssd`, not on virtio." },
  { field: "disks[].readOnly", change: "Reboot", does: "`ro`, on scsi and virtio." },
  { field: "disks[].backup", change: "Live", does: "`backup`.", onSlowBus: "Reboot" },
  { field: "disks[].replicate", change: "Live", does: "`replicate`.", onSlowBus: "Reboot" },
  {
    field: "disks[].serial",
    change: "Live",
    onSlowBus: "Reboot",
    does: "`serial`. A running guest sees it after its next restart.",
  },
  { field: "disks[].limits.*", change: "Live", does: limit, onSlowBus: "Reboot" },
  {
    field: "disks[].onDelete",
    change: "Own",
    does: "Kept in the Claim. Retain: handed over to a keeper before the machine goes.",
  },
  {
    field: "disks[].state",
    change: "Live",
    onSlowBus: "Reboot",
    does: "`Absent`: detached, then the `unusedN` is deleted, which frees the volume.",
  },
];

const media: readonly FieldLine[] = [
  {
    field: "cdroms[]",
    change: "Reboot",
    does: "A drive in the first free slot of its bus, sata where nothing is said.",
  },
  { field: "cdroms[].imageRef.*", change: "Live", does: "The medium.", shape: "cdroms[].medium" },
  { field: "cdroms[].volume", change: "Live", does: "The medium.", shape: "cdroms[].medium" },
  { field: "cdroms[].bus", change: "PowerOff", does: "Another slot." },
  { field: "bootOrder[].*", change: "Reboot", does: "`boot: order=`.", shape: "bootOrder" },
  { field: "bootOrder[]", change: "Reboot", does: "`boot: order=`.", shape: "bootOrder" },
];

const pulled = "The card would be pulled out and plugged in again under a running guest.";

const networks: readonly FieldLine[] = [
  { field: "networks[]", change: "Live", does: "`netN`, in the first free slot." },
  {
    field: "networks[].networkRef.*",
    change: "Live",
    does: "`bridge`, `tag`, `trunks` and `mtu` of the VMNetwork.",
    shape: "networks[].network",
  },
  { field: "networks[].bridge", change: "Live", does: "`bridge`.", shape: "networks[].network" },
  { field: "networks[].vlan", change: "Live", does: "`tag`." },
  { field: "networks[].trunks", change: "Live", does: "`trunks`." },
  { field: "networks[].mtu", change: "PowerOff", does: `\`mtu\`, on virtio. ${pulled}` },
  { field: "networks[].macAddress", change: "PowerOff", does: `The model's value. ${pulled}` },
  { field: "networks[].model", change: "PowerOff", does: `The model. ${pulled}` },
  { field: "networks[].firewall", change: "Live", does: "`firewall`." },
  { field: "networks[].connected", change: "Live", does: "`link_down`." },
  { field: "networks[].queues", change: "PowerOff", does: `\`queues\`. ${pulled}` },
  { field: "networks[].bytesPerSecond", change: "Live", does: "`rate`, in MiB per second." },
];

const mapping = "By resource mapping, since 8.0.";

const devices: readonly FieldLine[] = [
  {
    field: "devices.serialConsole",
    change: "Reboot",
    does: "`serial0: socket`.",
    shape: "serialConsole",
  },
  { field: "devices.display.type", change: "Reboot", does: "`vga`.", shape: "display.type" },
  {
    field: "devices.display.memory",
    change: "Reboot",
    does: "`vga: memory=`, 4 to 512 MiB.",
    shape: "display.memoryBytes",
  },
  {
    field: "devices.scsiController",
    change: "Reboot",
    does: "`scsihw`. Not given: virtio-scsi-single for a new machine.",
    shape: "scsiController",
  },
  { field: "devices.pci[]", change: "Reboot", does: `\`hostpciN\`. ${mapping}`, shape: "pci[]" },
  {
    field: "devices.pci[].mapping",
    change: "Reboot",
    does: "`mapping`.",
    shape: "pci[].mapping",
  },
  {
    field: "devices.pci[].mediatedType",
    change: "Reboot",
    does: "`mdev`.",
    shape: "pci[].mediatedType",
  },
  {
    field: "devices.pci[].pcie",
    change: "Reboot",
    does: "`pcie`. Needs q35, which a new machine then gets.",
    shape: "pci[].pcie",
  },
  {
    field: "devices.pci[].primaryDisplay",
    change: "Reboot",
    does: "`x-vga`.",
    shape: "pci[].primaryDisplay",
  },
  { field: "devices.pci[].romBar", change: "Reboot", does: "`rombar`.", shape: "pci[].romBar" },
  { field: "devices.usb[]", change: "Live", does: `\`usbN\`. ${mapping}`, shape: "usb[]" },
  { field: "devices.usb[].mapping", change: "Live", does: "`mapping`.", shape: "usb[].mapping" },
  { field: "devices.usb[].usb3", change: "Live", does: "`usb3`.", shape: "usb[].usb3" },
  { field: "guestAgent.enabled", change: "Reboot", does: "`agent`.", shape: "guestAgent" },
  {
    field: "guestAgent.trimAfterClone",
    change: "Live",
    does: "`agent: fstrim_cloned_disks`.",
    shape: "agentOptions.trimAfterClone",
  },
  {
    field: "guestAgent.freezeForBackup",
    change: "Reboot",
    does: "`agent: freeze-fs-on-backup`.",
    shape: "agentOptions.freezeForBackup",
  },
];

/** What the machine is made of. */
export const hardwareFields: readonly FieldLine[] = [
  ...cpu,
  ...memory,
  ...firmware,
  ...disks,
  ...media,
  ...networks,
  ...devices,
];
