import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../../api/index.ts";
import type { ClaimSpec } from "../../api/index.ts";
import { guests, hasKeeper, ready, spec, volumes } from "../testing/keeping.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "../testing/simulated-proxmox.ts";
import { createVm, getVm, listClaims, until } from "../testing/world.ts";
import { configure, decide, listOrphans, longMs, slow, waitForOrphan } from "./testing.ts";

const web = { namespace: "default", name: "web" };

/** Somebody takes the finalizer off an object that is being deleted: nobody goes on with it. */
async function strip({ world }: SimulatedWorld): Promise<void> {
  const vms = world.client.of(virtualMachineKind);
  const paused = { [annotations.paused]: "true" };
  await vms.patch(web, { merge: { metadata: { annotations: paused, finalizers: null } } });
  assert.equal(await getVm(world.client, "web"), undefined);
}

async function holder({ world }: SimulatedWorld): Promise<ClaimSpec | undefined> {
  const claims = await listClaims(world.client);
  return claims.find(({ spec: { role } }) => role === "DiskHolder")?.spec;
}

/** A VM with a disk to be retained, whose deletion is cut off when its disk-holder VM is so far. */
async function cutOff(
  isSoFar: (claim: ClaimSpec, stage: SimulatedWorld) => boolean,
  options: StageOptions = {},
): Promise<SimulatedWorld> {
  const stage = await openProxmox("8.4", options);
  const { world } = stage;
  await configure(world, { orphans: { policy: "DeleteOwned", graceSeconds: 60 } });
  world.start(slow);
  await createVm(world.client, "web", { ...spec, powerState: "Stopped" });
  await ready(stage);
  await world.client.of(virtualMachineKind).delete(web);
  const isThere = await until(world, async () => {
    const claim = await holder(stage);
    return claim !== undefined && isSoFar(claim, stage);
  });
  assert.ok(isThere, JSON.stringify(await listClaims(world.client)));
  await strip(stage);
  return stage;
}

/** The disk has come to the disk-holder VM, and its Claim says so. */
function isHanded({ externalId, volumes: known = [] }: ClaimSpec): boolean {
  return known.some(({ id }) => id.includes(`vm-${externalId}-`));
}

describe("a disk-holder VM whose object is gone", () => {
  it("is released with the disk that it holds, which comes back to an object of the name", async () => {
    const stage = await cutOff(isHanded);
    const { world, proxmox } = stage;
    const { externalId } = (await holder(stage)) ?? {};
    const name = `vm-${externalId}-disk-0`;
    const disk = Object.values(proxmox.cluster.state.volumes)
      .flat()
      .find((volume) => volume.name === name);
    assert.ok(disk);
    assert.ok(await until(world, async () => !(await hasKeeper(stage)), longMs));
    assert.equal((await holder(stage))?.state, "Released");
    await until(world, () => false, longMs);
    assert.deepEqual(volumes(stage), [name], "the VM went, and its retained disk did not");
    assert.deepEqual(await listOrphans(world), []);
    await createVm(world.client, "web", { ...spec, powerState: "Stopped" });
    const id = await ready(stage);
    const lines = Object.values(guests(stage).get(id) ?? {});
    assert.ok(
      lines.some((line) => line.startsWith(`local-zfs:${disk.name},`)),
      `the new VM has the very disk: ${disk.name} in ${lines.join("; ")}`,
    );
  });

  it("is released with a disk that came when its object was gone, and the VM goes", async () => {
    const stage = await cutOff(({ volumes: known = [] }) => known.length > 0);
    const { world } = stage;
    const { externalId = "" } = (await holder(stage)) ?? {};
    assert.ok(await until(world, () => guests(stage).size === 1, 2 * longMs));
    assert.deepEqual(volumes(stage), [`vm-${externalId}-disk-0`]);
    const { state, volumes: known = [] } = (await holder(stage)) ?? {};
    assert.equal(state, "Released");
    assert.deepEqual(
      known.map(({ id, disk }) => `${disk} ${id}`),
      [`data local-zfs:vm-${externalId}-disk-0`],
    );
  });

  it("and that holds nothing yet is reported, and goes by the policy", async () => {
    const stage = await cutOff(({ volumes: known = [] }) => known.length > 0, {
      between: async (request, send) => {
        const isHandOver = request.path.endsWith("/move_disk");
        return isHandOver ? { type: "lost", detail: "cut" } : send(request);
      },
    });
    const { world } = stage;
    const { externalId = "" } = (await holder(stage)) ?? {};
    assert.ok(guests(stage).has(externalId));
    const isGone = await until(world, () => !guests(stage).has(externalId), 2 * longMs);
    assert.ok(isGone, JSON.stringify([await holder(stage), await listOrphans(world)]));
    assert.ok(await until(world, async () => !(await hasKeeper(stage)), longMs));
    assert.equal((await holder(stage))?.state, "Quarantined");
    assert.equal(volumes(stage).length, 2, "the VM keeps both of its disks");
  });

  it("and that was only reserved gives its id back", async () => {
    const stage = await cutOff(({ state }, { proxmox }) => {
      // Before the request for it has left.
      return state === "Reserved" && Object.keys(proxmox.cluster.state.guests).length === 1;
    });
    const { world } = stage;
    const isBack = await until(world, async () => !(await hasKeeper(stage)), 2 * longMs);
    assert.ok(isBack, JSON.stringify([await holder(stage), await listOrphans(world)]));
    assert.equal(volumes(stage).length, 2);
  });

  it("and whose own VM was removed by hand is known by the disk that it held", async () => {
    const stage = await cutOff(isHanded);
    const { world, proxmox } = stage;
    const { externalId = "" } = (await holder(stage)) ?? {};
    proxmox.removeGuestFile(Number(externalId));
    const orphan = await waitForOrphan(world, `local-zfs:vm-${externalId}-disk-0`);
    assert.equal(orphan.status?.ownership, "Ours");
    assert.deepEqual(orphan.status?.allowedDecisions, ["Keep"]);
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, () => false, longMs);
    assert.ok(volumes(stage).includes(`vm-${externalId}-disk-0`), "it says Retain");
  });
});
