import type { FieldLine } from "./field-line.ts";
import { hardwareFields } from "./hardware-fields.ts";

const firstBoot = "Counts until the machine first stood.";

const seed: readonly FieldLine[] = [
  ...["userData", "vendorData", "metaData", "networkData"].flatMap((part): FieldLine[] => [
    {
      field: `cloudInit.${part}.inline`,
      change: "Impossible",
      does: `In a NoCloud disc of our own, uploaded as ISO. ${firstBoot}`,
    },
    {
      field: `cloudInit.${part}.secretRef.*`,
      change: "Impossible",
      does: `The same; the disc goes as soon as the guest has read it. ${firstBoot}`,
    },
    {
      field: `cloudInit.${part}.file`,
      change: "Impossible",
      does: `\`cicustom\`, a snippet that is there. ${firstBoot}`,
    },
  ]),
  {
    field: "cloudInit.hostname",
    change: "Impossible",
    does: `Proxmox tells the machine's name; another one needs our own disc. ${firstBoot}`,
  },
  { field: "cloudInit.user.name", change: "Impossible", does: `\`ciuser\`. ${firstBoot}` },
  {
    field: "cloudInit.user.sshAuthorizedKeys",
    change: "Impossible",
    does: `\`sshkeys\`. ${firstBoot}`,
  },
  {
    field: "cloudInit.user.passwordHash",
    change: "Impossible",
    does: `\`cipassword\`; hashes of the kinds 1, 2a, 2y, 5 and 6. ${firstBoot}`,
  },
  {
    field: "cloudInit.user.passwordHashSecretRef.*",
    change: "Impossible",
    does: `The same. ${firstBoot}`,
  },
  { field: "cloudInit.networks[]", change: "Impossible", does: `\`ipconfigN\`. ${firstBoot}` },
  { field: "cloudInit.networks[].ipv4.*", change: "Impossible", does: "`ip` and `gw` of it." },
  { field: "cloudInit.networks[].ipv6.*", change: "Impossible", does: "`ip6` and `gw6` of it." },
  { field: "cloudInit.dns.servers", change: "Impossible", does: `\`nameserver\`. ${firstBoot}` },
  {
    field: "cloudInit.dns.searchDomains",
    change: "Impossible",
    does: `\`searchdomain\`. ${firstBoot}`,
  },
  {
    field: "cloudInit.upgradePackages",
    change: "Impossible",
    does: `\`ciupgrade\`, since 8.0. ${firstBoot}`,
  },
  {
    field: "cloudInit.datasource",
    change: "Impossible",
    does: `\`citype\`. Our own disc is always NoCloud. ${firstBoot}`,
  },
  {
    field: "cloudInit.storage",
    change: "Impossible",
    does: `Where the drive or our disc lies. ${firstBoot}`,
  },
];

const watched = "A resource of the HA manager. Needs Sys.Console on `/`.";

const place: readonly FieldLine[] = [
  {
    field: "hypervisorRef.*",
    change: "Impossible",
    does: "Another Hypervisor: by a VMMigration only.",
  },
  {
    field: "placement.node",
    change: "Live",
    does: "With `mode: Enforce` `migrate`, online and with local disks.",
  },
  { field: "placement.nodes", change: "Live", does: "The same." },
  { field: "placement.awayFrom[]", change: "Live", does: "The same." },
  { field: "placement.awayFrom[].*", change: "Live", does: "The same." },
  { field: "placement.mode", change: "Own", does: "Initial follows the machine wherever it is." },
  { field: "placement.pool", change: "Live", does: "`PUT /pools/{pool}`. Needs Pool.Allocate." },
  { field: "placement.folder", change: "Own", does: "Proxmox has no folders." },
  {
    field: "machineName",
    change: "Live",
    does: "`name`, which must be a DNS name.",
    shape: "name",
  },
  {
    field: "description",
    change: "Live",
    does: "`description`, above Berth's own line.",
    shape: "notes",
  },
  { field: "tags", change: "Live", does: "`tags`, in lower case and sorted." },
  { field: "classRef.*", change: "Own", does: "Gives fields, each with its own line here." },
  {
    field: "source.*",
    change: "Impossible",
    does: "Counts until the machine first stood: `import-from` for images and full clones, `clone` for linked ones, the volume itself for `importedDisk` with `mode: Take`.",
  },
  { field: "startOnBoot", change: "Live", does: "`onboot`." },
  {
    field: "startup.*",
    change: "Live",
    does: "`startup`. Needs Sys.Modify on `/`.",
    shape: "startup",
  },
  { field: "highAvailability.enabled", change: "Live", does: watched },
  {
    field: "highAvailability.group",
    change: "Live",
    does: "`group`, up to 8.4. Proxmox VE 9 has rules in its place: refused there.",
  },
  { field: "highAvailability.maxRestarts", change: "Live", does: "`max_restart`." },
  { field: "highAvailability.maxRelocations", change: "Live", does: "`max_relocate`." },
  {
    field: "deletionProtection",
    change: "Live",
    does: "`protection`: the server refuses to remove the machine or a disk of it.",
  },
];

const policies: readonly FieldLine[] = [
  {
    field: "powerState",
    change: "Own",
    does: "`start`, `shutdown`, `stop`; Suspended is `suspend` with `todisk`.",
  },
  { field: "shutdown.*", change: "Own", does: "`timeout` of `shutdown`; then `stop`." },
  {
    field: "updatePolicy",
    change: "Own",
    does: "Decides when the changes of this table are made.",
  },
  { field: "driftPolicy", change: "Own", does: "Decides what becomes of changes made by hand." },
  { field: "onMissing", change: "Own", does: "Decides what becomes of a machine that is gone." },
  { field: "deletionPolicy", change: "Own", does: "Decides what becomes of it with the object." },
  { field: "externalId", change: "Impossible", does: "The VMID." },
  { field: "adopt", change: "Own", does: "Counts until the machine is ours." },
];

/** Every field of VirtualMachine.spec, with what Proxmox does with it. */
export const fieldTable: readonly FieldLine[] = [...place, ...hardwareFields, ...seed, ...policies];
