import type { Release } from "../release.ts";
import { type Call, type Endpoint, immediate } from "../endpoint.ts";
import { cpuModels } from "../schema/cpu-models.ts";

/** Machine types of every QEMU since 2.4 up to the node's own, newest first. */
function machines({ cluster }: Call): unknown {
  const { release } = cluster.state;
  return (["i440fx", "q35"] as const).flatMap((type) =>
    versionsOf(release).map((version) => ({
      id: `pc-${type}-${version}`,
      type,
      version,
      ...(release === "7.4" ? {} : { changes: null }),
    })),
  );
}

/** QEMU counts to 2 between two new first numbers; pve numbers come behind where there are any. */
function versionsOf(release: Release): string[] {
  const last = { "7.4": [7, 2], "8.4": [9, 2], "9.2": [10, 1] } as const;
  const [major, minor] = last[release];
  const versions: string[] = [];
  for (let first = major; first >= 4; first--) {
    const from = first === major ? minor : 2;
    for (let second = from; second >= 0; second--) versions.push(`${first}.${second}`);
  }
  return versions;
}

function cpus({ cluster }: Call): unknown {
  return cpuModels(cluster.state.release).map((name) => ({
    name,
    custom: 0,
    vendor: vendorOf(name),
  }));
}

function vendorOf(name: string): string {
  if (/^(EPYC|Opteron|phenom|athlon)/.test(name)) return "AuthenticAMD";
  return /^(kvm|qemu|host|max|x86-64)/.test(name) ? "default" : "GenuineIntel";
}

const flags = ["nested-virt", "md-clear", "pcid", "spec-ctrl", "ssbd", "ibpb", "virt-ssbd", "aes"];

/** What a node's QEMU can do. */
export const capabilityEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /nodes/{node}/capabilities": immediate(() => [{ name: "qemu" }]),
  "GET /nodes/{node}/capabilities/qemu": immediate(({ cluster }) => {
    const more = cluster.state.release === "9.2" ? ["cpu-flags", "migration"] : [];
    return ["cpu", "machines", ...more].map((name) => ({ name }));
  }),
  "GET /nodes/{node}/capabilities/qemu/cpu": immediate(cpus),
  "GET /nodes/{node}/capabilities/qemu/cpu-flags": immediate(() =>
    flags.map((name) => ({ name, description: "" })),
  ),
  "GET /nodes/{node}/capabilities/qemu/machines": immediate(machines),
  "GET /nodes/{node}/capabilities/qemu/migration": immediate(() => ({ "has-dbus-vmstate": 1 })),
};
