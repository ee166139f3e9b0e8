import type { Cluster } from "../cluster.ts";
import type { GuestConfig } from "../config-file.ts";
import { type Call, type Endpoint, isSet, vmidOf } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { type Process, work } from "../process.ts";
import type { GuestBehaviour } from "../state.ts";
import { bootDiskBytes, vcpusOf } from "./hardware.ts";
import { powerDown } from "./machine.ts";

/** A guest whose agent answers. */
interface Answering {
  readonly call: Call;
  readonly config: GuestConfig;
  readonly guest: GuestBehaviour;
}

/** Commands without parameters, by name; what they return is the result. */
const commands: Readonly<Record<string, (guest: Answering) => unknown>> = {
  ping: () => ({}),
  info: () => ({ version: "9.2.0", supported_commands: infoCommands() }),
  "get-time": ({ call }) => call.cluster.clock.nowMs() * 1_000_000,
  "get-timezone": () => ({ offset: 0, zone: "UTC" }),
  "get-users": () => [],
  "get-host-name": ({ config, call }) => ({ "host-name": hostName(config, call) }),
  "get-osinfo": () => ({
    id: "debian",
    name: "Debian GNU/Linux",
    version: "12 (bookworm)",
    "version-id": "12",
    "pretty-name": "Debian GNU/Linux 12 (bookworm)",
    "kernel-release": "6.1.0-28-cloud-amd64",
    "kernel-version": "#1 SMP PREEMPT_DYNAMIC Debian",
    machine: "x86_64",
  }),
  "get-fsinfo": ({ config }) => [
    {
      name: "sda1",
      mountpoint: "/",
      type: "ext4",
      disk: [],
      "total-bytes": bootDiskBytes(config),
      "used-bytes": Math.floor(bootDiskBytes(config) / 4),
    },
  ],
  "get-vcpus": ({ config }) =>
    Array.from({ length: vcpusOf(config) }, (_, id) => ({
      "logical-id": id,
      online: true,
      "can-offline": id > 0,
    })),
  "get-memory-blocks": () => [],
  "get-memory-block-info": () => ({ size: 128 * 1024 ** 2 }),
  "network-get-interfaces": ({ call, config }) => [loopback, ...cardsOf(call, config)],
  "fsfreeze-status": ({ guest }) => (guest.isFrozen === true ? "frozen" : "thawed"),
  "fsfreeze-freeze": ({ guest }) => {
    guest.isFrozen = true;
    return 1;
  },
  "fsfreeze-thaw": ({ guest }) => {
    const count = guest.isFrozen === true ? 1 : 0;
    delete guest.isFrozen;
    return count;
  },
  fstrim: () => ({ paths: [{ path: "/", trimmed: 0, minimum: 0 }] }),
  shutdown: ({ call }) => {
    const place = { cluster: call.cluster, node: call.node, vmid: vmidOf(call) };
    const machine = call.cluster.machine(place.vmid);
    if (machine !== undefined) powerDown(place, machine);
    return null;
  },
  "suspend-ram": ({ call }) => pause(call),
  "suspend-hybrid": ({ call }) => pause(call),
  "suspend-disk": ({ call }) => pause(call),
};

export const agentCommands: readonly string[] = Object.keys(commands);

function infoCommands(): object[] {
  return agentCommands.map((name) => ({
    name: `guest-${name}`,
    enabled: true,
    "success-response": true,
  }));
}

function hostName({ main }: GuestConfig, call: Call): string {
  return (main.get("name") ?? `VM${vmidOf(call)}`).split(".")[0] ?? "";
}

function pause({ cluster, node, parameters }: Call): null {
  const vmid = Number(parameters["vmid"]);
  const machine = cluster.machine(vmid);
  if (machine !== undefined) cluster.setMachine(node, vmid, { ...machine, isPaused: true });
  return null;
}

const loopback = {
  name: "lo",
  "hardware-address": "00:00:00:00:00:00",
  "ip-addresses": [{ "ip-address": "127.0.0.1", "ip-address-type": "ipv4", prefix: 8 }],
};

