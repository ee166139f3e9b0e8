import { claimKind } from "../../api/index.ts";
import type { Claim, VMImage } from "../../api/index.ts";
import { isOutcomeUnknown, type Client } from "../../client/index.ts";
import { assert } from "../../kernel/assert.ts";
import { formatTime, type Clock } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import { ApiError } from "../../kernel/status.ts";
import { claimName } from "./claim-name.ts";
import { draftFileClaim, fileId, isFile } from "./files.ts";
import type { FilePart, FilePlace, FileReservation } from "./files.ts";
import type { Ledger } from "./ledger.ts";
import { listOwned, withOwnerLabel } from "./owner-label.ts";
import { isHeld } from "./whose.ts";

export interface FileLedgerOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly ledger: Ledger;
}

export type ReservedFile =
  | { readonly is: "ours"; readonly claim: Claim }
  | { readonly is: "taken"; readonly by: Claim };

/**
 * Which file on a hypervisor Berth brought, and for which VMImage.
 *
 * Guarantees: a file has one Claim at most, because its name is a hash of its place. Everything is
 * read from the server, so nothing rests on a status or on memory. All methods are safe to repeat.
 */
export class FileLedger {
  readonly #options: FileLedgerOptions;
  readonly #client;

  constructor(options: FileLedgerOptions) {
    this.#options = options;
    this.#client = options.client.of(claimKind);
  }

  /** The own identity of a Hypervisor; undefined: it is gone, or was never reached. */
  systemOf(hypervisor: string): string | undefined {
    return this.#options.ledger.systemOf(hypervisor);
  }

  /** A Claim by its name, whoever holds it. */
  async named(name: string): Promise<Claim | undefined> {
    return this.#read(name);
  }

  /** The Claim of a file, whoever holds it. */
  async at(systemId: string, place: FilePlace): Promise<Claim | undefined> {
    return this.#read(claimName(systemId, fileId(place)));
  }

  /** All Claims of files that are held for a VMImage, or for an earlier one of its name. */
  async ownedBy({ metadata }: Pick<VMImage, "metadata">): Promise<Claim[]> {
    const claims = await listOwned(this.#client, metadata, "File");
    return claims.filter(({ spec }) => {
      const { namespace, name } = spec.owner;
      const isIts = namespace === metadata.namespace && name === metadata.name;
      return isFile(spec) && isHeld(spec) && isIts;
    });
  }

  /** Reserves a file before it is brought: creates its Claim, or takes over a Released one. */
  async reserve(reservation: FileReservation): Promise<ReservedFile> {
    const { clock, ledger } = this.#options;
    const { installation } = ledger;
    const claim = draftFileClaim(reservation, { installation, nowMs: clock.nowMs() });
    try {
      return { is: "ours", claim: await this.#client.create(claim) };
    } catch (error) {
      const isThere = error instanceof ApiError && error.code === 409;
      if (!isThere && !isOutcomeUnknown(error)) throw error;
      const there = await this.#read(claim.metadata.name ?? "");
      if (there === undefined) throw error;
      return this.#takeOver(there, claim);
    }
  }

  async #takeOver(there: Claim, claim: Claim): Promise<ReservedFile> {
    if (isHeld(there.spec)) {
      const isSame = there.spec.owner.uid === claim.spec.owner.uid;
      const isOwn = guard("reserve-own-file-claim", isSame);
      return isOwn ? { is: "ours", claim: there } : { is: "taken", by: there };
    }
    return { is: "ours", claim: await this.#update(there, claim.spec) };
  }

  /** Notes what is known of the file. */
  async note(claim: Claim, file: Partial<FilePart>): Promise<Claim> {
    return this.#update(claim, { ...claim.spec, file: fileOf(claim, file) });
  }

  /** The whole file was observed, and Berth brought it. */
  async bind(claim: Claim, file: Partial<FilePart>): Promise<Claim> {
    const boundAt = formatTime(this.#options.clock.nowMs());
    const { operation: _ended, ...known } = fileOf(claim, file);
    return this.#update(claim, { ...claim.spec, state: "Bound", boundAt, file: known });
  }

  /** Another VMImage names the file, and sees to it from now on. */
  async giveTo(claim: Claim, { metadata }: Pick<VMImage, "metadata">): Promise<Claim> {
    const { namespace = "", name = "", uid = "" } = metadata;
    return this.#update(claim, { ...claim.spec, owner: { namespace, name, uid } });
  }

  /** The file stays, and is not Berth's any more. */
  async release(claim: Claim, releaseReason: string): Promise<void> {
    const releasedAt = formatTime(this.#options.clock.nowMs());
    await this.#update(claim, { ...claim.spec, state: "Released", releasedAt, releaseReason });
  }

  /** The file is not there. */
  async remove(claim: Claim): Promise<void> {
    await this.#options.ledger.remove(claim);
  }

  async #read(name: string): Promise<Claim | undefined> {
    try {
      return await this.#client.get({ name });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      return undefined;
    }
  }

  async #update(claim: Claim, spec: Claim["spec"]): Promise<Claim> {
    return this.#client.update(withOwnerLabel({ ...claim, spec }));
  }
}

function fileOf({ spec }: Claim, change: Partial<FilePart>): FilePart {
  assert(spec.file, "the Claim of a file says which file it is");
  return { ...spec.file, ...change };
}
