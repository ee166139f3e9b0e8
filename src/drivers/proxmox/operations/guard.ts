import { answered, failed } from "../../../hypervisor/index.ts";
import type { Answer, Begun, Fence, Guard, Regroup } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { readFailureOf } from "../errors.ts";
import { haPath, readGuard } from "../high-availability.ts";
import { refusals } from "../refusals.ts";
import { present } from "../translate/present.ts";
import { rowsOf, textOf } from "../wire/rows.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";
import { standNow } from "./standing.ts";

/** Puts a machine under high availability, changes how, or takes it out. Takes no digest. */
export async function guard(
  context: DriverContext,
  operation: Guard,
  fence: Fence,
): Promise<Begun> {
  const stood = await standNow(context, operation);
  if (!stood.ok) return stood.begun;
  const { externalId } = stood.standing.place;
  const { highAvailability } = operation;
  const { enabled, group, maxRestarts, maxRelocations } = highAvailability;
  const [refusal] = refusals({ highAvailability }, context.release());
  if (refusal !== undefined) return refused(refusal);
  const seen = await readGuard(context.api, externalId);
  if (!seen.ok) return refused(seen.failure);
  const path = haPath(externalId);
  const attempted = `put VM ${externalId} under high availability`;
  const mayWrite = (): boolean => fence.mayWrite();
  if (enabled === false) {
    if (seen.value === undefined) return { outcome: "done" };
    return begunOf(await context.api.write("DELETE", { path }, mayWrite), attempted);
  }
  const params = {
    state: operation.power === "Running" ? "started" : "stopped",
    ...present({ group, max_restart: maxRestarts, max_relocate: maxRelocations }),
  };
  if (seen.value !== undefined) {
    return begunOf(await context.api.write("PUT", { path, params }, mayWrite), attempted);
  }
  const request = { path: "/cluster/ha/resources", params: { sid: `vm:${externalId}`, ...params } };
  return begunOf(await context.api.write("POST", request, mayWrite), attempted);
}

/** Puts a machine into a pool, out of the one that it is in first. */
export async function regroup(
  context: DriverContext,
  operation: Regroup,
  fence: Fence,
): Promise<Begun> {
  const stood = await standNow(context, operation);
  if (!stood.ok) return stood.begun;
  const { externalId } = stood.standing.place;
  const pool = await poolOf(context, externalId);
  if (!pool.ok) return refused(pool.failure);
  const { value: seen } = pool;
  const { pool: wanted = "" } = operation;
  if (seen === wanted) return { outcome: "done" };
  const leaves = seen !== "";
  const params = { vms: externalId, ...(leaves ? { delete: 1 } : {}) };
  const path = `/pools/${pathPart(leaves ? seen : wanted)}`;
  const result = await context.api.write("PUT", { path, params }, () => fence.mayWrite());
  const begun = begunOf(result, `put VM ${externalId} into the pool ${wanted}`);
  return leaves && wanted !== "" && begun.outcome === "done" ? { outcome: "progressed" } : begun;
}

/** The empty text where it is in none. */
async function poolOf({ api }: DriverContext, externalId: string): Promise<Answer<string>> {
  const list = await api.get("/cluster/resources", { type: "vm" });
  if (list.type !== "data") return failed(readFailureOf(list, "list the machines"));
  const rows = rowsOf(list.data);
  const row = rows.find((candidate) => textOf(candidate, "vmid") === externalId);
  return answered(row === undefined ? "" : textOf(row, "pool"));
}
