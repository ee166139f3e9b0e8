import assert from "node:assert/strict";
import { test } from "node:test";
import { annotations, hypervisorKind, virtualMachineKind, vmImageKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import {
  condition,
  createHypervisor,
  createImage,
  createVm,
  getVm,
  isReady,
  listClaims,
  openWorld,
  until,
  type World,
} from "./testing/world.ts";

const web = { namespace: "default", name: "web" };

async function ready(world: World): Promise<void> {
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, JSON.stringify([vm?.status, world.model.effects, world.log], undefined, 1));
}

async function gone(world: World): Promise<void> {
  const isGone = await until(world, async () => (await getVm(world.client, "web")) === undefined);
  const vm = await getVm(world.client, "web");
  assert.ok(isGone, JSON.stringify([vm?.status, world.model.effects], undefined, 1));
}

async function comesTo(world: World, type: string, wanted: string): Promise<void> {
  let last = "";
  const isThere = await until(world, async () => {
    last = condition(await getVm(world.client, "web"), type);
    return last === wanted;
  });
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, `${type} is ${last}: ${JSON.stringify([vm?.status, world.log])}`);
}

async function edit(world: World, spec: Partial<WrittenVirtualMachineSpec>): Promise<void> {
  await world.client.of(virtualMachineKind).patch(web, { merge: { spec } });
}

for (const kind of ["create", "addDisk", "grow", "powerOn", "powerOff", "destroy"]) {
  for (const fault of ["lost before", "lost after"] as const) {
    test(`a reply to ${kind} that is ${fault} it was done is settled by looking`, async () => {
      const world = await openWorld();
      let isFirst = true;
      world.model.fault = (operation) => {
        if (operation.kind !== kind || !isFirst) return "none";
        isFirst = false;
        return fault;
      };
      world.start();
      await createVm(world.client, "web");
      await ready(world);
      await world.client.of(virtualMachineKind).delete(web);
      await gone(world);
      assert.equal(isFirst, false);
      const asked = world.model.effects.filter((effect) => effect.startsWith(`${kind} `));
      // What was done is not asked for again; of the disks there are two.
      assert.equal(asked.length, kind === "addDisk" ? 2 : 1, world.model.effects.join());
      assert.equal(world.model.machines.size, 0);
      assert.equal(world.model.volumes.size, 0);
    });
  }
}

test("a stranger who takes the id in the last moment keeps it, and Berth takes another", async () => {
  const world = await openWorld();
  const { model, client } = world;
  model.fault = (operation) => {
    if (operation.kind === "create" && !model.machines.has("100")) model.addStranger("100");
    return "none";
  };
  world.start();
  await createVm(client, "web");
  await ready(world);
  assert.equal((await getVm(client, "web"))?.status?.externalId, "101");
  assert.equal(model.machines.get("100")?.version, 1);
  const claims = await listClaims(client);
  const states = claims.map(({ spec }) => `${spec.externalId} ${spec.state}`).toSorted();
  assert.deepEqual(states, ["100 Quarantined", "101 Bound"]);
});

/** What a sweep records of what it saw is the Hypervisor's. */
function writesOfVms({ statusWrites }: World): number {
  return statusWrites.filter((path) => path.includes("/virtualmachines/")).length;
}

test("an id that the user chose and a stranger has is a stall that names it, once", async () => {
  const world = await openWorld();
  world.model.addStranger("200");
  world.start();
  await createVm(world.client, "web", { externalId: "200" });
  await comesTo(world, "Stalled", "True IdentityConflict");
  const writes = writesOfVms(world);
  await until(world, () => false, 30 * 60_000);
  assert.equal(writesOfVms(world), writes, "it is said once");
  assert.deepEqual(world.model.effects, []);
  const claims = await listClaims(world.client);
  assert.deepEqual(
    claims.map(({ spec }) => spec.preflight),
    ["Pending"],
  );
});

test("what a look refuses is looked at ever more seldom, and goes on when it was mended", async () => {
  const world = await openWorld();
  const left = { id: "fast:vm-200-disk-0", owner: "200", storage: "fast", sizeBytes: 1 };
  world.model.volumes.set(left.id, left);
  const run = world.start();
  await createVm(world.client, "web", { externalId: "200" });
  await comesTo(world, "Stalled", "True OrphanedVolumes");
  const writes = writesOfVms(world);
  await until(world, () => false, 60 * 60_000);
  assert.equal(writesOfVms(world), writes, "it is said once");
  const looks = run.calls.filter((name) => name === "preflight").length;
  assert.ok(looks >= 6 && looks <= 20, `${looks} looks in an hour`);
  assert.deepEqual(world.model.effects, []);
  world.model.volumes.delete(left.id);
  const isMade = await until(
    world,
    async () => isReady(await getVm(world.client, "web")),
    // It is noticed at the next look, and believed ten minutes after that.
    25 * 60_000,
  );
  assert.ok(isMade, "nobody had to ask for it");
});

