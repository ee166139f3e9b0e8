import type { Claim } from "../../api/index.ts";
import type { Informer } from "../../client/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { versionOf } from "./written.ts";

/**
 * Claims that this process gave and that the informer does not show yet, one for each owner. They
 * count from the moment in which they were granted: what is written takes a while to come back, and
 * who asks meanwhile must not be given the same once more.
 */
export class Grants {
  readonly #informer: Pick<Informer<Claim>, "get">;
  readonly #byOwner = new Map<string, Claim>();

  constructor(informer: Pick<Informer<Claim>, "get">) {
    this.#informer = informer;
  }

  /** A draft, before it is written; or what the server made of it. */
  note(claim: Claim): void {
    this.#byOwner.set(objectKey(claim.spec.owner), claim);
  }

  /** What is known to have changed of one that was granted. */
  renew(claim: Claim): void {
    const granted = this.#byOwner.get(objectKey(claim.spec.owner));
    if (granted?.metadata.name === claim.metadata.name) this.note(claim);
  }

  forgetAll(): void {
    this.#byOwner.clear();
  }

  end(owner: string): void {
    this.#byOwner.delete(owner);
  }

  /** These Claims, with those that were granted and are not among them. */
  with(shown: readonly Claim[], systemId: string): Claim[] {
    for (const [key, claim] of this.#byOwner) if (this.#isShown(claim)) this.#byOwner.delete(key);
    const granted = [...this.#byOwner.values()].filter(({ spec }) => {
      return spec.hypervisor.systemId === systemId;
    });
    const names = new Set(granted.map(({ metadata }) => metadata.name));
    return [...shown.filter(({ metadata }) => !names.has(metadata.name)), ...granted];
  }

  /**
   * A draft is not: what is shown under its name was there before. Neither is one that is shown as
   * it was before it was granted: a Pending Claim does not count.
   */
  #isShown(claim: Claim): boolean {
    if (claim.metadata.resourceVersion === undefined) return false;
    const shown = this.#informer.get(claim.metadata.name ?? "");
    return shown !== undefined && versionOf(shown) >= versionOf(claim);
  }
}
