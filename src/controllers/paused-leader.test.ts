import assert from "node:assert/strict";
import { it } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { HypervisorDriver } from "../hypervisor/index.ts";
import type { Clock } from "../kernel/clock.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const minuteMs = 60_000;
const at = { namespace: "default", name: "web" };

/** A process that can be stopped (SIGSTOP) and goes on later: its clocks do not wait for it. */
class Pausable {
  #waiting: (() => void)[] = [];
  #isPaused = false;

  pause(): void {
    this.#isPaused = true;
  }

  wake(): void {
    this.#isPaused = false;
    for (const then of this.#waiting.splice(0)) then();
  }

  #orLater(then: () => void): void {
    if (this.#isPaused) this.#waiting.push(then);
    else then();
  }

  awake(): Promise<void> {
    return new Promise((resolve) => this.#orLater(resolve));
  }

  clock(clock: Clock): Clock {
    return {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      bootId: clock.bootId,
      after: (ms, then) => clock.after(ms, () => this.#orLater(then)),
    };
  }

  /** Neither is a request sent while it is stopped, nor is an answer heard. */
  driver(driver: HypervisorDriver): HypervisorDriver {
    const during = async <T>(ask: () => Promise<T>): Promise<T> => {
      await this.awake();
      const answer = await ask();
      await this.awake();
      return answer;
    };
    return {
      ...driver,
      inventory: () => during(() => driver.inventory()),
      observe: (claim, hints) => during(() => driver.observe(claim, hints)),
      begin: (operation, fence) => during(() => driver.begin(operation, fence)),
      look: (task) => during(() => driver.look(task)),
      epoch: (installation) => during(() => driver.epoch(installation)),
      advance: (change, fence) => during(() => driver.advance(change, fence)),
    };
  }
}

it("a leader that was paused and wakes after another took the lead writes nothing", async () => {
  const paused = new Pausable();
  const drivers: HypervisorDriver[] = [];
  let isHeld = false;
  const stage = await openProxmox("8.4", {
    around: (driver) => {
      drivers.push(driver);
      if (drivers.length > 1) return driver;
      const begin: HypervisorDriver["begin"] = async (operation, fence) => {
        // It is stopped when all is decided and written down, right before it sends.
        if (operation.kind === "powerOff" && !isHeld) {
          isHeld = true;
          paused.pause();
        }
        return paused.driver(driver).begin(operation, fence);
      };
      return { ...paused.driver(driver), begin };
    },
  });
  const { world } = stage;
  const first = world.start({ identity: "a", clock: paused.clock(world.clock) });
  await createVm(world.client, "web", { disks });
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
  const second = world.start({ identity: "b" });
  const declare = async (powerState: "Running" | "Stopped"): Promise<void> => {
    await world.client.of(virtualMachineKind).patch(at, { merge: { spec: { powerState } } });
  };
  const isIn = (powerState: string) => async (): Promise<boolean> => {
    const vm = await getVm(world.client, "web");
    return isReady(vm) && vm?.status?.powerState === powerState;
  };
  await declare("Stopped");
  assert.ok(await until(world, () => isHeld));
  assert.ok(await until(world, isIn("Stopped"), 5 * minuteMs), "the other replica goes on");
  assert.ok(second.calls.includes("advance"));
  await declare("Running");
  assert.ok(await until(world, isIn("Running"), 5 * minuteMs));
  const tasks = (): string[] => {
    return stage.proxmox.cluster.state.nodes.flatMap((node) => node.tasks.map(({ upid }) => upid));
  };
  const textOf = (): string[] =>
    Object.values(stage.proxmox.cluster.state.guests).map(({ text }) => text);
  const [before, texts, own] = [tasks(), textOf(), first.calls.length];
  paused.wake();
  await until(world, () => false, 2 * minuteMs);
  // The request is made and then held back by the fence: nothing of it reaches the hypervisor.
  assert.deepEqual([tasks(), textOf()], [before, texts]);
  const since = first.calls.slice(own).filter((call) => !call.startsWith("GET"));
  assert.deepEqual(
    since.filter((call) => call.startsWith("begin") || /^(PUT|POST|PATCH|DELETE) /.test(call)),
    [],
  );
  assert.ok(await isIn("Running")());
  const { status } = await world.client.of(hypervisorKind).get({ name: "model" });
  assert.equal(status?.conditions?.find(({ type }) => type === "Ready")?.reason, "Connected");
  const [pool, ...others] = stage.proxmox.cluster.state.pools.map(({ poolid }) => poolid);
  assert.match(pool ?? "", /-2$/);
  assert.deepEqual(others, []);
});
