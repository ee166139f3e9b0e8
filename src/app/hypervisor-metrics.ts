import { endpointOf, type PveReply, type Send } from "../drivers/proxmox/index.ts";
import { secondsBuckets, type Metrics, type OutsideTime } from "../runtime/index.ts";
import type { Clock } from "../kernel/clock.ts";

/** Times the calls to hypervisors. Declared once for a program. */
export interface HypervisorMetrics {
  /** The same transport, whose calls are timed and counted for that Hypervisor. */
  measure(send: Send, hypervisor: string): Send;
}

export function hypervisorMetrics(
  metrics: Metrics,
  environment: { readonly clock: Clock; readonly outside: OutsideTime },
): HypervisorMetrics {
  const { clock, outside } = environment;
  const calls = metrics.counter({
    name: "berth_hypervisor_calls_total",
    help: "Calls to hypervisors, by endpoint and by how they were answered.",
    labels: ["method", "endpoint", "status"],
  });
  const seconds = metrics.histogram({
    name: "berth_hypervisor_call_seconds",
    help: "How long calls to hypervisors took.",
    labels: ["method", "endpoint"],
    buckets: secondsBuckets,
  });
  const failures = metrics.counter({
    name: "berth_hypervisor_call_failures_total",
    help: "Calls without a usable answer: the Hypervisor away, silent, or out of order.",
    labels: ["hypervisor"],
  });
  return {
    measure: (send, hypervisor) => async (request) => {
      const { method } = request;
      const endpoint = endpointOf(request)?.path ?? "other";
      const startMs = clock.monotonicMs();
      const reply = await outside.wait(() => send(request));
      calls.add({ method, endpoint, status: statusOf(reply) });
      seconds.observe({ method, endpoint }, (clock.monotonicMs() - startMs) / 1000);
      if (isFailure(reply)) failures.add({ hypervisor });
      return reply;
    },
  };
}

function statusOf(reply: PveReply): string {
  if (reply.type === "answered") return String(reply.status);
  return reply.type === "lost" ? "lost" : reply.why;
}

function isFailure(reply: PveReply): boolean {
  if (reply.type === "answered") return reply.status >= 595;
  return reply.type === "lost" || reply.why !== "fenced";
}
