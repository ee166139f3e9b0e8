import {
  array,
  atMostOne,
  boolean,
  enumeration,
  exactlyOne,
  listMap,
  object,
  optional,
  rule,
  set,
  string,
  withDefault,
} from "../schema/index.ts";
import type { Field } from "../schema/index.ts";
import { hypervisorName, partName, volumeId } from "../parts/names.ts";
import { secretKeyRef } from "../parts/references.ts";
import { networksMax } from "./networks.ts";

type CloudInitData = { inline?: string; secretRef?: { name: string; key: string }; file?: string };
type WrittenCloudInitData = {
  inline?: string;
  secretRef?: { name: string; key?: string };
  file?: string;
};

/** A part of the seed: written here, kept in a Secret, or lying on the hypervisor. */
function data(description: string, key: string): Field<CloudInitData, WrittenCloudInitData> {
  return object(
    description,
    {
      inline: optional(
        string("The content itself. Readable by everybody who can read the object: no secrets.", {
          minLength: 1,
          maxLength: 65_536,
        }),
      ),
      secretRef: optional(secretKeyRef("A Secret of this namespace that holds it.", key)),
      file: optional(
        volumeId(
          "A file that is already on the hypervisor, by its id there, such as `local:snippets/web.yaml`. It is used, never owned.",
        ),
      ),
    },
    {
      rules: [
        exactlyOne(
          ["inline", "secretRef", "file"],
          "give the content by exactly one of inline, secretRef and file",
        ),
      ],
    },
  );
}

const address4 = "[0-9]{1,3}(\\.[0-9]{1,3}){3}";
const address6 = "[0-9A-Fa-f:]{2,39}(:[0-9]{1,3}(\\.[0-9]{1,3}){3})?";

const ipv4 = object(
  "IPv4 on this card. Absent: not configured.",
  {
    method: enumeration("How the guest gets its address.", ["DHCP", "Static", "None"]),
    address: optional(
      string("The address with its prefix, such as `10.0.0.5/24`.", {
        maxLength: 18,
        pattern: `^${address4}/([0-9]|[12][0-9]|3[0-2])$`,
      }),
    ),
    gateway: optional(
      string("The way out of the network.", { maxLength: 15, pattern: `^${address4}$` }),
    ),
  },
  { rules: staticRules() },
);

const ipv6 = object(
  "IPv6 on this card. Absent: not configured.",
  {
    method: enumeration("How the guest gets its address. Auto listens to router announcements.", [
      "Auto",
      "DHCP",
      "Static",
      "None",
    ]),
    address: optional(
      string("The address with its prefix, such as `2001:db8::5/64`.", {
        maxLength: 49,
        pattern: `^${address6}/([0-9]|[1-9][0-9]|1[01][0-9]|12[0-8])$`,
      }),
    ),
    gateway: optional(
      string("The way out of the network.", { maxLength: 45, pattern: `^${address6}$` }),
    ),
  },
  { rules: staticRules() },
);

const user = object(
  "The account to log in with.",
  {
    name: optional(
      string("Its name. Absent: the image's own default user.", {
        minLength: 1,
        maxLength: 32,
        pattern: "^[a-z_][a-z0-9_-]*$",
      }),
    ),
    sshAuthorizedKeys: optional(
      set(
        "Public keys that may log in.",
        string("One line as in authorized_keys.", {
          minLength: 16,
          maxLength: 4096,
          pattern: "^[^\\r\\n]+$",
        }),
        { maxItems: 64 },
      ),
    ),
    passwordHash: optional(
      string("The password as a crypt(3) hash, such as `$6$…`. Never the password itself.", {
        maxLength: 256,
        pattern: "^\\$(1|2[aby]|5|6|y|7|gy)\\$[A-Za-z0-9./$=,]+$",
      }),
    ),
    passwordHashSecretRef: optional(
      secretKeyRef("A Secret of this namespace that holds the crypt(3) hash.", "passwordHash"),
    ),
  },
  {
    rules: [
      atMostOne(
        ["passwordHash", "passwordHashSecretRef"],
        "give the password by passwordHash or by passwordHashSecretRef, not both",
      ),
    ],
  },
);

/** What the guest is told at its first boot. */
export const cloudInit = object(
  "What the guest is told at its first boot. It counts until the machine first stood; a later edit is refused as ReplacementRequired and changes nothing.",
  {
    userData: optional(data("The user-data, such as a `#cloud-config` document.", "userData")),
    vendorData: optional(data("The vendor-data, which the user-data overrules.", "vendorData")),
    metaData: optional(
      data("The meta-data. Absent: made from the object's name and identity.", "metaData"),
    ),
    networkData: optional(
      data(
        "The network configuration as cloud-init reads it, in place of `networks`.",
        "networkData",
      ),
    ),
    hostname: optional(
      string("The guest's host name. Absent: the object's name.", {
        minLength: 1,
        maxLength: 253,
        pattern: "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$",
      }),
    ),
    user: optional(user),
    networks: optional(
      listMap(
        "Addresses, by the name of the network card.",
        object("The addresses of one card.", {
          name: partName("The card: an entry of `spec.networks` with this name."),
          ipv4: optional(ipv4),
          ipv6: optional(ipv6),
        }),
        { key: "name", maxItems: networksMax },
      ),
    ),
    dns: optional(
      object("How the guest resolves names. Absent: as DHCP says, else as the node does.", {
        servers: optional(
          array("Addresses of the servers, in order.", nameServer(), { maxItems: 8 }),
        ),
        searchDomains: optional(
          array("Domains in which short names are looked up, in order.", searchDomain(), {
            maxItems: 16,
          }),
        ),
      }),
    ),
    upgradePackages: optional(
      boolean("Upgrade the guest's packages at first boot. Absent: as the image does."),
    ),
    datasource: withDefault(
      enumeration("The form in which the guest finds all this. ConfigDrive is for Windows.", [
        "NoCloud",
        "ConfigDrive",
      ]),
      "NoCloud",
    ),
    storage: optional(
      hypervisorName(
        "The storage for the drive that carries it. Absent: chosen among those that take it.",
      ),
    ),
  },
  {
    rules: [
      atMostOne(
        ["networkData", "networks"],
        "networkData replaces networks: give one of them, not both",
      ),
      rule(
        "!has(self.userData) || !has(self.userData.file) || (!has(self.user) && !has(self.upgradePackages))",
        "user and upgradePackages cannot be added to a userData file that lies on the hypervisor: write them into that file, or give userData inline or by secretRef",
        { fieldPath: ".userData" },
      ),
    ],
  },
);

function staticRules(): ReturnType<typeof rule>[] {
  return [
    rule(
      "(self.method == 'Static') == has(self.address)",
      "address goes with method: Static, and Static needs an address",
      { fieldPath: ".address" },
    ),
    rule("!has(self.gateway) || self.method == 'Static'", "gateway goes with method: Static", {
      fieldPath: ".gateway",
    }),
  ];
}

function nameServer(): Field<string> {
  return string("An IPv4 or IPv6 address.", {
    maxLength: 45,
    pattern: `^(${address4}|${address6})$`,
  });
}

function searchDomain(): Field<string> {
  return string("A domain.", {
    minLength: 1,
    maxLength: 253,
    pattern: "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$",
  });
}
