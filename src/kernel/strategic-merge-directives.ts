import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { getMember, setMember } from "./json-member.ts";
import { badRequest } from "./status.ts";

/** The members of a strategic merge patch that are instructions, not data. */
export const directive = {
  patch: "$patch",
  retainKeys: "$retainKeys",
  deleteFromPrimitiveList: "$deleteFromPrimitiveList",
  setElementOrder: "$setElementOrder",
} as const;

const words: Record<string, string> = {
  [directive.deleteFromPrimitiveList]: "invalid patch format of primitive list",
  [directive.setElementOrder]: "invalid patch format of setElementOrder list",
};

export function isDirective(key: string): boolean {
  if (!key.startsWith("$")) return false;
  const name = key.split("/", 1)[0];
  return Object.values(directive).some((known) => known === name);
}

/** The list that a list directive must hold. */
export function listOf(value: Json | undefined, name: string): Json[] {
  if (Array.isArray(value)) return value;
  throw badRequest(words[name] ?? `invalid patch format of ${name}`);
}

/**
 * What of a patch value is data, where there is nothing to merge it into: without directives and
 * nulls. Undefined where the patch says that nothing is to be there.
 */
export function cleaned(value: Json): Json | undefined {
  if (Array.isArray(value)) return value.map(cleaned).filter((item) => item !== undefined);
  if (!isJsonObject(value)) return value;
  if (getMember(value, directive.patch) === "delete") return undefined;
  const result: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (isDirective(key) || value[key] === null) continue;
    const member = cleaned(value[key] ?? null);
    if (member !== undefined) setMember(result, key, member);
  }
  return result;
}
