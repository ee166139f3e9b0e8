import { badRequest, invalid, type FieldError } from "../../kernel/status.ts";
import { forbiddenValue, invalidValue, unsupportedValue } from "./errors.ts";

/** The query parameters of writes, as Kubernetes names, reads and refuses them. */

export type FieldValidation = "Strict" | "Warn" | "Ignore";

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: FieldValidation;
}

type OptionsKind = "CreateOptions" | "UpdateOptions" | "PatchOptions";

const fieldManagerBytesMax = 128;

export function parseWriteOptions(query: URLSearchParams, kind: OptionsKind): WriteOptions {
  const fieldValidation = query.get("fieldValidation") ?? "";
  const errors = [
    ...(kind === "PatchOptions" ? forceErrors(query) : []),
    ...fieldManagerErrors(query.get("fieldManager") ?? ""),
    ...dryRunErrors(query.getAll("dryRun")),
  ];
  if (fieldValidation !== "" && !isFieldValidation(fieldValidation)) {
    const supported = ["", "Ignore", "Strict", "Warn"];
    const shown = JSON.stringify(fieldValidation);
    errors.push(unsupportedValue("fieldValidation", shown, supported));
  }
  assertOptions(kind, errors);
  return {
    dryRun: query.has("dryRun"),
    fieldValidation: isFieldValidation(fieldValidation) ? fieldValidation : "Warn",
  };
}

/** `ListOptions.meta.k8s.io "" is invalid: …`, if there is anything wrong. */
export function assertOptions(kind: string, errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid({ group: "meta.k8s.io", kind, name: "" }, errors);
}

export function dryRunErrors(dryRun: readonly string[]): FieldError[] {
  if (dryRun.every((value) => value === "All")) return [];
  // Go prints the list as source text.
  const shown = `[]string{${dryRun.map((value) => JSON.stringify(value)).join(", ")}}`;
  return [unsupportedValue("dryRun", shown, ["All"])];
}

/** An integer as Go reads it; undefined where the parameter is absent or empty. */
export function integerParameter(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name) ?? "";
  if (text === "") return undefined;
  if (/^[+-]?\d{1,18}$/.test(text)) return Number(text);
  const why = /^[+-]?\d+$/.test(text) ? "value out of range" : "invalid syntax";
  throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: ${why}`);
}

/** Kubernetes takes everything for true but "false" and "0": also "?watch=". */
export function flagParameter(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  return text.toLowerCase() !== "false" && text !== "0";
}

function isFieldValidation(text: string): text is FieldValidation {
  return text === "Strict" || text === "Warn" || text === "Ignore";
}

function forceErrors(query: URLSearchParams): FieldError[] {
  if (!query.has("force")) return [];
  return [forbiddenValue("force", "may not be specified for non-apply patch")];
}

function fieldManagerErrors(manager: string): FieldError[] {
  const field = "fieldManager";
  if (Buffer.byteLength(manager) > fieldManagerBytesMax) {
    const detail = `may not be more than ${fieldManagerBytesMax} bytes`;
    return [{ type: "FieldValueTooLong", field, detail }];
  }
  const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(manager);
  if (!unprintable) return [];
  const code = (unprintable[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  const detail = `invalid character U+${code} (at position ${unprintable.index})`;
  return [invalidValue(field, JSON.stringify(manager), detail)];
}
