import type { FieldError } from "../../kernel/status.ts";

/** Puts a step before the fields of errors that were found below it, from `from` on. */
export function prefixFields(errors: FieldError[], from: number, step: string): void {
  for (let i = from; i < errors.length; i++) {
    const error = errors[i];
    if (error !== undefined)
      error.field = error.field === "<nil>" ? step : joinPath(step, error.field);
  }
}

/** "spec" and "disks" give "spec.disks"; "disks" and "[0].size" give "disks[0].size". */
export function joinPath(step: string, rest: string): string {
  if (rest === "" || step === "") return step + rest;
  return rest.startsWith("[") ? step + rest : `${step}.${rest}`;
}
