import type { VirtualMachine } from "../../api/index.ts";
import type { NetworkShape } from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";
import type { Declaration } from "./declaration.ts";

type Card = NonNullable<VirtualMachine["spec"]["networks"]>[number];

/** A card, with what its VMNetwork says on this hypervisor. */
export function networkShape(card: Card, declaration: Declaration): NetworkShape {
  const place = placeOf(card, declaration);
  const { name, model, macAddress, firewall, connected, queues, bytesPerSecond } = card;
  return defined<NetworkShape>({
    name,
    model,
    network: place.network,
    vlan: card.vlan ?? place.vlan,
    trunks: card.trunks ?? place.trunks,
    mtu: card.mtu ?? place.mtu,
    macAddress: macAddress?.toLowerCase(),
    firewall,
    connected,
    queues,
    bytesPerSecond,
  });
}

interface Place {
  readonly network?: string | undefined;
  readonly vlan?: number | undefined;
  readonly trunks?: readonly number[] | undefined;
  readonly mtu?: number | undefined;
}

function placeOf({ networkRef, bridge }: Card, { networks, hypervisor }: Declaration): Place {
  const spec = networkRef && networks.get(networkRef.name)?.spec;
  if (spec === undefined) return { network: bridge };
  const own = spec.overrides?.find((entry) => entry.hypervisor === hypervisor.metadata.name);
  // What an entry leaves out is as for all.
  return { ...placeIn(spec), ...(own && placeIn(own)) };
}

interface Attachment extends Omit<Place, "network"> {
  readonly bridge?: string;
  readonly virtualNetwork?: string;
  readonly portGroup?: string;
}

function placeIn({ bridge, virtualNetwork, portGroup, vlan, trunks, mtu }: Attachment): Place {
  return defined<Place>({ network: bridge ?? virtualNetwork ?? portGroup, vlan, trunks, mtu });
}
