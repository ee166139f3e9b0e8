import { externalId, hypervisorName, objectName, text, volumeId } from "../parts/names.ts";
import { ref } from "../parts/references.ts";
import {
  enumeration,
  exactlyOne,
  listMap,
  object,
  observedBytes,
  optional,
  rule,
  set,
  string,
  withDefault,
} from "../schema/index.ts";
import { guestOs } from "../virtual-machine/devices.ts";

const http = object(
  "A file on a web server. It is brought to the hypervisors where it is needed.",
  {
    url: string(
      "Where it is, such as `https://cloud.debian.org/…/debian-12-generic-amd64.qcow2`.",
      {
        minLength: 8,
        maxLength: 2048,
        pattern: "^https?://[^\\s]+$",
        rules: [
          rule(
            "!self.matches('^https?://[^/]*@')",
            "url cannot carry a user or password: everybody who can read the object would see them",
          ),
        ],
      },
    ),
    checksum: string(
      "The file's checksum, as `sha256:` or `sha512:` and the hexadecimal digest. What does not match is never used.",
      {
        maxLength: 135,
        pattern: "^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$",
      },
    ),
    compression: withDefault(
      enumeration("How the file is packed. The checksum is that of the packed file.", [
        "None",
        "Gzip",
        "Bzip2",
        "Xz",
        "Zstd",
      ]),
      "None",
    ),
  },
);

const volume = object("A volume that is already on a hypervisor. It is used, never owned.", {
  hypervisorRef: ref("Hypervisor", "The Hypervisor that has it."),
  id: volumeId("Its id there, such as `local:import/debian-12.qcow2`."),
});

const template = object("A template on a hypervisor. It is used, never owned.", {
  hypervisorRef: ref("Hypervisor", "The Hypervisor that has it."),
  externalId: externalId('Its id there, such as the VMID `"9000"`.'),
});

const prefetch = listMap(
  "Hypervisors to which the file is brought at once, before a machine asks for it.",
  object("One hypervisor.", {
    hypervisor: objectName("Name of the Hypervisor."),
    storages: optional(
      set("The storages to bring it to. Absent: the Hypervisor's default.", storage(), {
        maxItems: 32,
      }),
    ),
  }),
  { key: "hypervisor", maxItems: 64 },
);

export const vmImageSpec = object(
  "Where the image comes from and what it is.",
  {
    source: object(
      "Where the image comes from: exactly one of http, volume and template.",
      { http: optional(http), volume: optional(volume), template: optional(template) },
      {
        rules: [
          exactlyOne(
            ["http", "volume", "template"],
            "source must have exactly one of http, volume and template",
          ),
        ],
      },
    ),
    format: withDefault(
      enumeration("The format of the file. It is never guessed from the content.", [
        "qcow2",
        "raw",
        "vmdk",
        "vdi",
        "vhd",
        "vhdx",
        "ova",
        "iso",
      ]),
      "qcow2",
    ),
    fileName: optional(
      string(
        "The file's name on the storages. One that is already there is accepted by name and size, marked ChecksumUnverified, and never deleted. Absent: Berth's own, with the checksum in it.",
        { minLength: 1, maxLength: 128, pattern: "^[A-Za-z0-9][A-Za-z0-9_.+=-]*$" },
      ),
    ),
    size: optional(observedBytes("How large the file is, where that is known beforehand.")),
    architecture: optional(
      enumeration("The processors that it is for. Absent: that of the node.", [
        "x86_64",
        "aarch64",
      ]),
    ),
    guestOs: optional(guestOs),
    prefetch: optional(prefetch),
    description: optional(text("Notes for people.", 1024)),
  },
  {
    rules: [
      rule(
        "!has(self.prefetch) || has(self.source.http)",
        "prefetch brings a file from source.http: a volume or template is already where it is",
        { fieldPath: ".prefetch" },
      ),
    ],
  },
);

function storage(): ReturnType<typeof hypervisorName> {
  return hypervisorName("A storage.");
}
