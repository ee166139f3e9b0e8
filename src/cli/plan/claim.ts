import type { Claim, Hypervisor, VirtualMachine } from "../../api/index.ts";
import { claimName } from "../../controllers/index.ts";
import { ApiError } from "../../kernel/status.ts";
import type { Look } from "./look.ts";

/** The Claim of a machine, or that it may not be read. */
export type ClaimFound =
  | { readonly is: "claim"; readonly claim: Claim }
  | { readonly is: "forbidden"; readonly why: string };

/** The Claim by which a machine is this object's; undefined where there is none yet. */
export async function claimOf(look: Look, vm: VirtualMachine): Promise<ClaimFound | undefined> {
  const { externalId, hypervisor } = vm.status ?? {};
  if (externalId === undefined || hypervisor === undefined) return undefined;
  try {
    const claim = await readClaim(look, hypervisor, externalId);
    return claim && { is: "claim", claim };
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    return { is: "forbidden", why: error.message };
  }
}

/** Neither kind has namespaces. */
async function readClaim(
  look: Look,
  hypervisor: string,
  externalId: string,
): Promise<Claim | undefined> {
  const home = await look({ kind: "Hypervisor", namespace: "", name: hypervisor });
  // cast: the server admitted it by the schema of its kind.
  const systemId = (home as unknown as Hypervisor | undefined)?.spec.systemId;
  if (systemId === undefined) return undefined;
  const claim = await look({ kind: "Claim", namespace: "", name: claimName(systemId, externalId) });
  // cast: the same holds for the Claim.
  return claim as unknown as Claim | undefined;
}
