import {
  array,
  enumeration,
  integer,
  listMap,
  object,
  observedBytes,
  optional,
} from "../schema/index.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import {
  externalId,
  hypervisorName,
  macAddress,
  objectName,
  partName,
  text,
  time,
  uuid,
  volumeId,
} from "../parts/names.ts";
import { plan, plannedSteps } from "../parts/plan.ts";
import { failedSteps, failure, operation, recentSteps, waitingFor } from "../parts/progress.ts";

const addresses = array(
  "The guest's addresses, the one to reach it by first.",
  object("One address.", {
    address: text("An IPv4 or IPv6 address.", 45),
    network: optional(partName("The network card, by its name in the spec.")),
    source: optional(enumeration("Who said so.", ["Agent", "Lease", "Declared"])),
  }),
  { maxItems: 32 },
);

const volume = {
  volume: volumeId("Its id on the hypervisor."),
  storage: optional(hypervisorName("The storage that holds it.")),
  size: optional(observedBytes("How large it is.")),
};

const disks = listMap(
  "The disks that the machine has.",
  object("One disk.", {
    name: partName("Its name in the spec."),
    ...volume,
    device: optional(text("The device as the hypervisor shows it.", 64)),
  }),
  { key: "name", maxItems: 64 },
);

const detachedDisks = listMap(
  "Disks whose entry was removed. They belong to the machine still: adding the same name attaches one again.",
  object("One disk.", {
    name: partName("The name that it had."),
    ...volume,
    since: optional(time("When it was detached.")),
  }),
  { key: "name", maxItems: 64 },
);

const undeclared = array(
  "Disks and network cards that the machine has and that no spec is known to have named. They are left alone.",
  object("One device.", {
    kind: enumeration("What it is.", ["Disk", "Network", "Drive", "Other"]),
    device: text("The device as the hypervisor shows it.", 64),
    detail: optional(text("What is known of it.", 256)),
  }),
  { maxItems: 32 },
);

/** What was seen. It never claims more than that. */
export const vmStatus = object("The machine as it was last seen.", {
  observedGeneration: optional(observedGeneration),
  appliedGeneration: optional(
    integer(
      "The newest generation of which everything was applied. What differs from it is drift; what differs while it is older than the object's generation is an edit that is still to be made.",
      { minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    ),
  ),
  hypervisor: optional(
    objectName("The Hypervisor on which the machine stands, from when it first stood there."),
  ),
  externalId: optional(externalId("Its id there: a VMID or a UUID. A locator, not an identity.")),
  identity: optional(
    uuid(
      "What tells this machine from all others. It is minted once and stamped into the machine.",
    ),
  ),
  node: optional(
    hypervisorName(
      "The node that it is on. While the VM does not exist: the node that it was last on, or that it is going to be created on.",
    ),
  ),
  powerState: optional(
    enumeration(
      "Whether it runs. Unknown means that it could not be observed. Absent where the VM does not exist.",
      ["Running", "Stopped", "Suspended", "Paused", "Unknown"],
    ),
  ),
  addresses: optional(addresses),
  disks: optional(disks),
  detachedDisks: optional(detachedDisks),
  networks: optional(
    listMap(
      "The network cards that the machine has.",
      object("One card.", {
        name: partName("Its name in the spec."),
        macAddress: optional(macAddress("Its hardware address.")),
        device: optional(text("The device as the hypervisor shows it.", 64)),
      }),
      { key: "name", maxItems: 32 },
    ),
  ),
  undeclared: optional(undeclared),
  deletionPolicy: optional(
    enumeration("What becomes of the machine when the object is deleted.", ["Delete", "Retain"]),
  ),
  plan: optional(plan),
  plannedSteps: optional(plannedSteps),
  operation: optional(operation),
  failure: optional(failure),
  failedSteps: optional(failedSteps),
  recentSteps: optional(recentSteps),
  lastTask: optional(
    text(
      "The hypervisor's name of the task that an operation of this VM ended with last. A task that is not newer is not the result of the next one.",
      512,
    ),
  ),
  waitingFor: optional(waitingFor),
  handledReconcileAt: optional(
    text("The last value of the annotation berth.dev/reconcile-at that was acted upon.", 128),
  ),
  handledRestartAt: optional(
    text("The last value of the annotation berth.dev/restart-at that was acted upon.", 128),
  ),
  conditions: optional(conditions),
});
