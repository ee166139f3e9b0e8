import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { eventResource } from "../api/builtin/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

const hourMs = 60 * 60_000;
const blank = { disks: [{ name: "root", size: "5Gi", storage: "local-zfs" }] };

/** Every worker that makes a disk is killed, its program goes on. */
async function open(times: number): Promise<SimulatedWorld> {
  const simulated = await openProxmox();
  const { world, proxmox } = simulated;
  proxmox.faults.onStep({
    verdict: { kind: "kill" },
    times,
    matches: ({ name }, step) => name.startsWith("qmconfig") && step.kind === "child",
  });
  world.start();
  await createVm(world.client, "web", blank);
  return simulated;
}

async function vmOf({ world }: SimulatedWorld): Promise<VirtualMachine> {
  const vm = await getVm(world.client, "web");
  assert.ok(vm);
  return vm;
}

function disksBegun({ requests }: SimulatedWorld): number {
  return requests.filter(({ method, path }) => method === "POST" && path.endsWith("/config"))
    .length;
}

describe("a task of which nobody knows any more", () => {
  it("may still be at work: its machine is waited for, and no second one is made", async () => {
    const forgotten: { forget?: () => void } = {};
    const simulated = await openProxmox("9.2", {
      between: async (request, send) => {
        const reply = await send(request);
        if (request.method === "POST" && request.path.endsWith("/qemu")) forgotten.forget?.();
        return reply;
      },
    });
    const { world, proxmox, requests } = simulated;
    forgotten.forget = () => {
      for (const node of proxmox.cluster.state.nodes) node.tasks = [];
    };
    proxmox.cluster.timing = { ...proxmox.cluster.timing, stepMs: 2_000 };
    world.start();
    await createVm(world.client, "web", blank);
    const isThere = await until(world, async () => isReady(await vmOf(simulated)), hourMs);
    assert.ok(isThere, JSON.stringify(await vmOf(simulated)));
    const creations = requests.filter(({ path, method }) => {
      return method === "POST" && path.endsWith("/qemu");
    });
    assert.equal(creations.length, 1);
    assert.equal(Object.keys(proxmox.cluster.state.guests).length, 1);
  });
});

describe("a task that ends without a word", () => {
  it("and leaves nothing is a failed attempt: it is tried five times, and then it stalls", async () => {
    const simulated = await open(Infinity);
    await until(simulated.world, () => false, hourMs);
    const vm = await vmOf(simulated);
    assert.equal(disksBegun(simulated), 5);
    assert.equal(condition(vm, "Stalled"), "True CreationFailed");
    const { failure } = vm.status ?? {};
    assert.deepEqual([failure?.step, failure?.attempts], ["AddDisk", 5]);
    assert.match(
      failure?.message ?? "",
      /^The task ended without a result, and its effect is not observed: /,
    );
    assert.match(failure?.cause ?? "", /^unexpected status/);
    const { items } = await simulated.world.client.of(eventResource).list();
    const warnings = items.filter(({ type }) => type === "Warning");
    assert.ok(warnings.some(({ reason }) => reason === "CreationFailed"));
  });

  it("once is waited out, and what its program still made is no stranger's", async () => {
    const simulated = await open(1);
    const isThere = await until(
      simulated.world,
      async () => isReady(await vmOf(simulated)),
      hourMs,
    );
    assert.ok(isThere);
    assert.equal(disksBegun(simulated), 2);
    assert.equal((await vmOf(simulated)).status?.failure, undefined);
  });
});
