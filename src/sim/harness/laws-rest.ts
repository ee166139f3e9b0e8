import type { Claim } from "../../api/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { isHeld } from "./records.ts";
import { Violation } from "./violation.ts";

/** What may have something open: a VirtualMachine, an image, an Orphan. */
export interface Acting extends KubeObject {
  readonly status?: { readonly operation?: { readonly intent: string } | undefined };
}

/** Law 5: what was begun has ended, and was seen to end. */
export function demandClosed(objects: Iterable<Acting>): void {
  for (const { kind, metadata, status } of objects) {
    if (status?.operation === undefined) continue;
    const { intent } = status.operation;
    throw new Violation(5, `all rests, and ${kind} ${metadata.name} has this open: ${intent}`);
  }
}

/** Law 2: an id is held for an object that there is, and for no other. */
export function demandHeldFor(claims: Iterable<Claim>, living: Iterable<KubeObject>): void {
  const uids = new Set([...living].map(({ metadata }) => metadata.uid));
  for (const { metadata, spec } of claims) {
    if (!isHeld(spec) || uids.has(spec.owner.uid)) continue;
    const what = `the Claim ${metadata.name} is ${spec.state}`;
    throw new Violation(2, `all rests, and ${what} for ${spec.owner.name}, which is no more`);
  }
}

/** Law 3: no two machines that Berth made answer to the same address. */
export function demandOwnAddresses(files: ReadonlyMap<string, string>): void {
  const holders = new Map<string, string>();
  for (const [id, text] of files) {
    for (const [address] of text.matchAll(/(?<=^net\d+: .*)([0-9A-F]{2}:){5}[0-9A-F]{2}/gim)) {
      const other = holders.get(address) ?? id;
      if (other !== id) throw new Violation(3, `${other} and ${id} have the address ${address}`);
      holders.set(address, id);
    }
  }
}
