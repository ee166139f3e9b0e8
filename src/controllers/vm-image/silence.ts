import type { ImageDeps } from "./turn.ts";

/** Whoever holds back is woken; this is for the case that nobody does. */
export const heldMs = 60_000;

/** Nobody has looked at the hypervisor yet, or its answers stay away and somebody looks now. */
export function mayBeSilent(name: string, { connections, hypervisors }: ImageDeps): boolean {
  const isUntried = connections.isUntried(name) && hypervisors.get(name) !== undefined;
  return isUntried || connections.isDoubted(name);
}
