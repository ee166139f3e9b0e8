import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until, type Incarnation } from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const at = { namespace: "default", name: "web" };

interface Fought extends SimulatedWorld {
  readonly run: Incarnation;
}

interface RunOptions extends StageOptions {
  readonly isForgetful?: boolean;
}

async function running(
  spec: object = {},
  { isForgetful = false, ...options }: RunOptions = {},
): Promise<Fought> {
  const stage = await openProxmox("8.4", options);
  const { world } = stage;
  const run = world.start({ forgets: () => isForgetful });
  await createVm(world.client, "web", { disks, driftPolicy: "Correct", tags: ["a"], ...spec });
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
  return { ...stage, run };
}

async function vmOf({ world }: SimulatedWorld): Promise<VirtualMachine> {
  const vm = await getVm(world.client, "web");
  assert.ok(vm);
  return vm;
}

function starts({ requests }: SimulatedWorld): number {
  return requests.filter(({ path }) => path.endsWith("/status/start")).length;
}

/** The path of the VM, and what follows it. */
async function pathTo(stage: SimulatedWorld, rest: string): Promise<string> {
  const { node = "", externalId = "" } = (await vmOf(stage)).status ?? {};
  return `/nodes/${node}/qemu/${externalId}/${rest}`;
}

function textOf({ proxmox }: SimulatedWorld): string {
  return Object.values(proxmox.cluster.state.guests)[0]?.text ?? "";
}

const valueOf = (stage: SimulatedWorld, key: string): string => {
  return new RegExp(`^${key}: (.*)$`, "m").exec(textOf(stage))?.[1] ?? "";
};

/** Once a minute somebody changes something; says how often Berth changed it back. */
async function revert(
  stage: SimulatedWorld,
  times: number,
  change: (time: number) => Promise<{ readonly isBack: () => boolean }>,
): Promise<number> {
  let corrected = 0;
  for (let time = 0; time < times; time += 1) {
    const changing = change(time);
    await until(stage.world, () => false, 60_000);
    if ((await changing).isBack()) corrected += 1;
  }
  return corrected;
}

/** Tags, which are not declared here, are in the bulk list: Berth observes the VM at once. */
const noticed = (time: number): { readonly tags: string } => ({ tags: `t${time}` });

async function conflictIn(stage: SimulatedWorld): Promise<string> {
  const { status } = await vmOf(stage);
  assert.equal(status?.failure?.category, "ConflictingController", JSON.stringify(status?.failure));
  assert.equal(condition(await vmOf(stage), "Stalled"), "True ConflictingController");
  return status.failure.message;
}

/** Somebody stops the VM whenever it runs. */
async function fight(stage: SimulatedWorld, ms: number): Promise<void> {
  const { world } = stage;
  for (let leftMs = ms; leftMs > 0; leftMs -= 10_000) {
    const vm = await vmOf(stage);
    const { node, externalId, powerState } = vm.status ?? {};
    const path = `/nodes/${node}/qemu/${externalId}/status/stop`;
    const isUp = isReady(vm) && powerState === "Running";
    const stopped = isUp ? stage.byHand({ method: "POST", path }) : undefined;
    await until(world, () => false, 10_000);
    await stopped;
  }
}

describe("somebody who stops a VM again and again", () => {
  it("is named, and Berth does not go on", async () => {
    const stage = await running();
    await fight(stage, 9 * 60_000);
    assert.equal(starts(stage), 4, "the first belongs to the creation");
    const vm = await vmOf(stage);
    assert.equal(condition(vm, "Stalled"), "True ConflictingController");
    assert.match(vm.status?.failure?.message ?? "", /The user .*@.* of the hypervisor keeps/);
    await fight(stage, 30 * 60_000);
    assert.equal(starts(stage), 4, "it is not tried again by the clock");
  });

  for (const seconds of [150, 210, 240, 290]) {
    it(`is noticed where it does so every ${seconds} s`, async () => {
      const stage = await running();
      const path = await pathTo(stage, "status/stop");
      for (let passed = 0; passed < 30 * 60; passed += seconds) {
        const stopping = stage.asRoot({ method: "POST", path });
        await until(stage.world, () => false, seconds * 1_000);
        await stopping;
      }
      assert.match(await conflictIn(stage), /The user root@pam of the hypervisor keeps/);
      assert.equal(starts(stage), 4, "the first, and three more");
    });
  }

  it("is forgotten when a person asks for another try and the other has stopped", async () => {
    const stage = await running();
    await fight(stage, 9 * 60_000);
    const merge = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
    await stage.world.client.of(virtualMachineKind).patch(at, { merge });
    const isUp = await until(stage.world, async () => isReady(await vmOf(stage)));
    assert.ok(isUp, JSON.stringify((await vmOf(stage)).status));
    assert.equal(condition(await vmOf(stage), "Stalled"), "");
  });

  it("is known to a process that was restarted meanwhile", async () => {
    const stage = await running();
    const { world, run } = stage;
    await fight(stage, 10_000);
    const before = starts(stage);
    assert.ok(before < 4, `${before} starts`);
    run.crash();
    world.start();
    await fight(stage, 10 * 60_000);
    assert.equal(starts(stage), 4);
  });
});

