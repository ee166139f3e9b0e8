import type { ProxmoxModel } from "../../sim/index.ts";
import { sagaName as name } from "./saga-person.ts";

/** What others have: a machine named like ours, in a pool and highly available, and a template. */
export function addStrangers(proxmox: ProxmoxModel): void {
  const { state } = proxmox.cluster;
  const key = "pve1:rpool/data";
  const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: 0 };
  const disk = { content: "images", format: "raw", vmid: 100, ...sizes } as const;
  const left = { content: "images", format: "raw", vmid: 777, ...sizes } as const;
  state.volumes[key] = [
    ...(state.volumes[key] ?? []),
    { name: "vm-100-disk-0", ...disk },
    { name: "vm-777-disk-0", ...left },
    { name: "base-900-disk-0", ...disk, vmid: 900, data: "debian-12" },
  ];
  const text = `name: ${name}\nmemory: 512\nscsi0: local-zfs:vm-100-disk-0,size=1G\n`;
  proxmox.writeGuestFile("pve1", 100, text);
  const template = "name: template\nmemory: 512\ntemplate: 1\n";
  const disk0 = "scsi0: local-zfs:base-900-disk-0,size=1G\n";
  proxmox.writeGuestFile("pve1", 900, `${template}${disk0}`);
  state.pools.push({ poolid: "prod", vms: [100], storages: [] });
  state.ha["vm:100"] = { state: "stopped" };
}
