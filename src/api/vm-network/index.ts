import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import {
  hypervisorName,
  hypervisorPath,
  namespaceOrAll,
  objectName,
  text,
} from "../parts/names.ts";
import { sharedConditionMeanings, sharedReasonMeanings } from "../reasons.ts";
import { atMostOne, exactlyOne, integer, listMap, object, optional, set } from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";
import { mtu, vlan } from "../virtual-machine/networks.ts";

/** The three things that a card can be plugged into, one of which is given. */
const attachment = {
  bridge: optional(hypervisorName("A bridge of the nodes, such as `vmbr0`.")),
  virtualNetwork: optional(
    hypervisorName("A network that the hypervisor itself manages, such as libvirt's `default`."),
  ),
  portGroup: optional(hypervisorPath("A port group of a virtual switch.")),
};

const attachmentKinds = ["bridge", "virtualNetwork", "portGroup"] as const;

const vlans = {
  vlan: optional(integer("The VLAN that cards are put into. Absent: none.", vlan)),
  trunks: optional(
    set("VLANs that guests see tagged.", integer("A VLAN.", vlan), { maxItems: 128 }),
  ),
};

const override = object(
  "The same network on one hypervisor.",
  {
    hypervisor: objectName("Name of the Hypervisor."),
    ...attachment,
    ...vlans,
    mtu: optional(integer("The largest packet there.", mtu)),
  },
  {
    rules: [
      atMostOne(attachmentKinds, "give one of bridge, virtualNetwork and portGroup, not several"),
    ],
  },
);

const spec = object(
  "Where the network is found, and who may use it.",
  {
    description: optional(text("What the network is for.", 1024)),
    ...attachment,
    ...vlans,
    mtu: optional(integer("The largest packet. Absent: that of the bridge or switch.", mtu)),
    overrides: optional(
      listMap(
        "Where hypervisors know the network by another name or VLAN. What an entry leaves out is as above.",
        override,
        { key: "hypervisor", maxItems: 64 },
      ),
    ),
    allowedNamespaces: optional(
      set(
        "The namespaces whose machines may use it; `*` stands for all. Absent: all.",
        namespaceOrAll("A namespace, or `*`."),
        { maxItems: 256 },
      ),
    ),
  },
  {
    rules: [
      exactlyOne(
        attachmentKinds,
        "name the network by exactly one of bridge, virtualNetwork and portGroup; hypervisors that differ go into overrides",
      ),
    ],
  },
);

const status = object("What is known about the network.", {
  observedGeneration: optional(observedGeneration),
  conditions: optional(conditions),
});

/** Named networks. */
export const vmNetworkKind = defineKind({
  kind: "VMNetwork",
  plural: "vmnetworks",
  shortNames: ["vmnet"],
  namespaced: false,
  served: true,
  description:
    "A VMNetwork gives a name to a network that the hypervisors have: a bridge with a VLAN, a network that they manage, or a port group. It makes no network; it says where one is and which namespaces may use it.",
  spec,
  status,
  columns: [
    column("Bridge", ".spec.bridge", "The bridge."),
    column("Network", ".spec.virtualNetwork", "The network that the hypervisor manages."),
    column("Port Group", ".spec.portGroup", "The port group."),
    { ...column("VLAN", ".spec.vlan", "The VLAN."), type: "integer" },
    { ...column("MTU", ".spec.mtu", "The largest packet."), type: "integer", priority: 1 },
    conditionColumn("Ready", "Ready"),
    ageColumn,
  ],
  conditions: { types: sharedConditionMeanings, reasons: sharedReasonMeanings },
});

export type VMNetwork = ObjectOf<typeof vmNetworkKind>;
export type WrittenVMNetwork = WrittenObjectOf<typeof vmNetworkKind>;
export type VMNetworkSpec = ReadOf<typeof spec>;
export type VMNetworkStatus = ReadOf<typeof status>;
