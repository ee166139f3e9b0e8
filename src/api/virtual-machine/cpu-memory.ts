import {
  boolean,
  byteSize,
  coreQuantity,
  enumeration,
  integer,
  listMap,
  object,
  optional,
  rule,
  string,
} from "../schema/index.ts";
import { hypervisorName } from "../parts/names.ts";

/**
 * What a VMClass can give and a VirtualMachine can say itself. No field here has a schema default:
 * one would be filled in on the VirtualMachine and then hide what its class says.
 */

const cores = integer("Cores of each socket.", { minimum: 1, maximum: 1024 });

const cpuOptions = {
  sockets: optional(
    integer("Sockets. Absent: 1. The machine has cores times sockets cpus.", {
      minimum: 1,
      maximum: 64,
    }),
  ),
  model: optional(
    string(
      "The cpu that the guest sees: `host` for that of the node, or a model such as `x86-64-v2-AES`. Absent: the hypervisor's default, with which machines can move between unlike nodes.",
      { minLength: 1, maxLength: 64, pattern: "^[A-Za-z0-9][A-Za-z0-9_.+-]*$" },
    ),
  ),
  features: optional(
    listMap(
      "Single features of the cpu model, switched on or off.",
      object("One feature.", {
        name: string("The feature, such as `aes` or `pdpe1gb`.", {
          minLength: 1,
          maxLength: 32,
          pattern: "^[a-z0-9][a-z0-9_.-]*$",
        }),
        state: enumeration("Whether the guest has it.", ["Enabled", "Disabled"]),
      }),
      { key: "name", maxItems: 32 },
    ),
  ),
  limit: optional(
    coreQuantity(
      'How much of the node\'s cpu time the machine gets at most, in cores: `2`, `500m` or `"1.5"`. Absent: no limit.',
    ),
  ),
  weight: optional(
    integer("Its share of cpu time against the other machines of the node. Absent: the same.", {
      minimum: 1,
      maximum: 262_144,
    }),
  ),
  numa: optional(boolean("Show the guest the NUMA layout of its sockets. Absent: false.")),
  hostCpus: optional(
    string("The cpus of the node on which the machine may run, such as `0-3,8`. Absent: all.", {
      minLength: 1,
      maxLength: 128,
      pattern: "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
    }),
  ),
};

const cpuDescription = "The machine's processors.";

/** In a VirtualMachine: the class may already say how many cores. */
export const cpu = object(`${cpuDescription} A field set here wins over the class.`, {
  cores: optional(cores),
  ...cpuOptions,
});

/** In a VMClass, which has to be complete. */
export const classCpu = object(cpuDescription, { cores, ...cpuOptions });

const memorySize = byteSize("How much memory the guest has, such as `4Gi`.");

const memoryOptions = {
  minimum: optional(
    byteSize(
      "What the guest may be shrunk to when the node is short of memory (ballooning). Absent: it keeps all of it.",
    ),
  ),
  ballooning: optional(
    boolean(
      "Whether the machine has a balloon device, through which its use is seen. Absent: true.",
    ),
  ),
  weight: optional(
    integer("Its share when memory is taken back from several machines. Absent: the same.", {
      minimum: 0,
      maximum: 50_000,
    }),
  ),
  hugePages: optional(
    enumeration("Take the memory from the node's huge pages of this size. Absent: normal pages.", [
      "2Mi",
      "1Gi",
    ]),
  ),
};

const memoryRules = [
  rule(
    "!has(self.minimum) || !has(self.size) || quantity(self.minimum).compareTo(quantity(self.size)) <= 0",
    "minimum cannot be more than size",
    { fieldPath: ".minimum" },
  ),
  rule(
    "!has(self.minimum) || !has(self.ballooning) || self.ballooning",
    "minimum needs the balloon device: set ballooning to true or leave minimum out",
    { fieldPath: ".minimum" },
  ),
];

const memoryDescription = "The machine's memory.";

export const memory = object(
  `${memoryDescription} A field set here wins over the class.`,
  { size: optional(memorySize), ...memoryOptions },
  { rules: memoryRules },
);

export const classMemory = object(
  memoryDescription,
  { size: memorySize, ...memoryOptions },
  { rules: memoryRules },
);

export const firmware = object(
  "How the machine starts, before its operating system.",
  {
    type: optional(enumeration("The kind of firmware. Absent: BIOS.", ["BIOS", "UEFI"])),
    secureBoot: optional(
      boolean(
        "Start only what is signed, with the usual keys enrolled. Needs UEFI. Absent: false.",
      ),
    ),
    tpm: optional(
      enumeration("The trusted platform module. Absent: None.", ["None", "V1.2", "V2.0"]),
    ),
    storage: optional(
      hypervisorName(
        "The storage for the firmware's variables and the module's state. Absent: that of the disk which the source fills.",
      ),
    ),
  },
  {
    rules: [
      rule(
        "!has(self.secureBoot) || !self.secureBoot || !has(self.type) || self.type == 'UEFI'",
        "secureBoot needs firmware of type UEFI",
        { fieldPath: ".secureBoot" },
      ),
    ],
  },
);

export const machineType = string(
  "The board that the hypervisor shows to the guest, such as `q35` or `pc-q35-9.0`. Absent: the hypervisor's default. Not all changes to it can be made once the machine stood.",
  { minLength: 1, maxLength: 64, pattern: "^[A-Za-z0-9][A-Za-z0-9_.+-]*$" },
);