test("what was seen is written down and acted on without a second look", async () => {
  const world = await openWorld();
  const run = world.start();
  await createVm(world.client, "web", { disks: [{ name: "root" }] });
  await ready(world);
  const steps = world.model.effects.length;
  const calls = run.calls.slice(run.calls.indexOf("begin"));
  const looks = calls.filter((name) => name === "observe").length;
  // One after each step, and one more where a tick came in between.
  assert.ok(looks <= steps + 1, `${looks} looks for ${steps} steps: ${calls.join("\n")}`);
});

/** Each line of log names the work, so that it is found on the hypervisor. */
function assertNamed(lines: readonly string[]): void {
  assert.equal(lines.length, 5);
  for (const line of lines) {
    const { hypervisor, operation, task, cause } = JSON.parse(line.slice(line.indexOf("{")));
    assert.deepEqual([hypervisor, cause], ["model", "Error: out of luck"]);
    assert.ok(operation && task, line);
  }
}

test("a creation that fails five times stalls, and an edit begins anew", async () => {
  const world = await openWorld();
  world.model.fault = ({ kind }) => (kind === "create" ? "task fails" : "none");
  world.start();
  await createVm(world.client, "web");
  await until(world, () => false, 60 * 60_000);
  const vm = await getVm(world.client, "web");
  assert.equal(condition(vm, "Stalled"), "True CreationFailed");
  assert.equal(vm?.status?.failure?.attempts, 5);
  assert.equal(vm?.status?.failure?.cause, "Error: out of luck");
  assert.equal(world.model.effects.length, 5);
  assertNamed(world.log.filter((line) => /^warn (has failed|stalls) /.test(line)));
  world.model.fault = () => "none";
  await edit(world, { cpu: { cores: 4 } });
  await ready(world);
  assert.equal((await getVm(world.client, "web"))?.status?.failure, undefined);
});

test("a hypervisor that is away makes its machines Unknown, never missing", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  await ready(world);
  world.model.isAway = true;
  await comesTo(world, "Ready", "Unknown Unreachable");
  const vm = await getVm(world.client, "web");
  assert.equal(vm?.status?.failure?.category, "NetworkError");
  world.model.isAway = false;
  await ready(world);
  assert.equal(world.model.machines.size, 1);
});

test("a hypervisor that went away is tried again after half a minute, or when a person asks", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  await ready(world);
  const hypervisors = world.client.of(hypervisorKind);
  const isConnected = async (): Promise<boolean> => {
    const { status } = await hypervisors.get({ name: "model" });
    return status?.failure === undefined;
  };
  world.model.isAway = true;
  await until(world, async () => !(await isConnected()));
  world.model.isAway = false;
  assert.ok(await until(world, isConnected, 37_000), "it took longer than the first wait");
  world.model.isAway = true;
  await until(world, async () => !(await isConnected()));
  await until(world, () => false, 20 * 60_000);
  world.model.isAway = false;
  const asked = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
  await hypervisors.patch({ name: "model" }, { merge: asked });
  assert.ok(await until(world, isConnected, 1_000), "a person asked, and nothing happened");
});

test("a missing image is named, and the machine is made when it appears", async () => {
  const world = await openWorld();
  await world.client.of(vmImageKind).delete({ namespace: "default", name: "debian" });
  world.start();
  await createVm(world.client, "web");
  await comesTo(world, "Ready", "False ImageNotFound");
  assert.deepEqual(world.model.effects, []);
  await createImage(world.client, "debian");
  await ready(world);
});

test("an image by URL is brought to the node first, once, under its checksum's name", async () => {
  const world = await openWorld();
  world.start();
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: "remote" },
    spec: {
      source: { http: { url: "https://a.example/x.qcow2", checksum: `sha256:${"a".repeat(64)}` } },
    },
  });
  await createVm(world.client, "web", { source: { image: { name: "remote" } } });
  await ready(world);
  const fetches = world.model.effects.filter((effect) => effect.startsWith("fetchImage"));
  assert.equal(fetches.length, 1);
  assert.ok(world.model.images.has(`store:import/berth-sha256-${"a".repeat(64)}.qcow2`));
});

test("a machine that once stood and is gone is not made anew unless it is told so", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  await ready(world);
  world.model.machines.clear();
  world.model.volumes.clear();
  await comesTo(world, "Stalled", "True Missing");
  const before = world.model.effects.length;
  await until(world, () => false, 30 * 60_000);
  assert.equal(world.model.effects.length, before);
  await edit(world, { onMissing: "Recreate" });
  await ready(world);
  assert.equal(world.model.machines.size, 1);
});

test("Retain lets the machine go with its mark rewritten and nothing else changed", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web", { deletionPolicy: "Retain" });
  await ready(world);
  await world.client.of(virtualMachineKind).delete(web);
  await gone(world);
  const [machine] = world.model.machines.values();
  assert.equal(machine?.mark?.state, "Released");
  assert.equal(machine?.power, "Running");
  const [claim] = await listClaims(world.client);
  assert.equal(claim?.spec.state, "Released");
});

