import assert from "node:assert/strict";
import { it } from "node:test";
import { hypervisorKind } from "../../api/index.ts";
import { limits } from "../../kernel/limits.ts";
import { openProxmox } from "../testing/simulated-proxmox.ts";
import { condition, createVm, getVm, until } from "../testing/world.ts";
import { disks, leaveVolume, listOrphans, slow } from "./testing.ts";

it("300 volumes of somebody else under a chosen id fit into the status that reports them", async () => {
  const stage = await openProxmox();
  const { world } = stage;
  for (let index = 0; index < 300; index += 1) {
    leaveVolume(stage.proxmox, `vm-200-somebodys-own-volume-${index}`);
  }
  world.start(slow);
  await createVm(world.client, "web", { disks, externalId: "200", placement: { node: "pve1" } });
  await until(world, async () => condition(await getVm(world.client, "web"), "Stalled") !== "");
  await until(world, () => false, 600_000);
  const vm = await getVm(world.client, "web");
  assert.equal(condition(vm, "Stalled"), "True OrphanedVolumes");
  assert.match(vm?.status?.failure?.message ?? "", /… and 290 more/);
  assert.ok(JSON.stringify(vm?.status).length < limits.statusBytes / 2);
  // Each can be decided about, and none is told twice.
  assert.equal((await listOrphans(world)).length, 300);
});

it("volumes that a declared VM waits for become at most 500 Orphans more than others", async () => {
  const stage = await openProxmox();
  const { world } = stage;
  for (let index = 0; index < 1_010; index += 1) leaveVolume(stage.proxmox, `vm-200-v${index}`);
  world.start(slow);
  await createVm(world.client, "web", { disks, externalId: "200", placement: { node: "pve1" } });
  await until(world, () => false, 600_000);
  assert.equal((await listOrphans(world)).length, 1_000);
  const hypervisor = await world.client.of(hypervisorKind).get({ name: "model" });
  assert.equal(hypervisor.status?.sweep?.unreported, 10);
});
