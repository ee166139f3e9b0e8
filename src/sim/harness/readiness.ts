import type { VirtualMachine } from "../../api/index.ts";

/** Ready, and that was said of what is declared now. */
export function isReady({ metadata, status }: VirtualMachine): boolean {
  if (status?.observedGeneration !== metadata.generation) return false;
  return (
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false
  );
}

/** Only a person can go on with it. */
export function isStalled({ status }: VirtualMachine): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some((one) => one.type === "Stalled" && one.status === "True");
}
