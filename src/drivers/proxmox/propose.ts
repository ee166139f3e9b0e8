import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { classifyError, readFailureOf } from "./errors.ts";

/**
 * Where nothing is said: `nextid` hands out ids below one million only, so these are never given
 * to anybody else; and names of network devices, which hold the id, still fit into 15 characters.
 */
const defaultRange = { first: 1_000_000, last: 9_999_999 };

/** A range that is nearly full should be found full soon, and not by trying each of its ids. */
const triesMax = 32;

/**
 * So many ids that one at random hardly ever belongs to a guest which the last glance did not show,
 * because it is new or hidden from the token; and if it does, making the machine is refused.
 */
const wideRange = 100_000;

/** An id at random that nobody has now. Two who ask at once will hardly ever get the same. */
export async function propose(
  { api, random, settings, glance }: DriverContext,
  avoid: readonly string[],
): Promise<Answer<string>> {
  const { first, last } = settings.idRange ?? defaultRange;
  for (let tried = 0; tried < triesMax; tried++) {
    const id = String(first + Math.floor(random.number() * (last - first + 1)));
    if (avoid.includes(id)) continue;
    const isTaken = glance.hasGuest(id);
    if (isTaken === true) continue;
    // Nobody was seen there a moment ago. In a wide range that is as good as asking.
    if (isTaken === false && last - first >= wideRange) return answered(id);
    const result = await api.get("/cluster/nextid", { vmid: id });
    if (result.type === "data") return answered(id);
    if (result.type !== "error" || classifyError(result).meaning !== "taken") {
      return failed(readFailureOf(result, `ask whether the id ${id} is free`));
    }
  }
  return failed({
    category: "QuotaExceeded",
    message: `no free id was found between ${first} and ${last} in ${triesMax} attempts`,
    remedy: "Give the Hypervisor a larger idRange.",
  });
}