test("while its kind goes away, deleting the object retains the machine", async () => {
  const world = await openWorld();
  world.start({ mayDestroy: async () => false });
  await createVm(world.client, "web");
  await ready(world);
  await world.client.of(virtualMachineKind).delete(web);
  await gone(world);
  assert.equal(world.model.machines.size, 1);
});

test("an edit is applied in place, and drift is put right", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  await ready(world);
  await edit(world, { memory: { size: "4Gi" } });
  await ready(world);
  const [machine] = world.model.machines.values();
  assert.ok(machine);
  assert.equal(machine.shape.memory?.sizeBytes, 4 * 1024 ** 3);
  machine.shape = { ...machine.shape, memory: { sizeBytes: 1024 ** 3 } };
  machine.version += 1;
  const isRight = (): boolean => machine.shape.memory?.sizeBytes === 4 * 1024 ** 3;
  assert.ok(await until(world, isRight));
});

test("drift that shall only be reported is reported and left alone", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web", { driftPolicy: "Warn" });
  await ready(world);
  const [machine] = world.model.machines.values();
  assert.ok(machine);
  machine.shape = { ...machine.shape, memory: { sizeBytes: 1024 ** 3 } };
  machine.version += 1;
  await comesTo(world, "Synced", "False Drifted");
  assert.equal(machine.shape.memory?.sizeBytes, 1024 ** 3);
  assert.ok(condition(await getVm(world.client, "web"), "Ready").startsWith("True"));
});

test("a disk that shrinks is refused with its field, and nothing is applied", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web", { disks: [{ name: "root" }] });
  await ready(world);
  const before = world.model.effects.length;
  await edit(world, { disks: [{ name: "root", size: "1Mi" }] });
  await comesTo(world, "Synced", "False ReplacementRequired");
  assert.equal(world.model.effects.length, before);
  assert.ok(condition(await getVm(world.client, "web"), "Ready").startsWith("True"));
});

test("a restart that was asked for is made once", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  await ready(world);
  const before = world.model.effects.length;
  const merge = { metadata: { annotations: { [annotations.restartAt]: "now" } } };
  await world.client.of(virtualMachineKind).patch(web, { merge });
  const isHandled = async (): Promise<boolean> => {
    const vm = await getVm(world.client, "web");
    return vm?.status?.handledRestartAt === "now" && vm.status.powerState === "Running";
  };
  assert.ok(await until(world, isHandled));
  await until(world, () => false, 60_000);
  const kinds = world.model.effects.slice(before).map((effect) => effect.split(" ")[0]);
  assert.deepEqual(kinds, ["powerOff", "powerOn"]);
});

test("a paused object is left alone until it is resumed", async () => {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  const paused = { metadata: { annotations: { [annotations.paused]: "true" } } };
  await world.client.of(virtualMachineKind).patch(web, { merge: paused });
  await until(world, () => false, 60_000);
  assert.deepEqual(world.model.effects, []);
  const resumed = { metadata: { annotations: { [annotations.paused]: null } } };
  await world.client.of(virtualMachineKind).patch(web, { merge: resumed });
  await ready(world);
});

test("at rest nothing is written, and each tick costs one call", async () => {
  const world = await openWorld();
  const run = world.start();
  await createVm(world.client, "web");
  await ready(world);
  await until(world, () => false, 30_000);
  const before = run.calls.length;
  await until(world, () => false, 100_000);
  const calls = run.calls
    .slice(before)
    .filter((name) => !name.startsWith("GET /api/v1/namespaces/berth-system/secrets"));
  assert.ok(
    calls.every((name) => name === "inventory"),
    calls.join("\n"),
  );
  assert.ok(calls.length >= 9 && calls.length <= 11, `${calls.length} calls`);
});

test("a second Hypervisor for the same system is refused, and names the first", async () => {
  const world = await openWorld();
  world.start();
  const hypervisors = world.client.of(hypervisorKind);
  const isKnown = async (): Promise<boolean> =>
    (await hypervisors.get({ name: "model" })).spec.systemId !== undefined;
  assert.ok(await until(world, isKnown));
  await createHypervisor(world.client, "again");
  let conflict: string | undefined;
  const isRefused = async (): Promise<boolean> => {
    conflict = (await hypervisors.get({ name: "again" })).status?.conflictsWith;
    return conflict !== undefined;
  };
  assert.ok(await until(world, isRefused, 60_000));
  assert.equal(conflict, "model");
});

test("new endpoints do not get the old credentials", async () => {
  const world = await openWorld();
  world.start();
  const hypervisors = world.client.of(hypervisorKind);
  const reason = async (): Promise<string | undefined> => {
    const { status } = await hypervisors.get({ name: "model" });
    return status?.conditions?.find(({ type }) => type === "Ready")?.reason;
  };
  assert.ok(await until(world, async () => (await reason()) === "Connected", 60_000));
  const endpoints = ["https://evil.example:8006"];
  await hypervisors.patch({ name: "model" }, { merge: { spec: { endpoints } } });
  assert.ok(await until(world, async () => (await reason()) === "CredentialsNotRenewed", 60_000));
});
