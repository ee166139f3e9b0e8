import { rule } from "../schema/rule.ts";
import {
  boolean,
  enumeration,
  integer,
  map,
  object,
  optional,
  set,
  string,
  withDefault,
} from "../schema/index.ts";
import { vmTemplateSpec } from "../virtual-machine/spec.ts";

const members = { minimum: 0, maximum: 1000 };

const template = object(
  "What every member is made from.",
  {
    metadata: optional(
      object("Metadata of the members.", {
        labels: optional(
          map(
            "Labels that the members get.",
            string("The value.", {
              maxLength: 63,
              pattern: "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
            }),
            { maxProperties: 64 },
          ),
        ),
        annotations: optional(
          map("Annotations that the members get.", string("The value.", { maxLength: 16_384 }), {
            maxProperties: 64,
          }),
        ),
      }),
    ),
    spec: vmTemplateSpec,
  },
  {
    rules: [
      shared("!has(self.spec.externalId) && !has(self.spec.adopt)", "externalId and adopt"),
      shared("!has(self.spec.machineName)", "machineName"),
      shared(
        "!has(self.spec.networks) || self.spec.networks.all(n, !has(n.macAddress))",
        "macAddress",
      ),
      shared(
        "!has(self.spec.cloudInit) || !has(self.spec.cloudInit.networks) || self.spec.cloudInit.networks.all(n, (!has(n.ipv4) || !has(n.ipv4.address)) && (!has(n.ipv6) || !has(n.ipv6.address)))",
        "a static address",
      ),
      shared(
        "!has(self.spec.cloudInit) || !has(self.spec.cloudInit.hostname)",
        "cloudInit.hostname",
      ),
      rule(
        "!has(self.spec.source) || !has(self.spec.source.importedDisk) || self.spec.source.importedDisk.mode == 'Copy'",
        "only one machine can take a disk: in a template importedDisk needs mode: Copy",
        { fieldPath: ".spec.source" },
      ),
    ],
  },
);

const rollout = object(
  "How a change of the template reaches the members.",
  {
    maxUnavailable: withDefault(
      integer("How many members may be not Ready at a time.", members),
      1,
    ),
    maxSurge: withDefault(
      integer(
        "How many members more than replicas there may be meanwhile. Only where members are replaced.",
        members,
      ),
      0,
    ),
    partition: withDefault(
      integer("Members with a lower ordinal keep what they have.", members),
      0,
    ),
    gate: withDefault(
      set(
        "Conditions that a changed member must have before the next one is touched.",
        enumeration("A condition of VirtualMachine.", ["Ready", "AgentReady", "Synced"]),
        { minItems: 1, maxItems: 3 },
      ),
      ["Ready"],
    ),
    minReadySeconds: withDefault(
      integer("How long it must have them.", { minimum: 0, maximum: 86_400 }),
      0,
    ),
    paused: withDefault(
      boolean("No member is changed while this is true. Members are still added and removed."),
      false,
    ),
    deadlineSeconds: withDefault(
      integer("After how long without progress the rollout stalls and says so.", {
        minimum: 60,
        maximum: 604_800,
      }),
      1800,
    ),
  },
  {
    rules: [
      rule(
        "self.maxUnavailable + self.maxSurge > 0",
        "maxUnavailable and maxSurge cannot both be 0: nothing could ever be changed",
        { fieldPath: ".maxUnavailable" },
      ),
    ],
  },
);

const spread = object("How the members are spread over the nodes. Absent: where there is room.", {
  over: withDefault(enumeration("What they are spread over.", ["Node"]), "Node"),
  maxSkew: withDefault(
    integer("By how many members the fullest and the emptiest may differ.", {
      minimum: 1,
      maximum: 1000,
    }),
    1,
  ),
  policy: withDefault(
    enumeration("Whether a member waits for a place that keeps to it.", ["Required", "Preferred"]),
    "Preferred",
  ),
});

export const vmSetSpec = object(
  "The set as it should be.",
  {
    replicas: withDefault(integer("How many members there are.", members), 1),
    template,
    updateStrategy: withDefault(
      enumeration(
        "How members follow the template. InPlace changes them and never replaces one; what cannot be changed is refused. Replace deletes a member and makes it anew under the same name; disks with onDelete: Retain are kept for it.",
        ["InPlace", "Replace"],
      ),
      "InPlace",
    ),
    rollout: withDefault(rollout, {}),
    spread: optional(spread),
  },
  {
    rules: [
      rule(
        "self.rollout.maxSurge == 0 || self.updateStrategy == 'Replace'",
        "rollout.maxSurge is only for updateStrategy: Replace: members that are changed in place need no others",
        { fieldPath: ".rollout" },
      ),
    ],
  },
);

/** A field that two members cannot both have. */
function shared(expression: string, what: string): ReturnType<typeof rule> {
  return rule(expression, `${what} cannot be in a template: all members would share it`, {
    fieldPath: ".spec",
  });
}
