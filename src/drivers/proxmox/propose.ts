import { createHash } from "node:crypto";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
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

/** The id of a key: spread over the range, and the same for everybody. Pure. */
export function prefer({ settings }: Pick<DriverContext, "settings">, key: string): string {
  const { first, last } = settings.idRange ?? defaultRange;
  const number = createHash("sha256").update(key).digest().readUIntBE(0, 6);
  return String(first + (number % (last - first + 1)));
}

/** An id at random that nobody has now. Two who ask at once will hardly ever get the same. */
export async function propose(
  context: DriverContext,
  avoid: readonly string[],
  preferred?: string,
): Promise<Answer<string>> {
  const { api, settings, glance } = context;
  const { first, last } = settings.idRange ?? defaultRange;
  for (const id of candidates(context, preferred)) {
    if (!guard("propose-unclaimed-id", !avoid.includes(id))) continue;
    const isTaken = glance.hasGuest(id);
    if (!guard("propose-unused-id", isTaken !== true)) continue;
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

function* candidates(
  { random, settings }: Pick<DriverContext, "random" | "settings">,
  preferred: string | undefined,
): Generator<string> {
  const { first, last } = settings.idRange ?? defaultRange;
  if (preferred !== undefined) yield preferred;
  for (let tried = 0; tried < triesMax; tried++) {
    yield String(first + Math.floor(random.number() * (last - first + 1)));
  }
}
