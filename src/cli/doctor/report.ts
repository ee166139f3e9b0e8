import type { Finding } from "../../hypervisor/index.ts";
import type { Paint } from "../objects/colour.ts";
import { textOf } from "../objects/text.ts";

/** A line of the report: of a driver's diagnosis, or of our own about the control plane. */
export type Line = Omit<Finding, "check"> & { readonly check: string };

/** What was examined, and what was found. */
export interface Section {
  /** "Hypervisor pve". */
  readonly title: string;
  readonly lines: readonly Line[];
}

export interface Counts {
  readonly problems: number;
  readonly warnings: number;
}

export function countLevels(sections: readonly Section[]): Counts {
  const lines = sections.flatMap((section) => section.lines);
  const count = (level: Line["level"]): number => lines.filter((l) => l.level === level).length;
  return { problems: count("problem"), warnings: count("warning") };
}

const colours = { ok: "good", warning: "doubtful", problem: "bad" } as const;
const levelWidth = "problem".length;
const checkWidth = "certificate".length;

/** A section for people: a line for each finding, and below it what to do. */
export function renderSection({ title, lines }: Section, paint: Paint): string[] {
  return [
    paint("strong", title),
    ...lines.flatMap(({ check, level, message, remedy, commands }) => {
      const word = paint(colours[level], level.padEnd(levelWidth));
      const head = `  ${word}  ${check.toLowerCase().padEnd(checkWidth)}  `;
      const indent = " ".repeat(levelWidth + checkWidth + 6);
      return [
        `${head}${textOf(message)}`,
        ...(remedy === undefined ? [] : [`${indent}${textOf(remedy)}`]),
        ...(commands ?? []).map((command) => `${indent}  ${textOf(command)}`),
      ];
    }),
  ];
}

/** "1 problem and 2 warnings." */
export function renderCounts({ problems, warnings }: Counts): string {
  if (problems + warnings === 0) return "All is well.";
  const parts = [plural(problems, "problem"), plural(warnings, "warning")];
  return `${parts.filter((part) => part !== "").join(" and ")}.`;
}

function plural(count: number, noun: string): string {
  if (count === 0) return "";
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
