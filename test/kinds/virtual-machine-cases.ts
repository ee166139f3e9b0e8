import { made } from "./case.ts";
import type { Case } from "./case.ts";

export const vm = made(
  "VirtualMachine",
  {
    hypervisorRef: { name: "demo" },
    cpu: { cores: 2 },
    memory: { size: "2Gi" },
    source: { image: { name: "debian-12" } },
    disks: [{ name: "root", size: "20Gi" }],
    networks: [{ name: "lan", bridge: "vmbr0" }],
  },
  "default",
);

export const vmCases: readonly Case[] = [
  { name: "a plain machine", base: vm, edits: {} },
  {
    name: "two sources",
    base: vm,
    edits: { "spec.source.blank": {} },
    refused: [
      "spec.source",
      "source must have exactly one of image, clone, importedDisk and blank",
    ],
  },
  {
    name: "an empty source",
    base: vm,
    edits: { "spec.source": {} },
    refused: [
      "spec.source",
      "source must have exactly one of image, clone, importedDisk and blank",
    ],
  },
  {
    name: "no source",
    base: vm,
    edits: { "spec.source": undefined },
    refused: ["spec.source", "source is missing"],
  },
  {
    name: "no source, but adopt: Only",
    base: vm,
    edits: { "spec.source": undefined, "spec.externalId": "200", "spec.adopt": "Only" },
  },
  {
    name: "no source with adopt: IfPresent",
    base: vm,
    edits: { "spec.source": undefined, "spec.externalId": "200", "spec.adopt": "IfPresent" },
    refused: ["spec.source", "source is missing"],
  },
  {
    name: "adopt without externalId",
    base: vm,
    edits: { "spec.adopt": "IfPresent" },
    refused: ["spec.externalId", "adopt needs externalId"],
  },
  {
    name: "adopt: Only that recreates",
    base: vm,
    edits: { "spec.adopt": "Only", "spec.externalId": "200", "spec.onMissing": "Recreate" },
    refused: ["spec.onMissing", "adopt: Only never makes a machine"],
  },
  {
    name: "no size",
    base: vm,
    edits: { "spec.cpu": undefined },
    refused: ["spec", "say how large the machine is"],
  },
  {
    name: "a class",
    base: vm,
    edits: { "spec.cpu": undefined, "spec.memory": undefined, "spec.classRef": { name: "small" } },
  },
  {
    name: "a bare number as size",
    base: vm,
    edits: { "spec.disks.0.size": "20" },
    refused: ["spec.disks[0].size", "should match"],
  },
  {
    name: "the filled disk is not declared",
    base: vm,
    edits: { "spec.disks": [{ name: "data", size: "1Gi" }] },
    refused: ["spec.source.image", "source.image.disk must be the name of an entry of disks"],
  },
  {
    name: "an empty disk without size",
    base: vm,
    edits: { "spec.disks": [{ name: "root" }, { name: "data" }] },
    refused: ["spec.disks", "a disk that nothing fills needs a size"],
  },
  { name: "a filled disk without size", base: vm, edits: { "spec.disks": [{ name: "root" }] } },
  {
    name: "two disks of one name",
    base: vm,
    edits: { "spec.disks": [{ name: "root" }, { name: "root" }] },
    refused: ["spec.disks[1]", ""],
  },
  {
    name: "a disk that shrinks",
    base: vm,
    before: { "spec.disks.0.size": "1Ti" },
    edits: { "spec.disks.0.size": "900Gi" },
    refused: ["spec.disks[0].size", "a disk cannot shrink"],
  },
  {
    name: "a disk that grows, in other units",
    base: vm,
    before: { "spec.disks.0.size": "1024Mi" },
    edits: { "spec.disks.0.size": "1.5Gi" },
  },
  {
    name: "a disk that is destroyed and kept",
    base: vm,
    edits: { "spec.disks.0.state": "Absent", "spec.disks.0.onDelete": "Retain" },
    refused: ["spec.disks[0].state", "state: Absent destroys the disk"],
  },
  {
    name: "a card without network",
    base: vm,
    edits: { "spec.networks": [{ name: "lan" }] },
    refused: ["spec.networks[0]", "exactly one of networkRef and bridge"],
  },
  {
    name: "a VLAN on a VMNetwork",
    base: vm,
    edits: { "spec.networks": [{ name: "lan", networkRef: { name: "lab" }, vlan: 3 }] },
    refused: ["spec.networks[0].networkRef", "vlan and trunks go with bridge"],
  },
  {
    name: "one MAC address twice, in two spellings",
    base: vm,
    edits: {
      "spec.networks": [
        { name: "a", bridge: "br0", macAddress: "52:54:00:AA:00:01" },
        { name: "b", bridge: "br0", macAddress: "52:54:00:aa:00:01" },
      ],
    },
    refused: ["spec.networks", "two network cards have the same macAddress"],
  },
  {
    name: "a multicast MAC address",
    base: vm,
    edits: { "spec.networks.0.macAddress": "53:54:00:aa:00:01" },
    refused: ["spec.networks[0].macAddress", "should match"],
  },
  {
    name: "memory that shrinks above itself",
    base: vm,
    edits: { "spec.memory.minimum": "4Gi" },
    refused: ["spec.memory.minimum", "minimum cannot be more than size"],
  },
  {
    name: "ballooning without balloon",
    base: vm,
    edits: { "spec.memory.minimum": "1Gi", "spec.memory.ballooning": false },
    refused: ["spec.memory.minimum", "minimum needs the balloon device"],
  },
  {
    name: "secure boot on BIOS",
    base: vm,
    edits: { "spec.firmware": { type: "BIOS", secureBoot: true } },
    refused: ["spec.firmware.secureBoot", "secureBoot needs firmware of type UEFI"],
  },
  {
    name: "half a core",
    base: vm,
    edits: { "spec.cpu.limit": "500m" },
  },
  { name: "a whole number of cores", base: vm, edits: { "spec.cpu.limit": 2 } },
  {
    name: "a boot order that names nothing",
    base: vm,
    edits: { "spec.bootOrder": [{ disk: "rot" }] },
    refused: ["spec.bootOrder", "every entry of bootOrder must name"],
  },
  {
    name: "a boot order",
    base: vm,
    edits: { "spec.bootOrder": [{ disk: "root" }, { network: "lan" }] },
  },
  {
    name: "addresses for a card that is not there",
    base: vm,
    edits: { "spec.cloudInit.networks": [{ name: "wan", ipv4: { method: "DHCP" } }] },
    refused: ["spec.cloudInit.networks", "every name in cloudInit.networks"],
  },
  {
    name: "a static address that is missing",
    base: vm,
    edits: { "spec.cloudInit.networks": [{ name: "lan", ipv4: { method: "Static" } }] },
    refused: ["spec.cloudInit.networks[0].ipv4.address", "Static needs an address"],
  },
  {
    name: "a user beside a user-data file on the hypervisor",
    base: vm,
    edits: {
      "spec.cloudInit": { user: { name: "ops" }, userData: { file: "local:snippets/x.yaml" } },
    },
    refused: ["spec.cloudInit.userData", "cannot be added to a userData file"],
  },
  {
    name: "two kinds of user-data",
    base: vm,
    edits: {
      "spec.cloudInit.userData": { inline: "#cloud-config", file: "local:snippets/x.yaml" },
    },
    refused: ["spec.cloudInit.userData", "exactly one of inline, secretRef and file"],
  },
  {
    name: "a volume id that climbs",
    base: vm,
    edits: { "spec.cloudInit.userData": { file: "local:snippets/../../etc/shadow" } },
    refused: ["spec.cloudInit.userData.file", "cannot contain '..'"],
  },
  {
    name: "a storage that opens another parameter",
    base: vm,
    edits: { "spec.disks.0.storage": "local,import-from=/etc/shadow" },
    refused: ["spec.disks[0].storage", "should match"],
  },
  {
    name: "an imported disk by a path that climbs",
    base: vm,
    edits: { "spec.source": { importedDisk: { diskId: "d1", path: "/srv/../etc/shadow" } } },
    refused: ["spec.source.importedDisk.path", "path cannot contain '..'"],
  },
  {
    name: "a migration that was none",
    base: vm,
    edits: { "spec.source": { importedDisk: { diskId: "d1", migrationRef: { name: "m" } } } },
    refused: ["spec.source.importedDisk.migrationRef", "set from to migration"],
  },
  {
    name: "two things to clone",
    base: vm,
    edits: { "spec.source": { clone: { vmRef: { name: "a" }, externalId: "9000" } } },
    refused: ["spec.source.clone", "exactly one of vmRef, imageRef and externalId"],
  },
  {
    name: "a node and a choice of nodes",
    base: vm,
    edits: { "spec.placement": { node: "pve1", nodes: ["pve1", "pve2"] } },
    refused: ["spec.placement", "name one node or a choice of nodes"],
  },
  {
    name: "enforcing nothing",
    base: vm,
    edits: { "spec.placement": { mode: "Enforce" } },
    refused: ["spec.placement.mode", "needs something to enforce"],
  },
  {
    name: "another hypervisor before the machine stood",
    base: vm,
    before: { "status.externalId": "100" },
    edits: { "spec.hypervisorRef.name": "rack-b", "status.externalId": "100" },
  },
  {
    name: "another hypervisor after the machine stood",
    base: vm,
    before: { "status.hypervisor": "demo" },
    edits: { "spec.hypervisorRef.name": "rack-b", "status.hypervisor": "demo" },
    refused: ["spec.hypervisorRef", "the machine stands on another hypervisor"],
  },
  {
    name: "the hypervisor to which a migration moved it",
    base: vm,
    before: { "status.hypervisor": "rack-b" },
    edits: { "spec.hypervisorRef.name": "rack-b", "status.hypervisor": "rack-b" },
  },
  {
    name: "a name that is too long for a host",
    base: vm,
    edits: { "metadata.name": "a".repeat(64) },
    refused: ["<nil>", "at most 63 characters"],
  },

  {
    name: "an imported disk for a disk that is not declared",
    base: vm,
    edits: { "spec.source": { importedDisk: { diskId: "d1", disk: "boot" } } },
    refused: ["spec.source.importedDisk", "source.importedDisk.disk must be the name"],
  },
  {
    name: "a clone for a disk that is not declared",
    base: vm,
    edits: { "spec.source": { clone: { externalId: "9000", disk: "boot" } } },
    refused: ["spec.source.clone", "source.clone.disk must be the name"],
  },
  {
    name: "a cloned disk that is not declared",
    base: vm,
    edits: {
      "spec.source": { clone: { externalId: "9000", disks: [{ name: "data", device: "scsi1" }] } },
    },
    refused: ["spec.source.clone.disks", "every name in source.clone.disks"],
  },
  {
    name: "a drive with two disks",
    base: vm,
    edits: { "spec.cdroms": [{ name: "a", imageRef: { name: "x" }, volume: "local:iso/x.iso" }] },
    refused: ["spec.cdroms[0]", "a drive takes an imageRef or a volume"],
  },
  {
    name: "a boot order entry that is two things",
    base: vm,
    edits: { "spec.bootOrder": [{ disk: "root", network: "lan" }] },
    refused: ["spec.bootOrder[0]", "names exactly one disk, cdrom or network"],
  },
  {
    name: "two network configurations",
    base: vm,
    edits: {
      "spec.cloudInit": {
        networkData: { inline: "version: 2" },
        networks: [{ name: "lan", ipv4: { method: "DHCP" } }],
      },
    },
    refused: ["spec.cloudInit", "networkData replaces networks"],
  },
  {
    name: "two passwords",
    base: vm,
    edits: {
      "spec.cloudInit.user": { passwordHash: "$6$a$b", passwordHashSecretRef: { name: "s" } },
    },
    refused: ["spec.cloudInit.user", "by passwordHash or by passwordHashSecretRef"],
  },
  {
    name: "a password that is no hash",
    base: vm,
    edits: { "spec.cloudInit.user": { passwordHash: "secret" } },
    refused: ["spec.cloudInit.user.passwordHash", "should match"],
  },
  {
    name: "a gateway with DHCP",
    base: vm,
    edits: {
      "spec.cloudInit.networks": [{ name: "lan", ipv4: { method: "DHCP", gateway: "10.0.0.1" } }],
    },
    refused: ["spec.cloudInit.networks[0].ipv4.gateway", "gateway goes with method: Static"],
  },
];
