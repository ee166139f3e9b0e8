/**
 * What a dead cluster costs the others: machines that are declared on a hypervisor that refuses or
 * hangs, and how long a new one elsewhere takes beside them. On a virtual clock, with the real API
 * and the real controllers.
 *
 * Usage: npm run bench -- breaker [MACHINES]
 */
import {
  declareOnDead,
  elsewhereMs,
  openTwoClusters,
  type Death,
} from "../src/controllers/testing/dead-cluster.ts";
import { until } from "../src/controllers/testing/world.ts";
import { show } from "./support.ts";

const count = Number(process.argv[2] ?? 1_000);
const restMs = 15 * 60_000;

for (const death of ["refuses", "hangs"] as const) await measure(death);

async function measure(death: Death): Promise<void> {
  const clusters = await openTwoClusters();
  const { world, callsMs } = clusters;
  await elsewhereMs(clusters, "first");
  const idleMs = await elsewhereMs(clusters, "second");
  clusters.die(death);
  const deadMs = world.clock.monotonicMs();
  await declareOnDead(clusters, count);
  const besideMs = await elsewhereMs(clusters, "beside");
  await until(world, () => false, restMs);
  const laterMs = await elsewhereMs(clusters, "later");
  show(`${count} machines on one that ${death}`, {
    "idle ms": idleMs,
    "beside it ms": besideMs,
    "later ms": laterMs,
    ratio: besideMs / idleMs,
    "calls to the dead one": callsMs.filter((atMs) => atMs >= deadMs).length,
    "writes to statuses": world.statusWrites.length,
  });
  await clusters.run.stop();
}
