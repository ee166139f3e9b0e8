import { writeMark } from "../../../hypervisor/index.ts";
import type { Begun, CreateShell, Failure, Fence, Shape } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { classifyError } from "../errors.ts";
import { fitShape, partsOf } from "../fit.ts";
import { assignSlots } from "../translate/assign.ts";
import { present } from "../translate/present.ts";
import { writeShape } from "../translate/shape.ts";
import type { Params } from "../wire/wire.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";
import { markFor } from "./standing.ts";

/** Notes and mark share one field of the config. */
const descriptionMax = 8192;

/**
 * Makes the machine with its mark and without a disk. While the request runs, the config holds
 * `lock: create` and nothing else; with no disk to allocate that lasts a tenth of a second, and a
 * crash after it leaves a machine that is marked, unlocked and ours (qemu-server, create_vm).
 */
export async function create(
  context: DriverContext,
  operation: CreateShell,
  fence: Fence,
): Promise<Begun> {
  const { claim, node, shape, pool } = operation;
  const { refusals } = fitShape(shape, context.release());
  const [first] = refusals;
  if (first !== undefined) return refused(first);
  const parameters = createParameters(operation);
  if ("category" in parameters) return refused(parameters);
  const result = await context.api.write(
    "POST",
    {
      path: `/nodes/${pathPart(node)}/qemu`,
      params: { vmid: claim.externalId, ...parameters.params, ...(pool ? { pool } : {}) },
    },
    () => fence.mayWrite(),
  );
  const begun = begunOf(result, `create VM ${claim.externalId} on ${node}`);
  const isHusk = result.type === "error" && classifyError(result).meaning === "noWorker";
  return begun.outcome === "refused" && isHusk ? { ...begun, leaves: "Husk" } : begun;
}

/** The parameters of the first call. Pure, and the same for the same operation. */
export function createParameters({
  claim,
  shape,
}: Pick<CreateShell, "claim" | "shape">): { readonly params: Params } | Failure {
  const slots = assignSlots({ disks: {}, networks: {} }, partsOf(shape));
  if ("category" in slots) return slots;
  const mark = markFor(claim, slots);
  const description = writeMark(shape.notes ?? "", mark);
  if (description.length > descriptionMax) {
    const message = `with Berth's own line the description is longer than ${descriptionMax}`;
    return { category: "ConfigurationError", message };
  }
  const { set } = writeShape(withDefaults(shape), slots, {});
  return { params: { ...set, description, smbios1: `uuid=${claim.identity}` } };
}

/** What is best here, where nothing is said. Proxmox's own defaults are older than most guests. */
function withDefaults(shape: Shape): Shape {
  return {
    ...shape,
    scsiController: shape.scsiController ?? "VirtioSingle",
    guestOs: shape.guestOs ?? { family: "Linux" },
    cpu: { cores: 1, ...shape.cpu },
    ...(shape.pci?.some(({ pcie }) => pcie === true) === true ? { machineType: "q35" } : {}),
    ...present({ machineType: shape.machineType }),
  };
}
