import {
  endpointTable,
  fieldTable,
  type EndpointLine,
  type FieldLine,
} from "../../src/drivers/proxmox/index.ts";

const written = "written by scripts/generate.ts from src/drivers/proxmox";

/** The driver's page, with its tables between their marks as the code has them now. */
export function withProxmoxTables(page: string): string {
  const fields = between(page, {
    begins: `<!-- fields: ${written}/changes -->`,
    ends: "<!-- end of fields -->",
    rows: fieldRows(),
  });
  return between(fields, {
    begins: `<!-- endpoints: ${written}/endpoints.ts -->`,
    ends: "<!-- end of endpoints -->",
    rows: endpointTable.map(endpointRow),
  });
}

function between(
  page: string,
  table: { readonly begins: string; readonly ends: string; readonly rows: readonly string[] },
): string {
  const { begins, ends, rows } = table;
  const [before = "", rest = ""] = page.split(begins);
  const [old = "", after = ""] = rest.split(ends);
  const head = old
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(0, 2);
  return `${before}${begins}\n\n${[...head, ...rows].join("\n")}\n\n${ends}${after}`;
}

const classes: Readonly<Record<FieldLine["change"], string>> = {
  Live: "live",
  Reboot: "reboot",
  PowerOff: "power off",
  Impossible: "impossible",
  Own: "Berth's own",
  Refused: "refused",
};

function fieldRows(): string[] {
  return fieldTable.map((line) => `| \`${line.field}\` | ${changeOf(line)} | ${line.does} |`);
}

function changeOf({ change, onSlowBus }: FieldLine): string {
  if (onSlowBus === undefined) return classes[change];
  return `${classes[change]}; ${classes[onSlowBus]} on sata and ide`;
}

function endpointRow({ method, path, rights = "", why }: EndpointLine): string {
  return `| \`${method} ${path}\` | ${rights} | ${why} |`;
}
