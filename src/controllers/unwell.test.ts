import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import type { PveReply, PveRequest } from "../drivers/proxmox/index.ts";
import type { HypervisorDriver } from "../hypervisor/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until, type World } from "./testing/world.ts";

const web = { namespace: "default", name: "web" };
const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const minuteMs = 60_000;

/** pmxcfs restarts: whoever answers cannot read the files of the cluster. */
const broken = answer(500, "ipcc_send_rec[1] failed: Connection refused");

function answer(status: number, reason: string): PveReply {
  return { type: "answered", status, reason, body: "", from: "pve1" };
}

async function vmOf({ client }: World): Promise<VirtualMachine> {
  const vm = await getVm(client, "web");
  assert.ok(vm);
  return vm;
}

async function edit(world: World, spec: object): Promise<void> {
  await world.client.of(virtualMachineKind).patch(web, { merge: { spec } });
}

async function ready(world: World, withinMs?: number): Promise<void> {
  const isThere = async (): Promise<boolean> => {
    const vm = await vmOf(world);
    return isReady(vm) && vm.status?.failure === undefined;
  };
  assert.ok(await until(world, isThere, withinMs), JSON.stringify((await vmOf(world)).status));
}

function isLookAtMachine({ method, path }: PveRequest): boolean {
  return method === "GET" && /\/qemu\/\d+\/(pending|status)/.test(path);
}

describe("a hypervisor that answers, and is not well", () => {
  test("looks that fail for a quarter of an hour are no reason to give up", async () => {
    const ill = { is: false };
    const { world } = await openProxmox("8.4", {
      between: async (request, send) => {
        return ill.is && isLookAtMachine(request) ? broken : send(request);
      },
    });
    world.start();
    await createVm(world.client, "web", { disks });
    await ready(world);
    ill.is = true;
    await edit(world, { cpu: { cores: 3 } });
    await until(world, () => false, 15 * minuteMs);
    const vm = await vmOf(world);
    assert.equal(condition(vm, "Ready"), "Unknown Unreachable");
    assert.equal(condition(vm, "Running"), "Unknown Unreachable");
    assert.equal(condition(vm, "Reconciling"), "True NodeUnhealthy");
    assert.match(vm.status?.failure?.cause ?? "", /^500 ipcc_send_rec/);
    ill.is = false;
    await ready(world, 15 * minuteMs);
  });

  test("a look that fails as work does, in a driver that says so, is repeated all the same", async () => {
    const ill = { is: false };
    const { world } = await openProxmox("8.4", {
      around: (driver) => {
        const observe: HypervisorDriver["observe"] = async (claim, hints) => {
          const failure = { category: "CreationFailed", message: "odd" } as const;
          return ill.is ? { at: "unknown", failure } : driver.observe(claim, hints);
        };
        return new Proxy(driver, {
          get: (target, name: keyof HypervisorDriver) => {
            const member: unknown = name === "observe" ? observe : target[name];
            return typeof member === "function" ? (member.bind(target) as unknown) : member;
          },
        });
      },
    });
    world.start();
    await createVm(world.client, "web", { disks });
    await ready(world);
    ill.is = true;
    await edit(world, { cpu: { cores: 3 } });
    const isStalled = async (): Promise<boolean> => {
      return condition(await vmOf(world), "Stalled") === "True CreationFailed";
    };
    assert.ok(await until(world, isStalled, 30 * minuteMs), "it is told that it goes on too long");
    ill.is = false;
    await ready(world, 15 * minuteMs);
  });

  const outages = [
    { of: "the token was revoked", reply: answer(401, "authentication failure") },
    { of: "the files of the cluster cannot be read", reply: broken },
  ];
  for (const { of, reply } of outages) {
    test(`nothing is known of a machine while ${of}, and that is told once`, async () => {
      const ill = { is: false };
      const { world } = await openProxmox("8.4", {
        between: async (request, send) => (ill.is ? reply : send(request)),
      });
      world.start();
      await createVm(world.client, "web", { disks });
      await ready(world);
      const { generation } = (await vmOf(world)).metadata;
      ill.is = true;
      await until(world, () => false, 15 * minuteMs);
      const { status } = await world.client.of(hypervisorKind).get({ name: "model" });
      assert.ok(status?.failure, "the Hypervisor says what is wrong");
      const vm = await vmOf(world);
      for (const type of ["Ready", "Running", "Provisioned"]) {
        assert.equal(condition(vm, type), "Unknown Unreachable", type);
      }
      assert.equal(vm.status?.powerState, "Unknown");
      assert.equal(condition(vm, "Synced"), "False DependencyNotReady");
      const told = world.statusWrites.length;
      await until(world, () => false, 60 * minuteMs);
      const since = world.statusWrites.slice(told);
      assert.deepEqual(
        since.filter((path) => path.includes("virtualmachines")),
        [],
      );
      ill.is = false;
      await ready(world, 15 * minuteMs);
      const well = await vmOf(world);
      assert.equal(condition(well, "Running"), "True Succeeded");
      assert.equal(well.status?.powerState, "Running");
      assert.equal(well.metadata.generation, generation);
    });
  }

  test("a machine whose work cannot be looked at is Unknown too", async () => {
    const ill = { is: false, isMade: false };
    const { world } = await openProxmox("8.4", {
      between: async (request, send) => {
        const isBegun = request.method === "POST" && request.path.endsWith("/config");
        if (isBegun && ill.isMade) ill.is = true;
        return ill.is && request.path.includes("/tasks") ? broken : send(request);
      },
    });
    world.start();
    await createVm(world.client, "web", { disks });
    await ready(world);
    ill.isMade = true;
    await edit(world, { disks: [...disks, { name: "data", size: "5Gi", storage: "local-zfs" }] });
    assert.ok(await until(world, () => ill.is), JSON.stringify((await vmOf(world)).status));
    await until(world, () => false, 10 * minuteMs);
    const vm = await vmOf(world);
    assert.equal(vm.status?.operation?.step, "AddDisk");
    assert.equal(condition(vm, "Ready"), "Unknown Unreachable");
    ill.isMade = false;
    ill.is = false;
    await ready(world, 15 * minuteMs);
    assert.equal((await vmOf(world)).status?.disks?.length, 2);
  });

  test("a machine is observed though a change of it failed as often as it may", async () => {
    const ill = { is: false };
    const { world, proxmox } = await openProxmox("8.4", {
      between: async (request, send) => {
        const isGrow = request.method === "PUT" && request.path.endsWith("/resize");
        return ill.is && isGrow ? answer(500, "zfs error: out of luck") : send(request);
      },
    });
    world.start();
    await createVm(world.client, "web", { disks, driftPolicy: "Warn" });
    await ready(world);
    ill.is = true;
    await edit(world, { disks: [{ name: "root", size: "12Gi", storage: "local-zfs" }] });
    const isGivenUp = async (): Promise<boolean> => {
      const { status } = await vmOf(world);
      return status?.failure?.attempts === 5 && status.failure.nextRetryAt === undefined;
    };
    assert.ok(await until(world, isGivenUp, 60 * minuteMs), JSON.stringify(await vmOf(world)));
    const { status } = await vmOf(world);
    proxmox.killMachine(Number(status?.externalId));
    const isSeen = async (): Promise<boolean> => {
      return (await vmOf(world)).status?.powerState === "Stopped";
    };
    assert.ok(await until(world, isSeen, 5 * minuteMs), "the status says what was there before");
    const { failure } = (await vmOf(world)).status ?? {};
    assert.deepEqual([failure?.step, failure?.attempts], ["Grow", 5], "and why it is stalled");
  });
});
