import type { Claim, Hypervisor, Orphan, VirtualMachine, VMImage } from "../../api/index.ts";
import { decode } from "../../apiserver/index.ts";
import type { Change, Entry, Store } from "../../store/index.ts";
import type { Telling } from "./laws-why.ts";

const vmBucket = "berth.dev/virtualmachines";
const claimBucket = "berth.dev/claims";
const imageBucket = "berth.dev/vmimages";
const orphanBucket = "berth.dev/orphans";
const hypervisorBucket = "berth.dev/hypervisors";

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
  /** Claims of VMs and disk-holder VMs. */
  readonly claims = new Map<string, Claim>();
  /** Claims of files. */
  readonly files = new Map<string, Claim>();
  readonly hypervisors = new Map<string, Hypervisor>();
  readonly images = new Map<string, VMImage>();
  readonly orphans = new Map<string, Orphan>();
  readonly leases = new Map<string, Lease>();
  /** Names of volumes that were asked for, and not made when their Claim was given up. */
  readonly awaited = new Set<string>();
  /**
   * Volumes that had another size than their Claim says when that was given up, as cluster and key:
   * somebody else's may have got the name.
   */
  readonly resized = new Set<string>();
  /** VirtualMachines that were ever made. */
  declared = 0;
  /** Writes so far, by bucket. */
  readonly writes = new Map<string, number>();
  onVm: (change: VmChange) => void = () => undefined;
  onClaim: (change: ClaimChange) => void = () => undefined;
  onFile: (change: ClaimChange) => void = () => undefined;
  onImage: (change: ObjectChange<VMImage>) => void = () => undefined;
  onHypervisor: (hypervisor: Hypervisor) => void = () => undefined;
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
    [hypervisorBucket, this.hypervisors],
    [imageBucket, this.images],
    [orphanBucket, this.orphans],
  ]);

  /** Follows a store that was just opened, in place of the one before. */
  follow(store: Store): void {
    this.#stop();
    this.onStore(store);
    for (const objects of [...this.#kept.values(), this.files]) objects.clear();
    for (const bucket of this.#kept.keys()) {
      const listed = store.list({ bucket });
      if (listed.ok) for (const entry of listed.entries) this.#keep(bucket, entry);
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

  /**
   * Every hypervisor can be used, and every image was looked for. One that no hypervisor lists is
   * Unknown, and stays so.
   */
  isGroundReady(): boolean {
    return this.behind().length === 0;
  }

  /** The hypervisors and images that are not so. */
  behind(): (Hypervisor | VMImage)[] {
    const readyOf = ({ status }: Hypervisor | VMImage): string => {
      return status?.conditions?.find(({ type }) => type === "Ready")?.status ?? "True";
    };
    const images = [...this.images.values()].filter((one) => readyOf(one) === "False");
    return [...[...this.hypervisors.values()].filter((one) => readyOf(one) !== "True"), ...images];
  }

  /** Every write but those of Leases and Events. */
  writesOfObjects(): number {
    let count = 0;
    for (const [bucket, writes] of this.writes) if (!isChatter(bucket)) count += writes;
    return count;
  }

  #keep(bucket: string, entry: Entry): never {
    const object = read(entry);
    const isFile = bucket === claimBucket && isFileClaim(object);
    const kept: Kept | undefined = isFile ? this.files : this.#kept.get(bucket);
    kept?.set(entry.id, object);
    return object;
  }

  #tellObject(bucket: string, object: never): void {
    this.onObject(object);
    if (bucket === hypervisorBucket) this.onHypervisor(object);
  }

  #note(change: Change): void {
    const { bucket, type, entry } = change;
    this.onChange(change);
    this.writes.set(bucket, (this.writes.get(bucket) ?? 0) + 1);
    const kept = this.#kept.get(bucket);
    if (kept === undefined) return;
    if (bucket === vmBucket && !this.vms.has(entry.id)) this.declared += 1;
    const tell = this.#changeOf(bucket, entry.id);
    if (type === "delete") {
      kept.delete(entry.id);
      if (bucket === claimBucket) this.files.delete(entry.id);
    } else this.#tellObject(bucket, this.#keep(bucket, entry));
    tell();
  }

  /** Tells of a change when it was taken note of, with what was there before. */
  #changeOf(bucket: string, id: string): () => void {
    const changed = <T>(of: Map<string, T>, on: () => (change: ObjectChange<T>) => void) => {
      const before = of.get(id);
      return (): void => on()({ before, after: of.get(id) });
    };
    switch (bucket) {
      case vmBucket:
        return changed(this.vms, () => this.onVm);
      case orphanBucket:
        return changed(this.orphans, () => this.onOrphan);
      case imageBucket:
        return changed(this.images, () => this.onImage);
      case claimBucket: {
        const ofVm = changed(this.claims, () => this.onClaim);
        const ofFile = changed(this.files, () => this.onFile);
        return () => {
          ofVm();
          ofFile();
        };
      }
      default:
        return () => undefined;
    }
  }
}

function isFileClaim({ spec }: Claim): boolean {
  return spec.target === "File";
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
