import type { CloudInitShape, Failure, FirmwareShape, Shape } from "../../hypervisor/index.ts";
import { hasMappings, hasModel, hasPackageUpgrade, hasRules, type Release } from "./release.ts";
import { displayMebibytes } from "./translate/devices.ts";
import { diskRefusal } from "./translate/disks.ts";
import { isKnownHash } from "./translate/guest.ts";
import { scsiController } from "./translate/shape.ts";
import { mebibyte } from "./translate/sizes.ts";

/** What of a shape this release cannot have, each by its field. Pure. */
export function refusals(shape: Shape, release: Release): Failure[] {
  return [
    ...refuseName(shape.name),
    ...refuseParts(shape),
    ...refuseController(shape.scsiController),
    ...refuseCloudInit(shape.cloudInit ?? {}, release),
    ...refuseModel(shape.cpu?.model, release),
    ...refuseRootOnly(shape),
    ...refuseFirmware(shape.firmware ?? {}),
    ...refuseDisplay(shape),
    ...refuseDevices(shape, release),
    ...refuseGroup(shape.highAvailability?.group, release),
  ];
}

function refuseName(name: string | undefined): Failure[] {
  if (name === undefined || dnsName.test(name)) return [];
  return [wrong(`machineName: Proxmox takes a DNS name, and "${name}" is none`)];
}

function refuseParts({ disks = [], networks = [] }: Shape): Failure[] {
  return [
    ...disks.flatMap((disk) => {
      const refusal = diskRefusal(disk);
      return refusal === undefined ? [] : [wrong(`disks[${disk.name}]: ${refusal}`)];
    }),
    ...networks
      .filter(({ mtu, model = "virtio" }) => mtu !== undefined && model !== "virtio")
      .map((card) => wrong(`networks[${card.name}]: mtu can be set on the virtio model only`)),
  ];
}

function refuseController(controller: Shape["scsiController"]): Failure[] {
  if (controller === undefined || scsiController(controller) !== undefined) return [];
  return [unsupported(`devices.scsiController: Proxmox has no ${controller}`)];
}

function refuseGroup(group: string | undefined, release: Release): Failure[] {
  if (group === undefined || !hasRules(release)) return [];
  const remedy = "Leave the group out, and name the machine in a rule (Datacenter, HA, Affinity).";
  const message = "highAvailability.group: Proxmox VE 9 has rules of nodes in place of groups";
  return [{ ...unsupported(message), remedy }];
}

/** qemu-server sets these for the user root@pam alone, which a token never is. */
function refuseRootOnly({ cpu, memory }: Shape): Failure[] {
  const remedy = "Proxmox allows this to root's password login only, never to an API token.";
  const fields = [
    ...(cpu?.hostCpus === undefined ? [] : ["cpu.hostCpus"]),
    ...(memory?.hugePages === undefined ? [] : ["memory.hugePages"]),
  ];
  return fields.map((field) => {
    return { ...unsupported(`${field}: Proxmox does not let a token set it`), remedy };
  });
}

function refuseFirmware({ type, secureBoot }: FirmwareShape): Failure[] {
  if (secureBoot !== true || type === "UEFI") return [];
  return [wrong("firmware.secureBoot: it needs firmware.type UEFI")];
}

function refuseDisplay({ display, serialConsole }: Shape): Failure[] {
  const { least, most } = displayMebibytes;
  const mebibytes = (display?.memoryBytes ?? least * mebibyte) / mebibyte;
  return [
    ...(mebibytes < least || mebibytes > most
      ? [wrong(`devices.display.memory: Proxmox takes ${least}Mi to ${most}Mi`)]
      : []),
    ...(display?.type === "Serial" && serialConsole === false
      ? [wrong("devices.display.type: Serial needs devices.serialConsole")]
      : []),
  ];
}

function refuseDevices({ pci = [], usb = [], machineType }: Shape, release: Release): Failure[] {
  const named = [
    ...pci.map(({ name }) => `devices.pci[${name}]`),
    ...usb.map(({ name }) => `devices.usb[${name}]`),
  ];
  const isOther = machineType !== undefined && !machineType.includes("q35");
  const express = isOther ? pci.filter(({ pcie }) => pcie === true) : [];
  return [
    ...(hasMappings(release) ? [] : named).map((field) => {
      return unsupported(`${field}: Proxmox VE ${release.text} has no resource mappings`);
    }),
    ...express.map(({ name }) => {
      return wrong(`devices.pci[${name}].pcie: it needs the machine type q35`);
    }),
  ];
}

function refuseModel(model: string | undefined, release: Release): Failure[] {
  if (model === undefined || hasModel(release, model)) return [];
  return [unsupported(`cpu.model: Proxmox VE ${release.text} does not know ${model}`)];
}

function refuseCloudInit(cloudInit: CloudInitShape, release: Release): Failure[] {
  const { passwordHash, upgradePackages } = cloudInit;
  const isHashRefused = passwordHash !== undefined && !isKnownHash(passwordHash);
  const isUpgradeRefused = upgradePackages !== undefined && !hasPackageUpgrade(release);
  return [
    ...(isHashRefused
      ? [wrong("cloudInit.user.passwordHash: Proxmox takes $1$, $2a$, $2y$, $5$ and $6$ only")]
      : []),
    ...(isUpgradeRefused
      ? [unsupported(`cloudInit.upgradePackages: Proxmox VE ${release.text} cannot say it`)]
      : []),
  ];
}

const dnsName =
  /^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*$/;

function wrong(message: string): Failure {
  return { category: "ConfigurationError", message };
}

function unsupported(message: string): Failure {
  return { category: "APINotSupported", message };
}
