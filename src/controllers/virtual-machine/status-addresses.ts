import type { VirtualMachineStatus } from "../../api/index.ts";
import type { GuestCard } from "../../hypervisor/index.ts";

type Address = NonNullable<VirtualMachineStatus["addresses"]>[number];

const addressesMax = 32;

/** The addresses that the agent tells, the one to reach it by first. Pure. */
export function addressesOf(cards: readonly GuestCard[]): Address[] {
  const all = cards.flatMap(({ network, addresses }) => {
    return addresses.map(({ address }): Address => {
      const named = network === undefined ? {} : { network };
      return { address, ...named, source: "Agent" };
    });
  });
  const outward = all.filter(({ address }) => rankOf(address) < loopback);
  return outward.toSorted((a, b) => rankOf(a.address) - rankOf(b.address)).slice(0, addressesMax);
}

const loopback = 3;

/** IPv4, then IPv6, then what is good on its own link only; not what leads to the guest itself. */
function rankOf(address: string): number {
  if (address.startsWith("127.") || address === "::1") return loopback;
  if (/^(fe80:|169\.254\.)/i.test(address)) return 2;
  return address.includes(":") ? 1 : 0;
}
