import { createHash } from "node:crypto";
import { type Call, type Endpoint, immediate } from "../endpoint.ts";

/** The domain of every node here. */
const domain = "sim.invalid";
const nameServer = "192.0.2.1";

/** GET /nodes/{node}/time: the nodes' time zone is UTC. */
function time({ cluster, node }: Call): unknown {
  const seconds = Math.floor(cluster.nodeTimeMs(node) / 1000);
  return { timezone: "UTC", time: seconds, localtime: seconds };
}

/** GET /nodes/{node}/hosts: every node knows itself by name. */
function hosts({ cluster, node }: Call): unknown {
  const { address, name } = cluster.node(node);
  const lines = [
    "127.0.0.1 localhost.localdomain localhost",
    `${address} ${name}.${domain} ${name}`,
  ];
  const data = `${lines.join("\n")}\n`;
  return { data, digest: createHash("sha1").update(data).digest("hex") };
}

/** What a node says of its own files and clock. */
export const nodeFileEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /nodes/{node}/dns": immediate(() => ({ search: domain, dns1: nameServer })),
  "GET /nodes/{node}/hosts": immediate(hosts),
  "GET /nodes/{node}/time": immediate(time),
  // Containers are not modelled: a node has none.
  "GET /nodes/{node}/lxc": immediate(() => []),
};
