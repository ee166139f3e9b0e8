import type { Cluster } from "../cluster.ts";
import type { GuestConfig, Section } from "../config-file.ts";
import { type Call, isSet, vmidOf } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { propertyOf } from "../schema/check.ts";
import { schemaOf } from "../schema/schema.ts";
import type { MachineState } from "../state.ts";
import { haStateOf } from "./ha.ts";
import { agentIsEnabled, bootDiskBytes, memoryBytes, vcpusOf } from "./hardware.ts";

const masked = "**********";

/** GET …/config: as it will be, or with `current` as it runs. */
export function readConfig(call: Call): unknown {
  const { cluster, node, parameters } = call;
  const config = cluster.readGuest(node, vmidOf(call));
  const section = sectionOf(config, parameters);
  return { ...typedSection(cluster, section), digest: cluster.digest(node, vmidOf(call)) };
}

function sectionOf(config: GuestConfig, parameters: Readonly<Record<string, string>>): Section {
  const { snapshot, current } = parameters;
  if (snapshot !== undefined) {
    const section = config.snapshots.get(snapshot);
    if (section === undefined) throw new PveError(`snapshot '${snapshot}' does not exist`);
    return section;
  }
  if (isSet(current)) return config.main;
  const planned: Section = new Map([...config.main, ...config.pending]);
  for (const key of config.pendingDelete.keys()) planned.delete(key);
  return planned;
}

/** A section as the API shows it: numbers are numbers, passwords are masked. */
export function typedSection(cluster: Cluster, section: Section): Record<string, unknown> {
  return Object.fromEntries([...section].map(([key, value]) => [key, typed(cluster, key, value)]));
}

const numbers = /^(template|snaptime|protection)$/;

function typed(cluster: Cluster, key: string, value: string): string | number {
  if (key === "cipassword") return masked;
  const schema = schemaOf(cluster.state.release);
  const method = schema.methods["PUT /nodes/{node}/qemu/{vmid}/config"];
  const type = method === undefined ? undefined : propertyOf(schema, method, key)?.t;
  const isNumber =
    type === "integer" || type === "number" || type === "boolean" || numbers.test(key);
  return isNumber ? Number(value) : value;
}

/** GET …/pending */
export function readPending(call: Call): unknown {
  const { cluster, node } = call;
  const config = cluster.readGuest(node, vmidOf(call));
  const keys = [...new Set([...config.main.keys(), ...config.pending.keys()])].sort();
  const rows = keys.map((key) => ({
    key,
    ...entry(cluster, "value", key, config.main),
    ...entry(cluster, "pending", key, config.pending),
    ...(config.pendingDelete.has(key) ? { delete: deletion(config, key) } : {}),
  }));
  return [...rows, { key: "digest", value: cluster.digest(node, vmidOf(call)) }];
}

function deletion(config: GuestConfig, key: string): number {
  return config.pendingDelete.get(key)?.isForced === true ? 2 : 1;
}

// oxlint-disable-next-line max-params -- four plain values, used twice above
function entry(cluster: Cluster, as: string, key: string, section: Section): object {
  const value = section.get(key);
  return value === undefined ? {} : { [as]: typed(cluster, key, value) };
}

/** GET …/status/current */
export function readStatus(call: Call): unknown {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = cluster.readGuest(node, vmid);
  const state = haStateOf(cluster, vmid);
  return {
    ...vmRow(cluster, vmid, { isFull: true }),
    ha: state === undefined ? { managed: 0 } : { managed: 1, state },
    ...(agentIsEnabled(config) ? { agent: 1 } : {}),
  };
}

/** GET /nodes/{node}/qemu: those that the caller may see. */
export function listVms({ cluster, caller, node, parameters }: Call): unknown {
  const isFull = isSet(parameters["full"]);
  return Object.entries(cluster.state.guests)
    .filter(([, file]) => file.node === node)
    .map(([vmid]) => Number(vmid))
    .filter((vmid) => cluster.rights.may(caller, `/vms/${vmid}`, { privileges: ["VM.Audit"] }))
    .map((vmid) => vmRow(cluster, vmid, { isFull }));
}

function vmRow(cluster: Cluster, vmid: number, { isFull }: { isFull: boolean }): object {
  const node = cluster.nodeOfGuest(vmid) ?? "";
  const config = cluster.readGuest(node, vmid);
  const machine = cluster.machine(vmid);
  const isRunning = machine !== undefined;
  return {
    vmid,
    name: config.main.get("name") ?? `VM ${vmid}`,
    status: isRunning ? "running" : "stopped",
    cpus: vcpusOf(config),
    maxdisk: bootDiskBytes(config),
    maxmem: memoryBytes(config),
    ...optional(config, ["lock", "tags"]),
    ...(config.main.get("template") === "1" ? { template: 1 } : {}),
    ...(isFull ? { qmpstatus: qmpStatus(machine?.isPaused) } : {}),
    ...usage(cluster, config, machine),
    ...(isFull && isRunning ? runningFields(cluster) : {}),
  };
}

/** What a machine takes: nothing while it is off. */
function usage(cluster: Cluster, config: GuestConfig, machine: MachineState | undefined): object {
  const { memhost, diskCounters } = cluster.quirks;
  const idle = { cpu: 0, disk: 0, netin: 0, netout: 0, ...(memhost ? { memhost: 0 } : {}) };
  const counters = { diskread: 0, diskwrite: 0 };
  if (machine === undefined)
    return { ...idle, mem: 0, uptime: 0, ...(diskCounters ? counters : {}) };
  const uptime = Math.floor((cluster.clock.nowMs() - machine.startedMs) / 1000);
  const used = { mem: memoryBytes(config) / 4, uptime, pid: machine.pid };
  return { ...idle, ...counters, ...used, ...(memhost ? pressure : {}) };
}

const pressure = {
  pressurecpufull: 0,
  pressurecpusome: 0,
  pressureiofull: 0,
  pressureiosome: 0,
  pressurememoryfull: 0,
  pressurememorysome: 0,
};

function qmpStatus(isPaused: boolean | undefined): string {
  if (isPaused === undefined) return "stopped";
  return isPaused ? "paused" : "running";
}

function runningFields({ quirks }: Cluster): object {
  return {
    "running-qemu": quirks.qemuVersion,
    "running-machine": `pc-i440fx-${quirks.qemuVersion.replace(/\.\d+$/, "")}+pve0`,
    "proxmox-support": { "pbs-dirty-bitmap": true },
    nics: {},
    blockstat: {},
  };
}

function optional(config: GuestConfig, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = config.main.get(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
