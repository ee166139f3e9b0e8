import assert from "node:assert/strict";
import { it } from "node:test";
import { annotations, hypervisorKind, type Hypervisor } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { minuteMs } from "./testing/volumes-by-hand.ts";
import { until } from "./testing/world.ts";

const pool = "berth-epoch-00000000-0000-4000-8000-000000000007-999999999999999";

async function read({ world }: SimulatedWorld): Promise<Hypervisor> {
  return world.client.of(hypervisorKind).get({ name: "model" });
}

async function reasonIs(stage: SimulatedWorld, reason: string): Promise<boolean> {
  const isSaid = async (): Promise<boolean> => {
    const { conditions = [] } = (await read(stage)).status ?? {};
    return conditions.some((one) => one.type === "Ready" && one.reason === reason);
  };
  return until(stage.world, isSaid, 5 * minuteMs);
}

async function asRoot(
  stage: SimulatedWorld,
  request: { readonly method: "POST" | "DELETE"; readonly path: string },
  params: Record<string, string> = {},
): Promise<void> {
  const sent = { isDone: false };
  void stage.asRoot({ ...request, params }).then(() => (sent.isDone = true));
  assert.ok(await until(stage.world, () => sent.isDone, minuteMs));
}

it("a pool with a number that no run can have written stops Berth until it is removed", async () => {
  const stage = await openProxmox("8.4");
  const first = stage.world.start();
  assert.ok(await reasonIs(stage, "Connected"));
  await asRoot(stage, { method: "POST", path: "/pools" }, { poolid: pool });
  assert.ok(await reasonIs(stage, "ConflictingController"), JSON.stringify(await read(stage)));
  const { failure, observedBy } = (await read(stage)).status ?? {};
  assert.match(failure?.remedy ?? "", new RegExp(`Remove the pool ${pool} `));
  assert.equal(observedBy, undefined, "it offers a takeover that cannot be");
  first.crash();
  stage.world.start();
  const token = `2026-11-16T12:00:00Z ${observedBy ?? ""}`;
  const merge = { metadata: { annotations: { [annotations.takeoverAt]: token } } };
  await stage.world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
  await until(stage.world, () => false, 5 * minuteMs);
  assert.ok(await reasonIs(stage, "ConflictingController"));
  const written = stage.epochRequests.filter(({ method }) => method !== "GET");
  assert.equal(written.length, 1, "something was written under another's epoch");
  await asRoot(stage, { method: "DELETE", path: `/pools/${pool}` });
  assert.ok(await reasonIs(stage, "Connected"), JSON.stringify(await read(stage)));
});
