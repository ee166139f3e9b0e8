import { apiVersion } from "../../api/index.ts";
import type { Claim, ClaimSpec, VirtualMachine } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { claimName } from "./claim-name.ts";
import { withOwnerLabel } from "./owner-label.ts";

/** What a new Claim says. */
export interface Reservation {
  readonly vm: Pick<VirtualMachine, "metadata">;
  readonly hypervisor: ClaimSpec["hypervisor"];
  readonly externalId: string;
  readonly idChosenBy: ClaimSpec["idChosenBy"];
  readonly identity: string;
  readonly node: string;
  /** Volumes under the id that are a stranger's. */
  readonly otherVolumes: readonly string[];
  /** What the driver noted when it listed them; absent where nothing was listed. */
  readonly driver?: NonNullable<ClaimSpec["driver"]>;
  readonly resources: NonNullable<ClaimSpec["resources"]>;
  /** Whether it is still to be found out if a VM can be created: nothing is sent meanwhile. */
  readonly isPending?: boolean;
  /** A VM that this installation created exists under the id: an id that rests is not free else. */
  readonly isThere?: boolean;
  /** Of a machine that stands already: what is known of it. */
  readonly kept?: Partial<
    Pick<
      ClaimSpec,
      "origin" | "everExisted" | "volumes" | "otherVolumes" | "driver" | "idChosenBy" | "role"
    >
  >;
}

export type Reserved =
  | { readonly is: "ours"; readonly claim: Claim }
  | { readonly is: "taken"; readonly by: Claim }
  /** It goes on saying what was left there until a VM can be created: a Pending one would not. */
  | { readonly is: "released"; readonly claim: Claim };

/** The Claim of a reservation, as it is written. */
export function draftClaim(
  reservation: Reservation,
  { installation, nowMs }: { readonly installation: string; readonly nowMs: number },
): Claim {
  const { vm, hypervisor, externalId, idChosenBy, identity, node, resources } = reservation;
  const { otherVolumes, driver, kept, isPending = false } = reservation;
  const reservedAt = formatTime(nowMs);
  const { namespace = "", name = "", uid = "" } = vm.metadata;
  return withOwnerLabel({
    apiVersion,
    kind: "Claim",
    metadata: { name: claimName(hypervisor.systemId, externalId) },
    spec: {
      target: "VM",
      hypervisor,
      externalId,
      idChosenBy,
      state: "Reserved",
      role: "VM",
      origin: "Created",
      everExisted: false,
      identity,
      installation,
      owner: { namespace, name, uid },
      node,
      otherVolumes: otherVolumes.map((id) => ({ id, seenAt: reservedAt })),
      ...(driver === undefined ? {} : { driver }),
      ...(isPending ? { preflight: "Pending" } : {}),
      resources,
      reservedAt,
      ...kept,
    },
  });
}
