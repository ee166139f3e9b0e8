import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { textOf } from "../objects/text.ts";

/** What each effect means, in the words of people. */
const risks: Readonly<Record<string, string>> = {
  Live: "live",
  Reboot: "reboot",
  PowerOff: "power-off",
  DestroysData: "destroys data",
  Refused: "refused",
};

/** A plan as `status.plan` has it: a line for each change, the hash last. */
export function planLines(plan: JsonObject): string[] {
  const changes = Array.isArray(plan["changes"]) ? plan["changes"].filter(isJsonObject) : [];
  const width = Math.max(0, ...changes.map(({ field }) => textOf(field).length));
  return [
    ...changes.flatMap((change) => changeLines(change, width)),
    `  plan ${textOf(plan["hash"])}`,
  ];
}

function changeLines({ field, from, to, effect, note }: JsonObject, width: number): string[] {
  const risk = effect === undefined ? "" : `  (${risks[textOf(effect)] ?? textOf(effect)})`;
  const values = `${shown(from)} → ${shown(to)}`;
  const line = `  ~ ${textOf(field).padEnd(width)}  ${values}${risk}`;
  // A sentence is worth a line; only how the hypervisor calls the field is not.
  const isSentence = note !== undefined && !textOf(note).startsWith("`");
  return isSentence ? [line, `      ${textOf(note)}`] : [line];
}

function shown(value: unknown): string {
  return value === undefined ? "nothing" : textOf(value);
}
