import { hypervisorName, partName, time } from "../parts/names.ts";
import { ref } from "../parts/references.ts";
import {
  boolean,
  enumeration,
  exactlyOne,
  immutable,
  integer,
  listMap,
  object,
  optional,
  rule,
  withDefault,
} from "../schema/index.ts";
import { vlan } from "../virtual-machine/networks.ts";

const fixed = "a VMMigration is for one machine and one target: make another VMMigration instead";

const diskMap = listMap(
  "Where single disks go, by their name in the VirtualMachine. The others go to `storage`.",
  object("One disk.", {
    name: partName("The disk's name."),
    storage: hypervisorName("The storage on the target."),
  }),
  { key: "name", maxItems: 64 },
);

const networkMap = listMap(
  "What the network cards are plugged into on the target, by their name in the VirtualMachine. A card with a networkRef needs none if the VMNetwork is there too.",
  object(
    "One card.",
    {
      name: partName("The card's name."),
      networkRef: optional(ref("VMNetwork", "The network on the target.")),
      bridge: optional(hypervisorName("A bridge on the target.")),
      vlan: optional(integer("The VLAN of that bridge.", vlan)),
    },
    {
      rules: [
        exactlyOne(
          ["networkRef", "bridge"],
          "name the network by exactly one of networkRef and bridge",
        ),
        rule("!has(self.vlan) || has(self.bridge)", "vlan goes with bridge", {
          fieldPath: ".vlan",
        }),
      ],
    },
  ),
  { key: "name", maxItems: 32 },
);

const target = object(
  "Where the machine goes.",
  {
    hypervisorRef: ref("Hypervisor", "The Hypervisor that it moves to."),
    node: optional(hypervisorName("The node there. Absent: Berth chooses.")),
    storage: optional(
      hypervisorName("The storage for its disks. Absent: the Hypervisor's default."),
    ),
    disks: optional(diskMap),
    networks: optional(networkMap),
  },
  { rules: [immutable(fixed)] },
);

export const vmMigrationSpec = object(
  "The move as it should go.",
  {
    vmRef: ref("VirtualMachine", "The VirtualMachine of this namespace that moves.", {
      rules: [immutable(fixed)],
    }),
    target,
    goal: withDefault(
      enumeration(
        "Plan only finds out how it would go. Migrate moves the machine. RollBack leaves it, or brings it back, on the side that it came from; a migration that was rolled back is over.",
        ["Plan", "Migrate", "RollBack"],
      ),
      "Migrate",
    ),
    approval: withDefault(
      enumeration(
        "Required waits for the annotation berth.dev/approve with the plan's hash. Automatic goes on if the plan finds nothing that forbids it.",
        ["Required", "Automatic"],
      ),
      "Required",
    ),
    mode: withDefault(
      enumeration(
        "Warm copies while the machine runs, and again what changed meanwhile. Cold stops it first.",
        ["Warm", "Cold"],
      ),
      "Warm",
    ),
    cutover: withDefault(
      object(
        "When the machine is stopped here and started there.",
        {
          when: withDefault(
            enumeration(
              "Automatic: as soon as the last copy fits into maxDowntimeSeconds. Manual: when this is set to Now. At: not before the time in `at`.",
              ["Automatic", "Manual", "Now", "At"],
            ),
            "Automatic",
          ),
          at: optional(time("The earliest time, for `when: At`.")),
          maxDowntimeSeconds: withDefault(
            integer("How long the machine may be down, as far as that can be told beforehand.", {
              minimum: 1,
              maximum: 86_400,
            }),
            300,
          ),
        },
        {
          rules: [
            rule("(self.when == 'At') == has(self.at)", "at goes with when: At, and At needs it", {
              fieldPath: ".at",
            }),
          ],
        },
      ),
      {},
    ),
    verify: withDefault(
      enumeration(
        "Full reads every block back from the target and compares. Changed trusts blocks that were already compared once.",
        ["Full", "Changed"],
      ),
      "Full",
    ),
    convert: withDefault(
      enumeration(
        "Whether the guest is fitted to the new hardware, on a copy that can be thrown away.",
        ["IfNeeded", "Never"],
      ),
      "IfNeeded",
    ),
    rehearse: withDefault(
      boolean("Start the copy once without network before the machine is moved, to see it boot."),
      false,
    ),
    keepSourceSeconds: withDefault(
      integer(
        "How long the machine stays ready to return after the move. The source is fenced, and never deleted by a migration.",
        { minimum: 0, maximum: 31_536_000 },
      ),
      86_400,
    ),
  },
  {
    rules: [
      rule(
        "oldSelf.goal != 'RollBack' || self.goal == 'RollBack'",
        "a migration that was rolled back is over: make another VMMigration",
        { reason: "FieldValueForbidden", fieldPath: ".goal" },
      ),
      rule(
        "oldSelf.goal != 'Migrate' || self.goal != 'Plan'",
        "a migration that has begun cannot become a plan again: use goal: RollBack, or the annotation berth.dev/paused",
        { reason: "FieldValueForbidden", fieldPath: ".goal" },
      ),
    ],
  },
);
