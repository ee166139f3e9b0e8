import type { Cluster } from "../cluster.ts";
import { type Call, fork, vmidOf } from "../endpoint.ts";
import type { HaResource } from "../state.ts";

/**
 * A guest under high availability is not started, stopped or moved by the call: it only asks the HA
 * manager to, and the task ends when the request is queued. Undefined for all other guests.
 */
export function queueHa(
  call: Call,
  request: { readonly type: string; readonly verb: string; readonly wish: Partial<HaResource> },
): string | undefined {
  const { cluster } = call;
  const vmid = vmidOf(call);
  const resource = cluster.state.ha[`vm:${vmid}`];
  if (resource === undefined) return undefined;
  const { type, verb, wish } = request;
  return fork(call, { type }, function* (task) {
    const where = wish.target === undefined ? "" : ` to node ${wish.target}`;
    task.log(`Requesting HA ${verb} for VM ${vmid}${where}`);
    yield* cluster.step("queue HA request");
    wishFor(cluster, resource, wish);
  });
}

/** Notes down what is asked for, and lets the manager know. */
export function wishFor(cluster: Cluster, resource: HaResource, wish: Partial<HaResource>): void {
  delete resource.failures;
  delete resource.stopTimeoutMs;
  Object.assign(resource, wish);
  cluster.wakeHa();
}

/** What the manager says about a resource: on its way to what is asked for, or there. */
export function haStateOf(cluster: Cluster, vmid: number): string | undefined {
  const resource = cluster.state.ha[`vm:${vmid}`];
  if (resource === undefined) return undefined;
  if ((resource.failures ?? 0) > (resource.max_restart ?? 1)) return "error";
  if (resource.lostMs !== undefined) return "fence";
  if (resource.target !== undefined) return "migrate";
  const isRunning = cluster.machine(vmid) !== undefined;
  return resource.state === "stopped" && isRunning ? "request_stop" : resource.state;
}
