import { conditions, observedGeneration } from "../parts/conditions.ts";
import { hypervisorName, objectName, text } from "../parts/names.ts";
import { failure } from "../parts/progress.ts";
import {
  array,
  boolean,
  enumeration,
  integer,
  listMap,
  object,
  observedBytes,
  optional,
  set,
  string,
} from "../schema/index.ts";
import type { Field } from "../schema/index.ts";
import { sweepStatus } from "./sweep-status.ts";

const nodes = listMap(
  "Its nodes.",
  object("One node.", {
    name: hypervisorName("Its name."),
    health: enumeration("Whether it works. Unknown means that it could not be seen.", [
      "Healthy",
      "Unhealthy",
      "Maintenance",
      "Unknown",
    ]),
    version: optional(text("The version of the software on it.", 128)),
    cpus: optional(integer("Its logical processors.", { minimum: 0, maximum: 65_536 })),
    memory: optional(observedBytes("Its memory.")),
    message: optional(text("What is the matter with it.", 512)),
  }),
  { key: "name", maxItems: 128 },
);

const storages = listMap(
  "Its storages. How full they are is in the metrics, because it changes all the time.",
  object("One storage.", {
    name: hypervisorName("Its name."),
    type: optional(text("What kind it is, in the hypervisor's words.", 64)),
    shared: optional(boolean("Whether all nodes see the same volumes.")),
    usable: boolean("Whether it can be used now."),
    contents: optional(
      set(
        "What it takes.",
        enumeration("A kind of content.", ["Disks", "Images", "ISOs", "Snippets", "Backups"]),
        { maxItems: 8 },
      ),
    ),
    nodes: optional(
      set("The nodes that have it, where not all do.", hypervisorName("A node."), {
        maxItems: 128,
      }),
    ),
    capacity: optional(observedBytes("How much it holds in all.")),
  }),
  { key: "name", maxItems: 128 },
);

function usedSecret(
  description: string,
): Field<{ secret: string; resourceVersion: string; endpoints: string[] }> {
  return object(description, {
    secret: text("The Secret, as namespace/name.", 320),
    resourceVersion: text("The version of it that was read.", 64),
    endpoints: array("The endpoints.", text("An endpoint.", 512), { maxItems: 16 }),
  });
}

export const hypervisorStatus = object("The hypervisor as it was last seen.", {
  observedGeneration: optional(observedGeneration),
  version: optional(text("The version of its software.", 128)),
  systemId: optional(text("The identity that answered. It has to be the one in the spec.", 256)),
  endpoint: optional(text("The endpoint in use.", 512)),
  credentials: optional(
    usedSecret(
      "The credentials in use and the endpoints that they were given for. They are sent nowhere else.",
    ),
  ),
  unlockCredentials: optional(
    usedSecret("The same of the account for unlocking, where one is named and was read."),
  ),
  nodes: optional(nodes),
  storages: optional(storages),
  capabilities: optional(
    set(
      "What it can do, such as ImportFromImage or LinkedClone.",
      string("A capability.", { maxLength: 64, pattern: "^[A-Z][A-Za-z0-9]*$" }),
      { maxItems: 64 },
    ),
  ),
  conflictsWith: optional(objectName("Another Hypervisor object for the same system.")),
  otherRun: optional(
    object("The run of this installation that acts on it instead of this one.", {
      epoch: integer("Its epoch.", { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }),
      place: optional(text("Where it is.", 256)),
      startedAt: optional(text("When it wrote its epoch, by its own clock.", 64)),
    }),
  ),
  observedBy: optional(
    text("The run that only observes it. An annotation for a takeover names this run.", 512),
  ),
  sweep: optional(sweepStatus),
  failure: optional(failure),
  conditions: optional(conditions),
});
