import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, type Hypervisor } from "../../api/index.ts";
import { condition } from "../testing/world.ts";
import { Stage } from "./testing.ts";

async function hypervisor(stage: Stage): Promise<Hypervisor> {
  return stage.simulated.world.client.of(hypervisorKind).get({ name: "model" });
}

describe("the connection", () => {
  it('takes "unknown" in one list for no illness: machines go on being made on that node', async () => {
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        const reply = await send(request);
        if (request.path !== "/cluster/resources" || reply.type !== "answered") return reply;
        return { ...reply, body: reply.body.replaceAll('"online"', '"unknown"') };
      },
    });
    const vm = await stage.make("web", { placement: { node: "pve2" } });
    assert.equal(vm.status?.node, "pve2");
    await stage.pass(120_000);
    const { status } = await hypervisor(stage);
    assert.deepEqual(
      status?.nodes?.map(({ health }) => health),
      ["Healthy", "Healthy", "Healthy"],
    );
  });

  it("does not call a machine Missing that cannot be seen: an unreachable cluster is Unknown", async () => {
    const away = { is: false };
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        if (!away.is) return send(request);
        return { type: "notSent", why: "unreachable", detail: "connect ECONNREFUSED" };
      },
    });
    await stage.make("web");
    const writes = stage.writes.length;
    away.is = true;
    const vm = await stage.when("web", (seen) => condition(seen, "Ready").startsWith("Unknown"));
    assert.equal(condition(vm, "Ready"), "Unknown Unreachable");
    await stage.startRemoving("web");
    await stage.pass(600_000);
    assert.ok(await stage.vm("web"), "an absence was not proven");
    assert.equal(stage.writes.length, writes);
    away.is = false;
    assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined, 1_200_000));
    assert.deepEqual(stage.guests, {});
  });

  it("has at most two calls in flight on a node, however many machines are made", async () => {
    const flying = new Map<string, number>();
    const most = { calls: 0 };
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        const node = /^\/nodes\/([^/]+)/.exec(request.path)?.[1];
        if (node === undefined) return send(request);
        const count = (flying.get(node) ?? 0) + 1;
        flying.set(node, count);
        most.calls = Math.max(most.calls, count);
        const reply = await send(request);
        flying.set(node, (flying.get(node) ?? 1) - 1);
        return reply;
      },
    });
    const names = Array.from({ length: 12 }, (_, index) => `vm-${index}`);
    for (const name of names) await stage.declare(name, { placement: { node: "pve1" } });
    for (const name of names) await stage.synced(name);
    assert.equal(most.calls, 2);
  });
});
