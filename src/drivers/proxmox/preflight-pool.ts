import type { Draft, Failure } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { causeOf, readFailureOf } from "./errors.ts";
import { pathPart } from "./wire/wire.ts";

/**
 * Whether the pool is there: a machine cannot be made in one that is not. Only the server's own
 * word that there is none counts. A token may put machines into a pool that it may not see, and a
 * pool within another has no path of its own here: then the server says so when it is made.
 */
export async function checkPool(
  { api, glance }: DriverContext,
  { pool, node }: Draft,
): Promise<Failure[]> {
  if (pool === undefined || glance.hasSeen(node, `pool ${pool}`)) return [];
  const result = await api.get(`/pools/${pathPart(pool)}`);
  if (result.type === "data") {
    glance.saw(node, [`pool ${pool}`]);
    return [];
  }
  if (result.type !== "error") return [readFailureOf(result, `look for the pool ${pool}`)];
  const cause = causeOf(result);
  if (!/pool '[^']*' does not exist/.test(cause)) return [];
  const message = `placement.pool: the pool ${pool} does not exist`;
  const remedy = `Make it (pvesh create /pools --poolid ${pool}), or name another.`;
  return [{ category: "ConfigurationError", message, cause, remedy }];
}
