import type { Claim, Hypervisor, Orphan, VirtualMachine, VMImage } from "../../api/index.ts";
import { decode } from "../../apiserver/index.ts";
import type { Change, Entry, Store } from "../../store/index.ts";
import type { Telling } from "./laws-why.ts";

const vmBucket = "berth.dev/virtualmachines";
const claimBucket = "berth.dev/claims";
const orphanBucket = "berth.dev/orphans";

/** The objects of one bucket; only who reads them knows of which kind they are. */
interface Kept {
  set(id: string, object: never): unknown;
  delete(id: string): boolean;
  clear(): void;
}

/** A change of an object: as it was and as it is; gone where it is nothing. */
export interface ObjectChange<T> {
  readonly before: T | undefined;
  readonly after: T | undefined;
}

export type VmChange = ObjectChange<VirtualMachine>;
export type ClaimChange = ObjectChange<Claim>;
export type OrphanChange = ObjectChange<Orphan>;

/** Who may act, as the disk has it. */
interface Lease {
  readonly spec?: { readonly holderIdentity?: string };
}

/**
 * The objects as the disk has them. The store tells of a change when it is durable and before its
 * writer is answered, so whoever looks here sees what a crash at this moment would leave.
 */
export class Records {
  readonly vms = new Map<string, VirtualMachine>();
  readonly claims = new Map<string, Claim>();
  readonly hypervisors = new Map<string, Hypervisor>();
  readonly images = new Map<string, VMImage>();
  readonly orphans = new Map<string, Orphan>();
  readonly leases = new Map<string, Lease>();
  /** VirtualMachines that were ever made. */
  declared = 0;
  /** Writes so far, by bucket. */
  readonly writes = new Map<string, number>();
  onVm: (change: VmChange) => void = () => undefined;
  onClaim: (change: ClaimChange) => void = () => undefined;
  onOrphan: (change: OrphanChange) => void = () => undefined;
  /** Told of everything that was written and is kept here. */
  onObject: (object: Telling) => void = () => undefined;
  /** Told of every change of every kind, before it is taken note of. */
  onChange: (change: Change) => void = () => undefined;
  /** Told when the API was started on its disk, before anything else is read from it. */
  onStore: (store: Store) => void = () => undefined;
  #stop: () => void = () => undefined;
  /** By bucket: what the API admitted under these names is of these kinds. */
  readonly #kept = new Map<string, Kept>([
    [vmBucket, this.vms],
    [claimBucket, this.claims],
    ["coordination.k8s.io/leases", this.leases],
    ["berth.dev/hypervisors", this.hypervisors],
    ["berth.dev/vmimages", this.images],
    [orphanBucket, this.orphans],
  ]);

  /** Follows a store that was just opened, in place of the one before. */
  follow(store: Store): void {
    this.#stop();
    this.onStore(store);
    for (const objects of this.#kept.values()) objects.clear();
    for (const [bucket, objects] of this.#kept) {
      const listed = store.list({ bucket });
      if (listed.ok) for (const entry of listed.entries) objects.set(entry.id, read(entry));
    }
    const afterRevision = store.revision();
    const watch = store.watch({
      afterRevision,
      deliver: (changes) => {
        for (const change of changes) this.#note(change);
      },
    });
    if (watch.ok) this.#stop = watch.stop;
  }

  /** The Claim of an id on a hypervisor, in whatever state. */
  claimOf(hypervisor: string, externalId: string): Claim | undefined {
    for (const claim of this.claims.values()) {
      const { spec } = claim;
      if (spec.externalId === externalId && spec.hypervisor.name === hypervisor) return claim;
    }
    return undefined;
  }

  /** Who leads, for all that the disk knows. */
  leader(): string | undefined {
    for (const { spec } of this.leases.values()) return spec?.holderIdentity;
    return undefined;
  }

  /** Every hypervisor can be used, and what is known of the images was seen there. */
  isGroundReady(): boolean {
    return [...this.hypervisors.values(), ...this.images.values()].every(({ status }) => {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      return ready === undefined || ready.status === "True";
    });
  }

  /** Every write but those of Leases and Events. */
  writesOfObjects(): number {
    let count = 0;
    for (const [bucket, writes] of this.writes) if (!isChatter(bucket)) count += writes;
    return count;
  }

  #note(change: Change): void {
    const { bucket, type, entry } = change;
    this.onChange(change);
    this.writes.set(bucket, (this.writes.get(bucket) ?? 0) + 1);
    const vm = this.vms.get(entry.id);
    const claim = this.claims.get(entry.id);
    const orphan = this.orphans.get(entry.id);
    const kept = this.#kept.get(bucket);
    if (kept === undefined) return;
    if (type === "delete") kept.delete(entry.id);
    else {
      const object = read(entry);
      kept.set(entry.id, object);
      this.onObject(object);
    }
    if (bucket === vmBucket && vm === undefined) this.declared += 1;
    if (bucket === vmBucket) this.onVm({ before: vm, after: this.vms.get(entry.id) });
    if (bucket === claimBucket) this.onClaim({ before: claim, after: this.claims.get(entry.id) });
    if (bucket === orphanBucket) {
      this.onOrphan({ before: orphan, after: this.orphans.get(entry.id) });
    }
  }
}

/** Heartbeats and news: the only writes that a rest allows. */
function isChatter(bucket: string): boolean {
  return bucket.endsWith("/leases") || bucket.endsWith("/events");
}

function read(entry: Entry): never {
  // cast: the API wrote it, and whoever reads it knows from which bucket it is.
  return decode(entry) as never;
}

/** Somebody has it. Said here once more: what holds a program to its laws does not ask it. */
export function isHeld({ state }: Claim["spec"]): boolean {
  return state === "Reserved" || state === "Bound";
}
