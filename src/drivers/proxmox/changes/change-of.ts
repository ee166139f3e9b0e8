import type { Bus, Change, Machine } from "../../../hypervisor/index.ts";
import type { FieldLine } from "./field-line.ts";
import { fieldTable } from "./table.ts";

/**
 * What a change of a field costs, by its path in a Difference: `disks[root].cache`. Of a machine
 * that is known, also by the bus that a disk is on. Pure.
 */
export function changeOf(path: string, machine?: Machine): Change {
  const line = lineOf(path.replaceAll(/\[[^\]]*\]/g, "[]"));
  // What has no line was never meant to be changed on a machine that stands.
  if (line === undefined) return { class: "Impossible", detail: `nothing is known of ${path}` };
  const isSlow = isSlowBus(busOf(path, machine));
  return { class: classOf(line, isSlow), detail: line.does };
}

function classOf({ change, onSlowBus }: FieldLine, isSlow: boolean): Change["class"] {
  if (change === "Own") return "Live";
  if (change === "Refused") return "Impossible";
  return isSlow && onSlowBus !== undefined ? onSlowBus : change;
}

/** The line of a path; else of what it is a part of. */
function lineOf(path: string): FieldLine | undefined {
  const found = fieldTable.find((line) => pathOf(line) === path);
  if (found !== undefined) return found;
  const end = Math.max(path.lastIndexOf("."), path.lastIndexOf("["));
  if (end > 0) return lineOf(path.slice(0, end));
  return fieldTable.find((line) => {
    return pathOf(line).startsWith(`${path}.`) || pathOf(line) === `${path}[]`;
  });
}

function pathOf({ field, shape }: FieldLine): string {
  return (shape ?? field).replace(/\.\*$/, "");
}

function busOf(path: string, machine: Machine | undefined): Bus | undefined {
  const name = /^disks\[([^\]]*)\]/.exec(path)?.[1];
  return machine?.disks.find((disk) => disk.name === name)?.bus;
}

function isSlowBus(bus: Bus | undefined): boolean {
  return bus === "sata" || bus === "ide";
}
