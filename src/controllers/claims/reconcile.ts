import { finalizers, virtualMachineKind, vmImageKind } from "../../api/index.ts";
import type { Claim, VMImage } from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { ApiError } from "../../kernel/status.ts";
import { guard } from "../../kernel/guard.ts";
import { addFinalizer, again, settled, type Outcome } from "../../runtime/index.ts";
import type { FileLedger } from "./file-ledger.ts";
import { isFile, type FilePart } from "./files.ts";
import type { Ledger } from "./ledger.ts";
import { isHeld, isPending } from "./whose.ts";

export interface ClaimDeps {
  readonly client: Client;
  readonly claims: Informer<Claim>;
  readonly ledger: Ledger;
  readonly files: FileLedger;
  /** A VMImage that names a file and stays. */
  readonly heirOf: (file: FilePart) => VMImage | undefined;
  readonly clock: Clock;
}

/** How often it is asked whether the object of a Pending Claim is still there. */
const ownerMs = 10 * 60_000;

/**
 * Deletes a Claim whose quarantine is over, and one for which nothing was ever sent and that nobody
 * means any more. Finds another owner for the file of a VMImage that is gone. All others are none
 * of its business.
 */
export async function reconcileClaim(key: string, deps: ClaimDeps): Promise<Outcome> {
  const claim = deps.claims.get(key);
  if (claim === undefined) return settled;
  if (isFile(claim.spec)) return reconcileFile(claim, deps);
  if (isPending(claim.spec)) return reconcilePending(claim, deps);
  if (claim.spec.state !== "Quarantined") return settled;
  const restMs = Date.parse(claim.spec.quarantineUntil ?? "") - deps.clock.nowMs();
  if (!guard("claim-deleted-after-quarantine", restMs <= 0)) return again("Quarantined", restMs);
  await deps.ledger.remove(claim);
  return settled;
}

/**
 * A file whose VMImage is gone passes to another one that names it. If there is none, the sweep of
 * its Hypervisor reports it.
 */
async function reconcileFile(claim: Claim, deps: ClaimDeps): Promise<Outcome> {
  const { owner, file } = claim.spec;
  if (!isHeld(claim.spec)) return settled;
  if ((await readOwner(deps, owner)) !== undefined) return again("Held", ownerMs);
  const heir = file && deps.heirOf(file);
  if (heir !== undefined) {
    // It must not go without the file from now on.
    const images = deps.client.of(vmImageKind);
    const held = await addFinalizer<VMImage>(images, heir, finalizers.image);
    await deps.files.giveTo(claim, held);
  }
  return again("Ownerless", ownerMs);
}

async function readOwner(
  { client }: ClaimDeps,
  { namespace, name, uid }: Claim["spec"]["owner"],
): Promise<VMImage | undefined> {
  try {
    const image = await client.of(vmImageKind).get({ namespace, name });
    return image.metadata.uid === uid ? image : undefined;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    return undefined;
  }
}

async function reconcilePending(claim: Claim, deps: ClaimDeps): Promise<Outcome> {
  if (await isMeant(claim, deps)) return again("Pending", ownerMs);
  await deps.ledger.remove(claim);
  return settled;
}

/** Its object is there, and still means this hypervisor. */
async function isMeant({ spec }: Claim, { client }: ClaimDeps): Promise<boolean> {
  const { namespace, name, uid } = spec.owner;
  try {
    const vm = await client.of(virtualMachineKind).get({ namespace, name });
    const isHere = vm.spec.hypervisorRef.name === spec.hypervisor.name;
    // A disk-holder VM is where the VM is whose disks it takes.
    return vm.metadata.uid === uid && (isHere || spec.role !== "VM");
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    return false;
  }
}