describe("somebody who changes a setting back again and again", () => {
  const putTags = async (stage: SimulatedWorld, params: Record<string, string | number>) => {
    await stage.asRoot({ method: "PUT", path: await pathTo(stage, "config"), params });
    return { isBack: () => valueOf(stage, "tags") === "a" };
  };

  it("is reported as a conflict, and Berth does not go on", async () => {
    const stage = await running();
    assert.equal(await revert(stage, 8, () => putTags(stage, { tags: "other" })), 3);
    const message = await conflictIn(stage);
    assert.match(message, /^Somebody keeps changing spec\.tags of this VM back: /);
    assert.match(message, /The hypervisor does not record who changed it\.$/);
  });

  it("is reported though another setting varies each time", async () => {
    const stage = await running({ startOnBoot: true, guestAgent: { enabled: true } });
    const others = [{ onboot: 0 }, { agent: "0" }, { onboot: 0, agent: "0" }, {}];
    const corrected = await revert(stage, 8, (time) => {
      return putTags(stage, { tags: "other", ...others[time % others.length] });
    });
    assert.equal(corrected, 3);
    assert.match(await conflictIn(stage), /changing spec\.tags of/);
  });

  it("stays a conflict after an outage, until a person asks", async () => {
    let isAway = false;
    const between: StageOptions["between"] = async (request, send) => {
      return isAway ? { type: "lost", detail: "no answer" } : send(request);
    };
    const stage = await running({}, { between });
    await revert(stage, 5, () => putTags(stage, { tags: "other" }));
    await conflictIn(stage);
    isAway = true;
    await until(stage.world, () => false, 15 * 60_000);
    assert.equal((await vmOf(stage)).status?.failure?.category, "NetworkError");
    isAway = false;
    await until(stage.world, () => false, 5 * 60_000);
    assert.match(await conflictIn(stage), /spec\.tags/);
    assert.equal(valueOf(stage, "tags"), "other");
    const merge = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
    await stage.world.client.of(virtualMachineKind).patch(at, { merge });
    assert.ok(await until(stage.world, () => valueOf(stage, "tags") === "a"));
  });

  it("does not have the VM switched off for a change that is not made", async () => {
    const networks = [{ name: "lan", bridge: "vmbr0", model: "virtio" }];
    const stage = await running({ updatePolicy: "PowerOff", networks, tags: undefined });
    const put = async (time: number) => {
      const net0 = valueOf(stage, "net0").replace("virtio=", "e1000=");
      const path = await pathTo(stage, "config");
      await stage.asRoot({ method: "PUT", path, params: { net0, ...noticed(time) } });
      return { isBack: () => valueOf(stage, "net0").startsWith("virtio=") };
    };
    await revert(stage, 6, put);
    const offs = stage.requests.filter(({ path }) => /\/status\/(shutdown|stop)$/.test(path));
    assert.equal(offs.length, 3);
    await conflictIn(stage);
    assert.equal((await vmOf(stage)).status?.powerState, "Running");
  });
});

