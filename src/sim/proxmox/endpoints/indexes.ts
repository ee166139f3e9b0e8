import type { Release } from "../release.ts";

/** What the index of a node lists; it names more than this simulator serves. */
export function nodeIndex(release: Release): string[] {
  const all =
    "aplinfo apt capabilities ceph certificates config disks dns firewall hardware hosts journal lxc " +
    "migrateall netstat network qemu query-oci-repo-tags query-url-metadata replication report rrd " +
    "rrddata scan sdn services spiceshell startall status stopall storage subscription suspendall " +
    "syslog tasks termproxy time version vncshell vzdump wakeonlan";
  const since92 = new Set(["query-oci-repo-tags"]);
  const since84 = new Set(["migrateall", "suspendall"]);
  return all.split(" ").filter((name) => {
    if (since92.has(name)) return release === "9.2";
    return !since84.has(name) || release !== "7.4";
  });
}

export const guestIndex: readonly string[] = (
  "agent cloudinit config firewall migrate monitor move mtunnel pending remote_migrate resize rrd " +
  "rrddata sendkey snapshot spiceproxy status termproxy unlink vncproxy"
).split(" ");

export const powerIndex: readonly string[] =
  "current reboot reset shutdown start stop suspend".split(" ");

export function storageIndex(release: Release): string[] {
  const names = [
    "content",
    "download-url",
    "file-restore",
    "prunebackups",
    "rrd",
    "rrddata",
    "status",
    "upload",
  ];
  if (release !== "7.4") names.push("import-metadata");
  if (release === "9.2") names.push("identity", "oci-registry-pull");
  return names.sort();
}
