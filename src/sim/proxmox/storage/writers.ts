import type { Cluster } from "../cluster.ts";
import { child, type Process } from "../process.ts";
import type { Volume } from "../state.ts";

interface Writer {
  readonly node: string;
  readonly beganMs: number;
  readonly untilMs: number;
}

/** Who writes into which volume at the moment; a copy goes on when its parent is killed. */
const writers = new WeakMap<Volume, Writer>();

/** A program of the node writes into the volume for a while, and then has its effect. */
export function* write(
  cluster: Cluster,
  { node, volume, durationMs }: { node: string; volume: Volume | undefined; durationMs: number },
  effect: () => void,
): Process<void> {
  const beganMs = cluster.clock.nowMs();
  if (volume !== undefined) writers.set(volume, { node, beganMs, untilMs: beganMs + durationMs });
  const isOver = (): boolean => volume !== undefined && writers.delete(volume);
  try {
    yield* child("qemu-img convert", durationMs, () => {
      isOver();
      effect();
    });
  } catch (error) {
    // It was stopped together with its parent.
    isOver();
    throw error;
  }
}

/** Whether somebody still writes into it. The power of the writer's node ends that too. */
export function isWritten(cluster: Cluster, volume: Volume): boolean {
  const writer = writers.get(volume);
  if (writer === undefined || writer.untilMs <= cluster.clock.nowMs()) return false;
  const node = cluster.findNode(writer.node);
  return node?.isOnline === true && node.bootedMs <= writer.beganMs;
}