describe("somebody who detaches a disk again and again", () => {
  it("is reported as a conflict after three times", async () => {
    const data = { name: "data", size: "5Gi", storage: "local-zfs" };
    const stage = await running({ disks: [...disks, data], tags: undefined });
    const slot = /^(scsi\d+): \S*-berth-\w+,/m.exec(textOf(stage))?.[1] ?? "";
    assert.notEqual(slot, "", textOf(stage));
    const corrected = await revert(stage, 8, async (time) => {
      const path = await pathTo(stage, "config");
      const isThere = (): boolean => valueOf(stage, slot) !== "";
      const params = { delete: slot, ...noticed(time) };
      if (isThere()) await stage.asRoot({ method: "PUT", path, params });
      return { isBack: isThere };
    });
    assert.equal(corrected, 3);
    assert.match(
      await conflictIn(stage),
      /^Somebody keeps detaching spec\.disks\[data\] of this VM: /,
    );
  });
});

describe("somebody who moves a VM back again and again", () => {
  it("is named from the task list of the node that it left", async () => {
    const shared = [{ name: "root", size: "10Gi", storage: "shared" }];
    const placement = { node: "pve2", mode: "Enforce" };
    const stage = await running({ placement, disks: shared });
    const nodeOf = (): string => Object.values(stage.proxmox.cluster.state.guests)[0]?.node ?? "";
    const corrected = await revert(stage, 8, async () => {
      const path = await pathTo(stage, "migrate");
      const params = { target: "pve1", online: 1 };
      if (nodeOf() === "pve2") await stage.asRoot({ method: "POST", path, params });
      return { isBack: () => nodeOf() === "pve2" };
    });
    assert.equal(corrected, 3);
    assert.match(
      await conflictIn(stage),
      /^The user root@pam of the hypervisor keeps changing spec\.placement/,
    );
  });
});

describe("somebody who deletes a VM again and again", () => {
  it("is named, and the VM is not created once more", async () => {
    const stage = await running({ onMissing: "Recreate" });
    const creates = (): number => {
      return stage.requests.filter(
        ({ method, path }) => method === "POST" && path.endsWith("/qemu"),
      ).length;
    };
    const isThere = (): boolean => Object.keys(stage.proxmox.cluster.state.guests).length > 0;
    await revert(stage, 9, async () => {
      if (isThere()) {
        const { node = "", externalId = "" } = (await vmOf(stage)).status ?? {};
        stage.proxmox.cluster.setMachine(node, Number(externalId), undefined);
        await stage.asRoot({ method: "DELETE", path: (await pathTo(stage, "")).slice(0, -1) });
      }
      return { isBack: isThere };
    });
    assert.equal(creates(), 4, "the first, and three more");
    assert.match(
      await conflictIn(stage),
      /^The user root@pam of the hypervisor keeps deleting this VM/,
    );
  });
});

describe("what is no conflict", () => {
  it("steps that failed before one of them worked do not count", async () => {
    let failing = 0;
    const between: StageOptions["between"] = async (request, send) => {
      const isStart = request.path.endsWith("/status/start");
      if (!isStart || failing <= 0) return send(request);
      failing -= 1;
      const body = JSON.stringify({ data: null });
      return { type: "answered", status: 500, reason: "no memory", body, from: "pve1" };
    };
    const stage = await running({}, { between });
    failing = 2;
    for (let times = 0; times < 2; times += 1) {
      const stopping = stage.asRoot({ method: "POST", path: await pathTo(stage, "status/stop") });
      const isUp = async (): Promise<boolean> => {
        const { status } = await vmOf(stage);
        return status?.powerState === "Running" && isReady(await vmOf(stage));
      };
      await until(stage.world, () => false, 20_000);
      await stopping;
      assert.ok(await until(stage.world, isUp), JSON.stringify((await vmOf(stage)).status));
    }
    assert.equal(failing, 0);
  });
});

const locked = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";
const faults = {
  locked: { type: "answered", status: 500, reason: locked, body: '{"data":null}', from: "pve1" },
  refused: { type: "answered", status: 403, reason: "no", body: '{"data":null}', from: "pve1" },
  changed: {
    type: "answered",
    status: 500,
    reason: "detected modified configuration - file changed by other user? Try again.",
    body: '{"data":null}',
    from: "pve1",
  },
  failing: { type: "answered", status: 500, reason: "no", body: '{"data":null}', from: "pve1" },
  lost: { type: "lost", detail: "no answer" },
} as const;

