import type { FieldError } from "../../kernel/status.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { prefixFields } from "./field-path.ts";
import { goShown } from "./go-text.ts";
import type { Structural } from "./structural.ts";

/** Whether there is an embedded resource below the root; if none, nothing is walked. */
export function hasEmbedded(structural: Structural): boolean {
  const children = [structural.items, structural.additional, ...structural.properties.values()];
  return children.some((child) => child !== undefined && (child.isResource || hasEmbedded(child)));
}

/**
 * Checks that embedded resources say what they are. The root itself is not looked at: whoever took
 * the request has already compared its apiVersion and kind with the route.
 */
export function checkEmbedded(value: unknown, structural: Structural, errors: FieldError[]): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      checkChild(item, structural.items, { errors, step: `[${index}]` });
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const key in value) {
    const property = structural.properties.get(key);
    const step = property === undefined ? `[${key}]` : key;
    checkChild(value[key], property ?? structural.additional, { errors, step });
  }
}

function checkChild(
  value: unknown,
  structural: Structural | undefined,
  found: { errors: FieldError[]; step: string },
): void {
  if (structural === undefined) return;
  const before = found.errors.length;
  if (structural.isResource && isJsonObject(value)) checkIdentity(value, found.errors);
  checkEmbedded(value, structural, found.errors);
  if (found.errors.length > before) prefixFields(found.errors, before, found.step);
}

function checkIdentity(resource: Readonly<Record<string, unknown>>, errors: FieldError[]): void {
  for (const field of ["apiVersion", "kind"] as const) {
    if (Object.hasOwn(resource, field)) continue;
    errors.push({ type: "FieldValueRequired", field, detail: "must not be empty" });
  }
  for (const field of ["apiVersion", "kind"] as const) {
    if (!Object.hasOwn(resource, field)) continue;
    const detail = problemOf(field, resource[field]);
    if (detail === undefined) continue;
    errors.push({ type: "FieldValueInvalid", field, value: goShown(resource[field]), detail });
  }
}

const label1035 = "[a-z]([-a-z0-9]*[a-z0-9])?";

function problemOf(field: "apiVersion" | "kind", value: unknown): string | undefined {
  if (typeof value !== "string") return "must be a string";
  if (value === "") return "must not be empty";
  if (field === "apiVersion") {
    return value.split("/").length > 2 ? `unexpected GroupVersion string: ${value}` : undefined;
  }
  const name = value.toLowerCase();
  const problems = [
    ...(name.length > 63 ? ["must be no more than 63 characters"] : []),
    ...(new RegExp(`^${label1035}$`).test(name) ? [] : [kindProblem]),
  ];
  if (problems.length === 0) return undefined;
  return `may have mixed case, but should otherwise match: ${problems.join(",")}`;
}

const kindProblem =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an " +
  "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', " +
  `regex used for validation is '${label1035}')`;
