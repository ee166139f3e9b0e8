import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine } from "../api/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

const storage = "local-zfs";
const disks = ["root", "data"].map((name) => ({ name, size: "10Gi", storage }));
const names = ["a", "b", "c", "d"];
const statusWritesMost = 12;
/** A request of a moment is over by then, and what comes after it is told. */
const toldWithinMs = 15_000;

/** Whether it says nothing but that it is to be created, for longer than that takes. */
function isSilent({ status }: VirtualMachine, nowMs: number): boolean {
  const { operation } = status ?? {};
  if (operation?.step !== "Create" || operation.outcome !== undefined) return false;
  return nowMs - Date.parse(operation.since) > toldWithinMs;
}

function assertTold(vm: VirtualMachine): void {
  assert.equal(condition(vm, "Ready"), "False Waiting");
  assert.match(vm.status?.waitingFor?.name ?? "", /storage local-zfs on pve1/);
  const running = vm.status?.conditions?.find(({ type }) => type === "Running");
  assert.equal(running?.message, "It has not been started yet.");
}

describe("a VM that waits in line for a storage", () => {
  it("says so, that it exists, and that what was done is done", async () => {
    const { world } = await openProxmox("9.2", { timing: { copyPerGibMs: 15_000 } });
    world.start();
    const spec = { disks, placement: { node: "pve1" } };
    for (const name of names) await createVm(world.client, name, spec);
    const waiting = new Map<string, VirtualMachine>();
    const areReady = await until(world, async () => {
      const all = await Promise.all(names.map((name) => getVm(world.client, name)));
      const vms = all.filter((vm) => vm !== undefined);
      for (const vm of vms) {
        const { waitingFor, operation } = vm.status ?? {};
        assert.ok(!isSilent(vm, world.clock.nowMs()), JSON.stringify(vm.status));
        const isInLine = waitingFor?.kind === "Slot" && operation?.outcome === "Done";
        if (isInLine) waiting.set(vm.metadata.name ?? "", vm);
      }
      return vms.length === names.length && vms.every((vm) => isReady(vm));
    });
    assert.ok(areReady);
    assert.ok(waiting.size > 1, `${waiting.size} said that they wait`);
    for (const vm of waiting.values()) assertTold(vm);
    for (const [path, all] of Map.groupBy(world.statusWrites, (one) => one)) {
      const isVm = path.includes("/virtualmachines/");
      assert.ok(!isVm || all.length <= statusWritesMost, `${all.length} writes of ${path}`);
    }
  });
});
