import {
  boolean,
  enumeration,
  object,
  optional,
  set,
  string,
  withDefault,
} from "../schema/index.ts";
import { externalId, text } from "../parts/names.ts";
import { ref } from "../parts/references.ts";
import { cloudInit } from "./cloud-init.ts";
import { cpu, firmware, machineType, memory } from "./cpu-memory.ts";
import { devices, guestAgent, guestOs } from "./devices.ts";
import { cdroms, disks, templateDisks } from "./disks.ts";
import { bootOrder, networks } from "./networks.ts";
import { highAvailability, placement, shutdown, startup } from "./placement.ts";
import { specRules } from "./rules.ts";
import { source } from "./source.ts";

/** What the machine is made of, but for its disks. */
const machine = {
  hypervisorRef: ref(
    "Hypervisor",
    "The Hypervisor that the machine lives on. Once it stands there, only a VMMigration moves it to another.",
  ),
  placement: optional(placement),
  machineName: optional(
    string("The machine's name on the hypervisor. Absent: the object's name.", {
      minLength: 1,
      maxLength: 80,
      pattern: "^[A-Za-z0-9]([A-Za-z0-9 _.()+-]*[A-Za-z0-9)+])?$",
    }),
  ),
  description: optional(
    text(
      "Notes for people, shown on the hypervisor. Berth's own line stands below them. Absent: left as they are.",
      4096,
    ),
  ),
  tags: optional(
    set(
      "Tags on the hypervisor. Absent: left as they are.",
      string("A tag.", { minLength: 1, maxLength: 64, pattern: "^[a-z0-9_][a-z0-9_.+-]*$" }),
      { maxItems: 32 },
    ),
  ),
  classRef: optional(
    ref("VMClass", "The VMClass that gives cpu, memory, firmware and machine type."),
  ),
  cpu: optional(cpu),
  memory: optional(memory),
  firmware: optional(firmware),
  machineType: optional(machineType),
  guestOs: optional(guestOs),
  source: optional(source),
};

const attachments = {
  cdroms: optional(cdroms),
  networks: optional(networks),
  bootOrder: optional(bootOrder),
  devices: optional(devices),
  guestAgent: optional(guestAgent),
  cloudInit: optional(cloudInit),
};

/** How it is kept. */
const policies = {
  powerState: withDefault(
    enumeration(
      "Whether the machine runs. Suspended keeps its memory on disk. A restart is asked for by the annotation berth.dev/restart-at.",
      ["Running", "Stopped", "Suspended"],
    ),
    "Running",
  ),
  shutdown: withDefault(shutdown, {}),
  startOnBoot: optional(
    boolean(
      "Start the machine with its node. Absent: a new machine does where the hypervisor can; otherwise left as it is.",
    ),
  ),
  startup: optional(startup),
  highAvailability: optional(highAvailability),
  updatePolicy: withDefault(
    enumeration(
      "What a change may cost the running machine. Live: only what it does not notice; the rest waits for the next restart. Reboot: it may be restarted. PowerOff: it may be stopped and started.",
      ["Live", "Reboot", "PowerOff"],
    ),
    "Live",
  ),
  driftPolicy: withDefault(
    enumeration(
      "What happens when somebody changes the machine by hand: put it right, only report it, or leave it. Also what cannot be put right, such as a disk that was grown, is then only reported or left; with Correct it is ReplacementRequired. While an edit is not applied yet, all that differs counts as edited. A disk that is not known to have been declared is never taken out: it is listed in status.undeclared.",
      ["Correct", "Warn", "Ignore"],
    ),
    "Correct",
  ),
  onMissing: withDefault(
    enumeration(
      "What happens when the machine once stood and is gone: stop and say so, or make it anew from its source.",
      ["Stall", "Recreate"],
    ),
    "Stall",
  ),
  deletionPolicy: optional(
    enumeration(
      "What becomes of the machine when this object is deleted. Absent: a machine that Berth made is deleted, an adopted one is retained; status.deletionPolicy shows which.",
      ["Delete", "Retain"],
    ),
  ),
  deletionProtection: optional(
    boolean("The hypervisor refuses to delete the machine and its disks, and so does Berth."),
  ),
  externalId: optional(
    externalId(
      'The machine\'s id on the hypervisor, such as the VMID `"200"`, if you must choose it. Absent: Berth chooses one that is free.',
    ),
  ),
  adopt: optional(
    enumeration(
      "Take over the existing machine with this externalId. Only: never make one. IfPresent: make it if there is none.",
      ["Only", "IfPresent"],
    ),
  ),
};

const left =
  "What is left out is chosen when the machine is made, as each field says; a machine that is already there keeps what it has.";

/** The spec of one VirtualMachine. */
export const vmSpec = object(
  `The machine as it should be. ${left}`,
  { ...machine, disks: optional(disks), ...attachments, ...policies },
  { rules: specRules },
);

/** The same as the template of a set, whose disks may also get smaller: members are replaced. */
export const vmTemplateSpec = object(
  `The machines as they should be, all alike. ${left}`,
  { ...machine, disks: optional(templateDisks), ...attachments, ...policies },
  { rules: specRules },
);
