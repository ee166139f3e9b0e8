import {
  array,
  atMostOne,
  boolean,
  enumeration,
  immutable,
  integer,
  listMap,
  object,
  optional,
  rule,
  set,
  string,
  withDefault,
} from "../schema/index.ts";
import { hypervisorName, text } from "../parts/names.ts";
import { namespacedRef } from "../parts/references.ts";
import { allow, quotas } from "./access.ts";

const endpoint = string(
  "A URL: `https://pve1.example:8006` for proxmox, `https://vcenter.example` for vsphere, `qemu+tls://host/system` for libvirt.",
  {
    minLength: 8,
    maxLength: 512,
    pattern: "^[a-z][a-z0-9+.-]*://[^\\s]*$",
    rules: [
      rule(
        "!self.matches('^[a-z0-9+.-]+://[^/]*@')",
        "an endpoint cannot carry a user or password: put them into the Secret of credentials",
      ),
    ],
  },
);

const tls = object(
  "How the server proves who it is. Absent: by a certificate of a public authority.",
  {
    ca: optional(
      string("The certificates of the authority, as PEM.", {
        maxLength: 32_768,
        pattern: "^\\s*-----BEGIN CERTIFICATE-----",
      }),
    ),
    fingerprints: optional(
      set(
        "SHA-256 fingerprints of the servers' own certificates, of which each endpoint has one.",
        string("A fingerprint: 32 bytes in hexadecimal, with colons.", {
          maxLength: 95,
          pattern: "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){31}$",
        }),
        { minItems: 1, maxItems: 32 },
      ),
    ),
    serverName: optional(
      string("The name in the certificate, where it is not that of the endpoint.", {
        minLength: 1,
        maxLength: 253,
        pattern: "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$",
      }),
    ),
  },
  {
    rules: [atMostOne(["ca", "fingerprints"], "give the ca or the fingerprints, not both")],
  },
);

const slot = { minimum: 1, maximum: 1024 };

const slots = object("How much Berth does at once. What does not fit waits in line.", {
  hypervisor: withDefault(integer("Operations on the whole hypervisor.", slot), 16),
  node: withDefault(integer("Operations on one node.", slot), 4),
  storage: withDefault(
    integer("Copies onto one storage, on each node that has it for itself.", slot),
    1,
  ),
});

const limits = object("How gently Berth asks.", {
  callsPerNode: withDefault(
    integer("Calls that one node works on at once.", { minimum: 1, maximum: 64 }),
    2,
  ),
  callTimeoutSeconds: withDefault(
    integer("How long one call may take before its outcome counts as unknown.", {
      minimum: 1,
      maximum: 600,
    }),
    35,
  ),
  pollSeconds: withDefault(
    integer("How often the whole inventory is looked at.", { minimum: 1, maximum: 3600 }),
    10,
  ),
});

const storages = listMap(
  "What has to be known about single storages.",
  object("One storage.", {
    name: hypervisorName("Its name on the hypervisor."),
    exclusive: optional(
      boolean(
        "No other cluster keeps volumes on it. Only then can an unreferenced volume on a shared storage be told to be ours. Not given: false.",
      ),
    ),
    slots: optional(integer("Copies onto it at once, where it differs from slots.storage.", slot)),
  }),
  { key: "name", maxItems: 128 },
);

const idRange = object(
  "The ids that Berth chooses from. It should be Berth's own.",
  {
    first: integer("The lowest id.", { minimum: 100, maximum: 999_999_999 }),
    last: integer("The highest id.", { minimum: 100, maximum: 999_999_999 }),
  },
  {
    rules: [rule("self.first <= self.last", "first cannot be above last", { fieldPath: ".first" })],
  },
);

const defaults = object("What machines get that do not say.", {
  storage: optional(hypervisorName("The storage for disks.")),
  imageStorage: optional(hypervisorName("The storage for images and ISOs.")),
});

