import type { NetworkShape } from "../../../hypervisor/index.ts";
import {
  formatProperties,
  parseProperties,
  property,
  withProperties,
} from "../wire/property-string.ts";
import type { Properties } from "../wire/property-string.ts";
import { ifSaid, present } from "./present.ts";
import { mebibyte } from "./sizes.ts";
import { numberOf } from "./values.ts";

const models = ["virtio", "e1000", "e1000e", "rtl8139", "vmxnet3"] as const;

type Model = (typeof models)[number];

/**
 * `virtio=BC:24:11:00:00:01,bridge=vmbr0`. The address is the value of the model; a card without
 * one gets it from the server, and a change of another option keeps it.
 */
export function writeNetwork(card: NetworkShape, current: string | undefined): string {
  const { model, macAddress, options } = split(current ?? "");
  const changed = withProperties(options, changes(card));
  const mac = card.macAddress?.toUpperCase() ?? macAddress;
  const head = card.model ?? model ?? "virtio";
  const rest = formatProperties(changed, "model");
  return [mac === undefined ? head : `${head}=${mac}`, rest].filter(Boolean).join(",");
}

function changes(card: NetworkShape): Record<string, string | undefined> {
  const { firewall, connected } = card;
  return {
    ...present({
      bridge: card.network,
      tag: ifSaid(card.vlan, String),
      trunks: ifSaid(card.trunks, (trunks) => trunks.toSorted((a, b) => a - b).join(";")),
      mtu: ifSaid(card.mtu, String),
      queues: ifSaid(card.queues, String),
      rate: ifSaid(card.bytesPerSecond, mebibytesPerSecond),
    }),
    ...(firewall === undefined ? {} : { firewall: firewall ? "1" : undefined }),
    ...(connected === undefined ? {} : { link_down: connected ? undefined : "1" }),
  };
}

export function readNetwork(text: string, name: string): NetworkShape {
  const { model, macAddress, options } = split(text);
  const rate = numberOf(property(options, "rate"));
  return {
    name,
    ...present({
      model,
      macAddress: macAddress?.toLowerCase(),
      network: property(options, "bridge"),
      vlan: numberOf(property(options, "tag")),
      trunks: ifSaid(property(options, "trunks"), (list) => list.split(";").map(Number)),
      mtu: numberOf(property(options, "mtu")),
      queues: numberOf(property(options, "queues")),
      bytesPerSecond: ifSaid(rate, (value) => Math.round(value * mebibyte)),
    }),
    firewall: property(options, "firewall") === "1",
    connected: property(options, "link_down") !== "1",
  };
}

/** `virtio=MAC,…` as it is stored, and `model=virtio,macaddr=MAC,…` as it may be sent. */
function split(text: string): { model?: Model; macAddress?: string; options: Properties } {
  const properties = parseProperties(text, "model");
  const keyed = properties.find(([key]) => isModel(key));
  const model = keyed?.[0] ?? property(properties, "model");
  const macAddress = keyed?.[1] ?? property(properties, "macaddr");
  const options = properties.filter(([key]) => {
    return !isModel(key) && key !== "model" && key !== "macaddr";
  });
  const known = model !== undefined && isModel(model) ? model : undefined;
  return { ...present({ model: known, macAddress }), options };
}

function isModel(text: string): text is Model {
  return models.some((model) => model === text);
}

/** Six digits after the point tell single bytes apart, and so survive the way back. */
function mebibytesPerSecond(bytes: number): string {
  return String(Number((bytes / mebibyte).toFixed(6)));
}