/** Seconds for which PUT config is answered so. */
const held = [5, 10, 30, 120] as const;
const without: readonly (readonly [keyof typeof faults, number, boolean])[] = [
  ...held.flatMap((seconds) => [["locked", seconds, false] as const]),
  ...held.flatMap((seconds) => [["locked", seconds, true] as const]),
  ...(["refused", "failing", "lost"] as const).flatMap((fault) => {
    return [[fault, 120, false] as const, [fault, 120, true] as const];
  }),
];

/** How often a field counts as changed. */
function timesOf({ status }: VirtualMachine, name: string): number {
  return status?.recentSteps?.find(({ field }) => field === name)?.times.length ?? 0;
}

/** So many seconds pass, and no conflict is reported or comes nearer. */
async function passUncounted(stage: SimulatedWorld, seconds: number): Promise<void> {
  for (let passed = 0; passed < seconds; passed += 1) {
    await until(stage.world, () => false, 1_000);
    const vm = await vmOf(stage);
    assert.notEqual(vm.status?.failure?.category, "ConflictingController", `${passed} s`);
    const times = timesOf(vm, "cpu.cores");
    assert.ok(times <= 1, `counted ${times} times after ${passed} s`);
  }
}

describe("a step without effect is nothing that somebody changed back", () => {
  for (const [fault, seconds, isForgetful] of without) {
    const how = isForgetful ? ", by a process that forgets everything" : "";
    it(`${fault} for ${seconds} s${how}`, async () => {
      let isOn = false;
      const between: StageOptions["between"] = async (request, send) => {
        const isHit = isOn && request.method === "PUT" && request.path.endsWith("/config");
        return isHit ? faults[fault] : send(request);
      };
      const stage = await running({ powerState: "Stopped" }, { between, isForgetful });
      const { world } = stage;
      isOn = true;
      const merge = { spec: { cpu: { cores: 3 } } };
      await world.client.of(virtualMachineKind).patch(at, { merge });
      await passUncounted(stage, seconds);
      if (fault === "locked") assert.equal((await vmOf(stage)).status?.failure, undefined);
      isOn = false;
      // What was refused is tried again when a person asks.
      const asked = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
      if (fault !== "locked") await world.client.of(virtualMachineKind).patch(at, { merge: asked });
      assert.ok(await until(world, () => valueOf(stage, "cores") === "3", 5 * 60_000));
      assert.ok(await until(world, async () => isReady(await vmOf(stage))));
      assert.equal(timesOf(await vmOf(stage), "cpu.cores"), 1);
    });
  }
});

describe("a step without effect after two that somebody changed back", () => {
  for (const fault of ["locked", "lost", "changed", "failing"] as const) {
    for (const isForgetful of [false, true]) {
      it(`${fault}${isForgetful ? ", by a process that forgets everything" : ""}`, async () => {
        let isOn = false;
        const between: StageOptions["between"] = async (request, send) => {
          const isHit = isOn && request.method === "PUT" && request.path.endsWith("/config");
          return isHit ? faults[fault] : send(request);
        };
        const stage = await running({ powerState: "Stopped" }, { between, isForgetful });
        const put = async () => {
          const path = await pathTo(stage, "config");
          await stage.asRoot({ method: "PUT", path, params: { tags: "other" } });
          return { isBack: () => valueOf(stage, "tags") === "a" };
        };
        assert.equal(await revert(stage, 2, put), 2);
        isOn = true;
        assert.equal(await revert(stage, 1, put), 0);
        await until(stage.world, () => false, 60_000);
        const { failure } = (await vmOf(stage)).status ?? {};
        assert.notEqual(failure?.category, "ConflictingController");
        isOn = false;
        const isBack = (): boolean => valueOf(stage, "tags") === "a";
        assert.ok(await until(stage.world, isBack, 5 * 60_000));
      });
    }
  }
});

describe("a guest that powers itself off", () => {
  it("is no conflict", async () => {
    const stage = await running();
    const { world, proxmox } = stage;
    for (let times = 0; times < 5; times += 1) {
      const { node = "", externalId = "" } = (await vmOf(stage)).status ?? {};
      proxmox.cluster.setMachine(node, Number(externalId), undefined);
      await until(world, () => false, 60_000);
    }
    assert.notEqual((await vmOf(stage)).status?.failure?.category, "ConflictingController");
    assert.ok(starts(stage) > 4, `${starts(stage)} starts`);
  });
});
