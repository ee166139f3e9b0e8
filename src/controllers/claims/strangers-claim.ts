import { annotations } from "../../api/index.ts";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";

/** A Claim of an earlier object of the same name. */
export function strangersClaim(vm: VirtualMachine, { spec }: Claim): Failure {
  const key = objectKey(vm.metadata);
  return {
    category: "IdentityConflict",
    message:
      `An earlier object ${key} left the machine ${spec.externalId} on ${spec.hypervisor.name}, ` +
      "and nothing proves that it belongs to this one.",
    remedy:
      `To give it to this object: kubectl annotate vm -n ${spec.owner.namespace} ` +
      `${spec.owner.name} ${annotations.identity}=${spec.identity}`,
  };
}
