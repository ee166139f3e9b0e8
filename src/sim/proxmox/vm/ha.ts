import { type Call, fork, vmidOf } from "../endpoint.ts";

/**
 * A guest under high availability is not started or stopped by the call: it only asks the HA
 * manager to, and the task ends when the request is queued. Undefined for all other guests.
 */
export function queueHa(
  call: Call,
  { state, type }: { readonly state: string; readonly type: string },
): string | undefined {
  const resource = call.cluster.state.ha[`vm:${vmidOf(call)}`];
  if (resource === undefined) return undefined;
  return fork(call, { type }, function* (task) {
    task.log(`Requesting HA ${state} for VM ${vmidOf(call)}`);
    yield* call.cluster.step("queue HA request");
    resource.state = state;
  });
}