function cardsOf(call: Call, config: GuestConfig): object[] {
  const nets = [...config.main].filter(([key]) => /^net\d+$/.test(key));
  return nets.map(([key, text], index) => ({
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
}

/** The address that cloud-init was told, or one that a DHCP server would give. */
function addressOf(vmid: number, ipconfig: string | undefined): string {
  const fixed = /(?:^|,)ip=(\d+\.\d+\.\d+\.\d+)\//.exec(ipconfig ?? "")?.[1];
  return fixed ?? `192.0.2.${(vmid % 253) + 1}`;
}

/** …/agent/COMMAND, and the old …/agent with the command as a parameter. */
export function agentCommand(name?: string): Endpoint {
  return function* (call) {
    const answering = yield* demandAgent(call);
    const command = commands[name ?? call.parameters["command"] ?? ""];
    return { result: command === undefined ? {} : command(answering) };
  };
}

const firstPid = 1_000;

/** POST …/agent/exec: runs a program in the guest; what it prints is asked for later. */
export function* agentExec(call: Call): Process<unknown> {
  const { command = "", "input-data": input } = call.parameters;
  const { guest } = yield* demandAgent(call);
  if (command === "" && input === undefined) {
    throw new PveError("command or input-data (or both) required");
  }
  const programs = guest.programs ?? {};
  guest.programs = programs;
  const pid = firstPid + Object.keys(programs).length;
  const [path = "", ...words] = command.split("\0");
  const isEcho = /(^|\/)echo$/.test(path);
  programs[String(pid)] = { outData: isEcho ? `${words.join(" ")}\n` : (input ?? ""), exitcode: 0 };
  return { pid };
}

/** GET …/agent/exec-status */
export function* agentExecStatus(call: Call): Process<unknown> {
  const { guest } = yield* demandAgent(call);
  const { pid = "" } = call.parameters;
  const program = guest.programs?.[pid];
  if (program === undefined) throw new PveError(`Agent error: PID ${pid} does not exist`);
  const { outData, exitcode } = program;
  return { exited: 1, exitcode, ...(outData === "" ? {} : { "out-data": outData }) };
}

/** GET …/agent/file-read */
export function* agentFileRead(call: Call): Process<unknown> {
  const { guest } = yield* demandAgent(call);
  const { file = "" } = call.parameters;
  const content = guest.files?.[file];
  if (content === undefined) {
    const why = "No such file or directory";
    throw new PveError(`Agent error: failed to open file '${file}' (mode: 'r'): ${why}`);
  }
  return { content, "bytes-read": Buffer.byteLength(content) };
}

/** POST …/agent/file-write: what is sent is text, or base64 if the caller has encoded it. */
export function* agentFileWrite(call: Call): Process<unknown> {
  const { guest } = yield* demandAgent(call);
  const { file = "", content = "", encode = "1" } = call.parameters;
  const text = isSet(encode) ? content : Buffer.from(content, "base64").toString("utf8");
  guest.files = { ...guest.files, [file]: text };
  return null;
}

/** POST …/agent/set-user-password */
export function* agentPassword(call: Call): Process<unknown> {
  yield* demandAgent(call);
  return { result: {} };
}

/** Throws unless an agent answers. A silent one holds the caller up for three seconds. */
function* demandAgent(call: Call): Process<Answering> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = cluster.readGuest(node, vmid);
  yield* cluster.step("ask agent");
  if (!config.main.has("agent")) throw new PveError("No QEMU guest agent configured");
  if (!cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} is not running`);
  const guest = cluster.machine(vmid)?.guest;
  const answer = agentOf(cluster, vmid);
  if (answer === "running" && guest !== undefined) return { call, config, guest };
  if (answer === "silent") yield* work("agent is silent", cluster.timing.agentStallMs);
  throw new PveError("QEMU guest agent is not running");
}

function agentOf(cluster: Cluster, vmid: number): GuestBehaviour["agent"] {
  const machine = cluster.machine(vmid);
  const guest = machine?.guest;
  if (machine === undefined || guest === undefined) return "absent";
  // A machine that does not run cannot answer either.
  if (machine.isPaused && guest.agent === "running") return "silent";
  const isUp = cluster.clock.nowMs() - machine.startedMs >= guest.agentAfterMs;
  return guest.agent === "running" && !isUp ? "absent" : guest.agent;
}
