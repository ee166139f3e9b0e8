import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { answered, failed, readMark } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine, GuestCard, GuestView } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { machinePath } from "./config-reader.ts";
import { readFailureOf } from "./errors.ts";
import { present } from "./translate/present.ts";
import { readAgent } from "./translate/devices.ts";
import type { Values } from "./translate/values.ts";
import type { PveResult } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

const silent = [
  /^QEMU guest agent is not running$/,
  /^VM \d+ qmp command 'guest-[a-z-]+' failed - got timeout$/,
];
const off = [/^No QEMU guest agent configured$/, /^VM \d+ is not running$/];

/**
 * Addresses, as the agent in the guest tells them. An agent that does not answer holds one of the
 * node's three workers for three seconds, so ask only where an address is missing, and seldom.
 */
export async function askGuest(
  context: DriverContext,
  claim: ClaimedMachine,
): Promise<Answer<GuestView>> {
  const { node, externalId } = claim;
  if (node === undefined) {
    const message = `no node is known for VM ${externalId}`;
    return failed({ category: "DependencyNotReady", message });
  }
  const place = { node, externalId };
  const read = await context.configs.lastOf(place);
  if (read.type === "failed") return failed(read.failure);
  if (read.type === "notHere" || !readAgent(read.config.values["agent"]).guestAgent) {
    return answered({ agent: "Off" });
  }
  const result = await context.api.get(machinePath(place, "/agent/network-get-interfaces"));
  if (result.type !== "data") return noAnswer(result, `ask the agent in VM ${externalId}`);
  const list = isJsonObject(result.data) ? rowsOf(result.data["result"]) : [];
  const cards = cardsOf(read.config.values);
  return answered({ agent: "Answered", cards: list.map((row) => cardOf(row, cards)) });
}

/** That nobody answers is an answer; only what is wrong with the connection is a failure. */
function noAnswer(
  result: Exclude<PveResult, { type: "data" }>,
  attempted: string,
): Answer<GuestView> {
  const text = result.type === "error" ? result.text : "";
  if (off.some((pattern) => pattern.test(text))) return answered({ agent: "Off" });
  if (silent.some((pattern) => pattern.test(text))) return answered({ agent: "Silent" });
  return failed(readFailureOf(result, attempted));
}

/** The names of cards by their hardware addresses. */
function cardsOf(values: Values): ReadonlyMap<string, string> {
  const { mark } = readMark(values["description"] ?? "");
  const entries = Object.entries(mark?.networks ?? {}).flatMap(([name, slot]) => {
    const mac = /=([0-9a-f]{2}(?::[0-9a-f]{2}){5})/i.exec(values[slot] ?? "")?.[1];
    return mac === undefined ? [] : [[mac.toLowerCase(), name] as const];
  });
  return new Map(entries);
}

function cardOf(row: JsonObject, cards: ReadonlyMap<string, string>): GuestCard {
  const macAddress = textOf(row, "hardware-address").toLowerCase();
  return {
    ...present({
      network: cards.get(macAddress),
      macAddress: macAddress === "" ? undefined : macAddress,
    }),
    device: textOf(row, "name"),
    addresses: rowsOf(row["ip-addresses"]).map((entry) => ({
      address: textOf(entry, "ip-address"),
      prefix: Number(entry["prefix"] ?? 0),
    })),
  };
}
