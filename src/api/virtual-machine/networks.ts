import {
  array,
  boolean,
  enumeration,
  exactlyOne,
  integer,
  listMap,
  object,
  optional,
  rule,
  set,
} from "../schema/index.ts";
import { hypervisorName, macAddress, partName } from "../parts/names.ts";
import { ref } from "../parts/references.ts";

export const networksMax = 32;

export const vlan = { minimum: 1, maximum: 4094 };
export const mtu = { minimum: 576, maximum: 65_520 };

const network = object(
  "One network card.",
  {
    name: partName("The card's own name, which `cloudInit` and `bootOrder` refer to."),
    networkRef: optional(ref("VMNetwork", "The network that it is plugged into.")),
    bridge: optional(
      hypervisorName("A bridge of the node to plug into, where no VMNetwork describes it."),
    ),
    vlan: optional(integer("The VLAN of a bridge. A VMNetwork has its own.", vlan)),
    trunks: optional(
      set("VLANs of a bridge that the guest sees tagged.", integer("A VLAN.", vlan), {
        maxItems: 128,
      }),
    ),
    mtu: optional(integer("The largest packet. Absent: that of the network.", mtu)),
    macAddress: optional(
      macAddress(
        "The hardware address, such as `52:54:00:12:34:56`. Absent: one is chosen and then kept; see status.",
      ),
    ),
    model: optional(
      enumeration("The card that the guest sees. Absent: the best that the hypervisor has.", [
        "virtio",
        "e1000",
        "e1000e",
        "rtl8139",
        "vmxnet3",
      ]),
    ),
    firewall: optional(boolean("Apply the hypervisor's firewall to this card. Absent: false.")),
    connected: optional(boolean("Whether the cable is plugged in. Absent: true.")),
    queues: optional(
      integer("Queues of the card, for several cpus. Absent: the hypervisor's default.", {
        minimum: 1,
        maximum: 64,
      }),
    ),
    bytesPerSecond: optional(
      integer("The most that the card may send and receive. Absent: no limit.", {
        minimum: 1024,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
    ),
  },
  {
    rules: [
      exactlyOne(
        ["networkRef", "bridge"],
        "name the network by exactly one of networkRef and bridge",
      ),
      rule(
        "!has(self.networkRef) || (!has(self.vlan) && !has(self.trunks))",
        "vlan and trunks go with bridge: a VMNetwork has its own, so remove them or use bridge",
        { fieldPath: ".networkRef" },
      ),
    ],
  },
);

export const networks = listMap("The machine's network cards, keyed by name.", network, {
  key: "name",
  maxItems: networksMax,
  rules: [
    rule(
      "self.all(a, !has(a.macAddress) || self.exists_one(b, has(b.macAddress) && b.macAddress.lowerAscii() == a.macAddress.lowerAscii()))",
      "two network cards have the same macAddress",
    ),
  ],
});

/** From where the machine starts, in order. */
export const bootOrder = array(
  "What the firmware tries to start from, in this order. Absent: the disk that the source fills, then drives, then networks.",
  object(
    "One place to start from.",
    {
      disk: optional(partName("A disk, by name.")),
      cdrom: optional(partName("A drive, by name.")),
      network: optional(partName("A network card, by name.")),
    },
    {
      rules: [
        exactlyOne(
          ["disk", "cdrom", "network"],
          "an entry of bootOrder names exactly one disk, cdrom or network",
        ),
      ],
    },
  ),
  { minItems: 1, maxItems: 16 },
);
