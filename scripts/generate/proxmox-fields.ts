import { fieldTable, type FieldLine } from "../../src/drivers/proxmox/index.ts";

const begins = "<!-- fields: written by scripts/generate.ts from src/drivers/proxmox/changes -->";
const ends = "<!-- end of fields -->";

/** The driver's page, with the table of fields between its two marks as the code has it now. */
export function withFieldTable(page: string): string {
  const [before = "", rest = ""] = page.split(begins);
  const [, after = ""] = rest.split(ends);
  return `${before}${begins}\n\n${fieldRows()}\n\n${ends}${after}`;
}

const classes: Readonly<Record<FieldLine["change"], string>> = {
  Live: "live",
  Reboot: "reboot",
  PowerOff: "power off",
  Impossible: "impossible",
  Own: "Berth's own",
  Refused: "refused",
};

function fieldRows(): string {
  const rows = fieldTable.map((line) => `| \`${line.field}\` | ${changeOf(line)} | ${line.does} |`);
  return ["| field of `spec` | change | on Proxmox |", "|---|---|---|", ...rows].join("\n");
}

function changeOf({ change, onSlowBus }: FieldLine): string {
  if (onSlowBus === undefined) return classes[change];
  return `${classes[change]}; ${classes[onSlowBus]} on sata and ide`;
}
