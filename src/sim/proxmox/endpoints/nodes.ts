import { type Call, type Endpoint, immediate } from "../endpoint.ts";
import { nodeRow } from "./cluster.ts";
import { nodeIndex } from "./indexes.ts";
import { nodeFileEndpoints } from "./node-files.ts";

function status({ cluster, node }: Call): unknown {
  const found = cluster.node(node);
  const nowMs = cluster.clock.nowMs();
  const free = found.memoryBytes * 0.75;
  return {
    uptime: Math.floor((nowMs - found.bootedMs) / 1e3),
    cpu: 0.02,
    wait: 0,
    idle: 0,
    loadavg: ["0.10", "0.12", "0.09"],
    kversion: "Linux",
    pveversion: `pve-manager/${cluster.quirks.version}/${cluster.quirks.repoId}`,
    cpuinfo: {
      cpus: found.cpus,
      cores: found.cpus,
      sockets: 1,
      model: "Simulated",
      mhz: "2400",
      hvm: "1",
    },
    memory: {
      total: found.memoryBytes,
      free,
      used: found.memoryBytes - free,
    },
    swap: {
      total: 0,
      free: 0,
      used: 0,
    },
    rootfs: {
      total: 64 * 1024 ** 3,
      used: 8 * 1024 ** 3,
      avail: 56 * 1024 ** 3,
      free: 56 * 1024 ** 3,
    },
  };
}

function network({ cluster, node, parameters }: Call): unknown {
  const found = cluster.node(node);
  const bridges = found.bridges.map((iface, index) => ({
    iface,
    type: "bridge",
    active: 1,
    autostart: 1,
    method: "static",
    method6: "manual",
    bridge_ports: `eno${index + 1}`,
    bridge_stp: "off",
    bridge_fd: "0",
    priority: index + 2,
    ...(index === 0
      ? {
          address: found.address,
          netmask: "24",
          cidr: `${found.address}/24`,
        }
      : {}),
    families: ["inet"],
  }));
  const card = { iface: "eno1", type: "eth", active: 1, exists: 1, method: "manual" };
  const cards = [{ ...card, method6: "manual", families: ["inet"], priority: 1 }];
  const { type } = parameters;
  if (type === undefined) return [...bridges, ...cards];
  return [...bridges, ...cards].filter((iface) => {
    return iface.type === type || (type === "any_bridge" && iface.type === "bridge");
  });
}

/** Two of a node's certificates; the first is the cluster's own, the same on every node. */
function certificates({ cluster, node }: Call): unknown {
  const issuer = "/CN=Proxmox Virtual Environment/OU=sim/O=PVE Cluster Manager CA";
  const root = { filename: "pve-root-ca.pem", fingerprint: cluster.state.rootFingerprint };
  const key = { "public-key-type": "id-ecPublicKey", "public-key-bits": 256 };
  return [
    { ...root, ...key, issuer, subject: issuer, san: [] },
    { filename: "pve-ssl.pem", ...key, issuer, subject: `/OU=PVE Cluster Node/CN=${node}` },
  ];
}

export const nodeEndpoints: Readonly<Record<string, Endpoint>> = {
  ...nodeFileEndpoints,
  "GET /nodes": immediate((call) =>
    call.cluster.state.nodes.map((node) => nodeRow(call, node, "fingerprint")),
  ),
  "GET /nodes/{node}": immediate(({ cluster }) =>
    nodeIndex(cluster.state.release).map((name) => ({ name })),
  ),
  "GET /nodes/{node}/status": immediate(status),
  "GET /nodes/{node}/network": immediate(network),
  "GET /nodes/{node}/certificates/info": immediate(certificates),
  "GET /nodes/{node}/version": immediate(({ cluster }) => {
    const { version, repoId } = cluster.quirks;
    return { version, release: cluster.state.release, repoid: repoId };
  }),
};
