import { createHash } from "node:crypto";
import type { ClaimSpec, VirtualMachine } from "../../api/index.ts";

type MadeFrom = NonNullable<ClaimSpec["madeFrom"]>;

/** As many digits as nobody meets twice by chance. */
const digits = 16;

/**
 * What counts only until the machine stood, by field: its source, and what the guest is told at its
 * first boot. Only digests are kept, because user-data may hold what not everybody should read;
 * of a Secret only its name counts. Pure.
 */
export function madeFrom({ spec }: VirtualMachine): MadeFrom {
  const { source, cloudInit = {} } = spec;
  const fields: [string, unknown][] = [
    ["spec.source", source],
    ...Object.entries(cloudInit).map(([key, value]): [string, unknown] => {
      return [`spec.cloudInit.${key}`, value];
    }),
  ];
  return fields
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => ({ field, digest: digestOf(value) }))
    .toSorted((a, b) => (a.field < b.field ? -1 : 1));
}

/** Fields that say something else than when the machine was made. */
export function fieldsMadeAnew(before: MadeFrom, now: MadeFrom): string[] {
  const digests = (of: MadeFrom): Map<string, string> => {
    return new Map(of.map(({ field, digest }) => [field, digest]));
  };
  const [old, said] = [digests(before), digests(now)];
  const fields = new Set([...old.keys(), ...said.keys()]);
  return [...fields].filter((field) => old.get(field) !== said.get(field)).toSorted();
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, inOrder)).digest("hex").slice(0, digits);
}

/** The order in which somebody wrote the members of an object means nothing. */
function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
