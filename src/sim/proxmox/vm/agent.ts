import type { Cluster } from "../cluster.ts";
import { type Call, vmidOf } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { type Process, work } from "../process.ts";
import { agentIsEnabled } from "./hardware.ts";

/** GET …/agent/network-get-interfaces */
export function* agentInterfaces(call: Call): Process<unknown> {
  yield* demandAgent(call);
  const config = call.cluster.readGuest(call.node, vmidOf(call));
  const nets = [...config.main].filter(([key]) => /^net\d+$/.test(key));
  const cards = nets.map(([key, text], index) => ({
    name: `eth${index}`,
    "hardware-address": (/=([0-9A-Fa-f:]{17})/.exec(text)?.[1] ?? "").toLowerCase(),
    "ip-addresses": [
      {
        "ip-address": addressOf(vmidOf(call), config.main.get(key.replace("net", "ipconfig"))),
        "ip-address-type": "ipv4",
        prefix: 24,
      },
    ],
  }));
  return { result: [loopback, ...cards] };
}

const loopback = {
  name: "lo",
  "hardware-address": "00:00:00:00:00:00",
  "ip-addresses": [{ "ip-address": "127.0.0.1", "ip-address-type": "ipv4", prefix: 8 }],
};

/** The address that cloud-init was told, or one that a DHCP server would give. */
function addressOf(vmid: number, ipconfig: string | undefined): string {
  const fixed = /(?:^|,)ip=(\d+\.\d+\.\d+\.\d+)\//.exec(ipconfig ?? "")?.[1];
  return fixed ?? `192.0.2.${(vmid % 253) + 1}`;
}

/** POST …/agent/ping, and whatever else only needs an agent that answers. */
export function* agentPing(call: Call): Process<unknown> {
  yield* demandAgent(call);
  return { result: {} };
}

/** Throws unless an agent answers. A silent one holds the caller up for three seconds. */
function* demandAgent(call: Call): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = cluster.readGuest(node, vmid);
  yield* cluster.step("ask agent");
  if (!agentIsEnabled(config)) throw new PveError("No QEMU guest agent configured");
  if (!cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} is not running`);
  const answer = agentOf(cluster, vmid);
  if (answer === "running") return;
  if (answer === "silent") yield* work("agent is silent", cluster.timing.agentStallMs);
  throw new PveError("QEMU guest agent is not running");
}

function agentOf(cluster: Cluster, vmid: number): "running" | "silent" | "absent" {
  const machine = cluster.machine(vmid);
  const guest = machine?.guest;
  if (machine === undefined || guest === undefined) return "absent";
  const isUp = cluster.clock.nowMs() - machine.startedMs >= guest.agentAfterMs;
  return guest.agent === "running" && !isUp ? "absent" : guest.agent;
}