const orphans = object("What becomes of things on the hypervisor that nothing declares.", {
  policy: withDefault(
    enumeration(
      "Report makes Orphan objects and touches nothing. DeleteOwned also deletes what is stopped and provably Berth's own: mark and Claim agree. DeleteProbable also deletes volumes that failed operations of Berth probably left: all evidence fits, and nothing proves it.",
      ["Report", "DeleteOwned", "DeleteProbable"],
    ),
    "Report",
  ),
  graceSeconds: withDefault(
    integer("How long a thing must have been seen before it counts.", {
      minimum: 60,
      maximum: 31_536_000,
    }),
    3600,
  ),
  sweepSeconds: withDefault(
    integer("How often is looked for them.", { minimum: 60, maximum: 604_800 }),
    900,
  ),
});

/** A connection, and what may be done through it. */
export const hypervisorSpec = object(
  "The connection, and what may be done through it.",
  {
    type: enumeration("What it is.", ["proxmox", "libvirt", "vsphere"], {
      rules: [immutable("the type of a Hypervisor cannot change: make another object")],
    }),
    description: optional(text("Notes for people.", 1024)),
    endpoints: array(
      "Where it answers. Several of one cluster take over from each other. When they change, the credentials are not sent there until their Secret is written anew or another one is named.",
      endpoint,
      { minItems: 1, maxItems: 16 },
    ),
    credentials: optional(
      object("Who Berth is there. Absent: only the connection itself, as with a local socket.", {
        secretRef: namespacedRef(
          "Secret",
          "The Secret. proxmox: keys `tokenId` and `tokenSecret`. vsphere and libvirt: `username` and `password`. libvirt over TLS: `tls.crt` and `tls.key`.",
        ),
      }),
    ),
    unlockCredentials: optional(
      object(
        "A second account, used for one thing only: to clear a lock whose task is proven dead on a machine that is proven ours. Every use is an Event.",
        { secretRef: namespacedRef("Secret", "The Secret, with keys `username` and `password`.") },
      ),
    ),
    tls: optional(tls),
    systemId: optional(
      string(
        "The hypervisor's own identity, which Berth writes at first contact. From then on it cannot change; if another system answers, nothing is written to it.",
        { minLength: 1, maxLength: 256 },
      ),
    ),
    idRange: optional(idRange),
    slots: withDefault(slots, {}),
    limits: withDefault(limits, {}),
    defaults: optional(defaults),
    storages: optional(storages),
    allow: optional(allow),
    quotas: optional(quotas),
    imageDownload: withDefault(
      enumeration(
        "Who fetches images. Direct: the hypervisor itself, which resolves the URL once more. ViaBerth: Berth fetches and uploads.",
        ["Direct", "ViaBerth"],
      ),
      "Direct",
    ),
    privateImageNetworks: optional(
      set(
        "Private networks from which images may be fetched all the same.",
        string("An address with its prefix, such as `192.168.10.0/24`.", {
          minLength: 4,
          maxLength: 49,
          pattern: "^[0-9A-Fa-f.:]+/[0-9]{1,3}$",
        }),
        { maxItems: 32 },
      ),
    ),
    orphans: withDefault(orphans, {}),
  },
  {
    rules: [
      rule(
        "!has(oldSelf.systemId) || (has(self.systemId) && self.systemId == oldSelf.systemId)",
        "systemId is written once: keep the value that is there; a different system needs a Hypervisor of its own",
        { reason: "FieldValueForbidden", fieldPath: ".systemId" },
      ),
      rule(
        "self.type == 'libvirt' || self.endpoints.all(e, e.startsWith('https://'))",
        "endpoints of proxmox and vsphere are https:// URLs",
        { fieldPath: ".endpoints" },
      ),
      rule(
        "self.type != 'libvirt' || self.endpoints.all(e, e.matches('^[a-z]+([+][a-z]+)?:///?'))",
        "endpoints of libvirt are its own URIs, such as qemu+tls://host/system or qemu:///system",
        { fieldPath: ".endpoints" },
      ),
      rule(
        "self.type == 'libvirt' || has(self.credentials)",
        "credentials are missing: name the Secret with the token or password",
        { reason: "FieldValueRequired", fieldPath: ".credentials" },
      ),
      rule(
        "self.type == 'proxmox' || !has(self.idRange)",
        "idRange is for hypervisors with numbered machines: only proxmox",
        { fieldPath: ".idRange" },
      ),
      rule(
        "self.type == 'proxmox' || !has(self.unlockCredentials)",
        "unlockCredentials are for proxmox only: the others need none",
        { fieldPath: ".unlockCredentials" },
      ),
    ],
  },
);
