import type { CpuShape, MemoryShape } from "../../../hypervisor/index.ts";
import {
  formatProperties,
  parseProperties,
  property,
  withProperties,
} from "../wire/property-string.ts";
import type { ConfigChange } from "./config.ts";
import { mebibyte } from "./sizes.ts";
import { flag, numberOf, type Values } from "./values.ts";

export function writeCpu(cpu: CpuShape, current: Values): ConfigChange {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  if (cpu.cores !== undefined) set["cores"] = String(cpu.cores);
  if (cpu.sockets !== undefined) set["sockets"] = String(cpu.sockets);
  if (cpu.weight !== undefined) set["cpuunits"] = String(cpu.weight);
  if (cpu.numa !== undefined) set["numa"] = flag(cpu.numa);
  if (cpu.hostCpus !== undefined) set["affinity"] = cpu.hostCpus;
  if (cpu.limitMillicores === 0) remove.push("cpulimit");
  else if (cpu.limitMillicores !== undefined) {
    set["cpulimit"] = String(cpu.limitMillicores / 1000);
  }
  if (cpu.model !== undefined || cpu.features !== undefined) set["cpu"] = cpuType(cpu, current);
  return { set, remove };
}

/** `host,flags=+aes;-pcid`. The model may also be written as `cputype=host`. */
function cpuType(cpu: CpuShape, current: Values): string {
  const properties = parseProperties(current["cpu"] ?? "", "cputype");
  const flags = cpu.features
    ?.map(({ name, isEnabled }) => `${isEnabled ? "+" : "-"}${name}`)
    .join(";");
  const changed = withProperties(properties, {
    // kvm64 is what Proxmox itself takes where nothing is said.
    cputype: cpu.model ?? property(properties, "cputype") ?? "kvm64",
    ...(flags === undefined ? {} : { flags: flags === "" ? undefined : flags }),
  });
  return formatProperties(changed, "cputype");
}

export function readCpu(values: Values): CpuShape {
  const properties = parseProperties(values["cpu"] ?? "", "cputype");
  const model = property(properties, "cputype");
  const flags = property(properties, "flags");
  const limit = numberOf(values["cpulimit"]);
  const weight = numberOf(values["cpuunits"]);
  const hostCpus = values["affinity"];
  return {
    cores: numberOf(values["cores"]) ?? 1,
    sockets: numberOf(values["sockets"]) ?? 1,
    ...(model === undefined ? {} : { model }),
    ...(flags === undefined ? {} : { features: flags.split(";").filter(Boolean).map(feature) }),
    limitMillicores: Math.round((limit ?? 0) * 1000),
    ...(weight === undefined ? {} : { weight }),
    numa: values["numa"] === "1",
    ...(hostCpus === undefined ? {} : { hostCpus }),
  };
}

function feature(text: string): { name: string; isEnabled: boolean } {
  return { name: text.replace(/^[+-]/, ""), isEnabled: !text.startsWith("-") };
}

/** Proxmox counts memory in MiB; what is between two of them is rounded up. */
export function writeMemory(memory: MemoryShape): ConfigChange {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  if (memory.sizeBytes !== undefined) set["memory"] = mebibytes(memory.sizeBytes);
  if (memory.weight !== undefined) set["shares"] = String(memory.weight);
  if (memory.ballooning === false) set["balloon"] = "0";
  else if (memory.minimumBytes !== undefined) set["balloon"] = mebibytes(memory.minimumBytes);
  else if (memory.ballooning === true) remove.push("balloon");
  return { set, remove };
}

/** The size is `4096`, or since 8.1 also `current=4096`; 512 where nothing is said. */
export function readMemory(values: Values): MemoryShape {
  const properties = parseProperties(values["memory"] ?? "512", "current");
  const size = numberOf(property(properties, "current")) ?? 512;
  const balloon = numberOf(values["balloon"]);
  const weight = numberOf(values["shares"]);
  return {
    sizeBytes: size * mebibyte,
    ballooning: balloon !== 0,
    ...(balloon === undefined || balloon === 0 ? {} : { minimumBytes: balloon * mebibyte }),
    ...(weight === undefined ? {} : { weight }),
  };
}

function mebibytes(bytes: number): string {
  return String(Math.ceil(bytes / mebibyte));
}
