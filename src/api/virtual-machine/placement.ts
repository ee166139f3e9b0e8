import {
  array,
  atMostOne,
  boolean,
  enumeration,
  integer,
  map,
  object,
  optional,
  rule,
  set,
  string,
  withDefault,
} from "../schema/index.ts";
import { hypervisorName, hypervisorPath } from "../parts/names.ts";

const awayFrom = array(
  "Machines to keep away from: it runs on no node on which one of them runs.",
  object("Machines of this namespace, by labels of their objects.", {
    matchLabels: map(
      "Labels that they have. All of them have to match.",
      string("The value.", {
        maxLength: 63,
        pattern: "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
      }),
      { minProperties: 1, maxProperties: 16 },
    ),
    policy: optional(
      enumeration(
        "Whether it waits for such a node, or takes another if there is none. Not given: Required.",
        ["Required", "Preferred"],
      ),
    ),
  }),
  { maxItems: 8 },
);

/** Where on the hypervisor the machine runs. */
export const placement = object(
  "Where on the hypervisor the machine runs. Absent: Berth chooses a healthy node that has room.",
  {
    node: optional(hypervisorName("The node that it runs on.")),
    nodes: optional(
      set("The nodes among which Berth chooses.", hypervisorName("A node."), {
        minItems: 1,
        maxItems: 64,
      }),
    ),
    awayFrom: optional(awayFrom),
    mode: withDefault(
      enumeration(
        "Initial decides where it is made, and follows when it is moved by high availability or by a person. Enforce moves it back.",
        ["Initial", "Enforce"],
      ),
      "Initial",
    ),
    pool: optional(hypervisorPath("The resource pool that it belongs to on the hypervisor.")),
    folder: optional(hypervisorPath("The folder in which the hypervisor shows it, if it has any.")),
  },
  {
    rules: [
      atMostOne(["node", "nodes"], "name one node or a choice of nodes, not both"),
      rule(
        "self.mode == 'Initial' || has(self.node) || has(self.nodes) || has(self.awayFrom)",
        "mode: Enforce needs something to enforce: node, nodes or awayFrom",
        { fieldPath: ".mode" },
      ),
    ],
  },
);

const seconds = { minimum: 0, maximum: 86_400 };

export const startup = object("The order in which a node starts and stops its machines.", {
  order: optional(
    integer("Lower starts earlier and stops later. Absent: after all that have one.", {
      minimum: 0,
      maximum: 100_000,
    }),
  ),
  delaySeconds: optional(integer("How long the node waits before it starts the next.", seconds)),
  stopSeconds: optional(integer("How long the node waits for this one to stop.", seconds)),
});

export const highAvailability = object(
  "Whether the hypervisor restarts the machine elsewhere when its node fails. Absent: left as it is.",
  {
    enabled: boolean("Whether it is watched over."),
    group: optional(hypervisorName("The hypervisor's group or rule of nodes that it follows.")),
    maxRestarts: optional(
      integer("Attempts to restart it on one node.", { minimum: 0, maximum: 100 }),
    ),
    maxRelocations: optional(
      integer("Attempts to start it on another node.", { minimum: 0, maximum: 100 }),
    ),
  },
);

export const shutdown = object("How the machine is stopped.", {
  graceSeconds: withDefault(
    integer("How long the guest has to shut down by itself.", seconds),
    180,
  ),
  force: withDefault(
    boolean("Whether it is switched off after that. Otherwise Berth waits and says so."),
    true,
  ),
});
