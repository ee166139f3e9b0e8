import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { proxmoxDialect } from "../drivers/proxmox/index.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";
import { previewVm } from "./virtual-machine/index.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const data = { name: "data", size: "2Gi", storage: "local-zfs" };
const web = { namespace: "default", name: "web" };

type Spec = Partial<WrittenVirtualMachineSpec>;

/** What is foreseen, in words; and what Synced says once the edit was worked on. */
const cases: readonly { reason: string; change: Spec; foreseen: string; synced: string }[] = [
  {
    reason: "what is foreseen to be live is made",
    change: { description: "hello" },
    foreseen: "spec.notes Live",
    synced: "True Succeeded",
  },
  {
    reason: "what is foreseen to need a reboot waits for one",
    change: { cpu: { cores: 4 } },
    foreseen: "spec.cpu.cores Reboot",
    synced: "False RestartRequired",
  },
  {
    reason: "what is foreseen to be refused is refused whole",
    change: { cloudInit: { user: { name: "deb" } }, description: "no" },
    foreseen:
      "ReplacementRequired: spec.cloudInit.datasource Refused, spec.cloudInit.user Refused, spec.notes Live",
    synced: "False ReplacementRequired",
  },
  {
    reason: "a disk whose entry goes is foreseen to be kept",
    change: { disks: [root] },
    foreseen: "spec.disks[data] Live",
    synced: "True Succeeded",
  },
];

describe("the plan of an edit, before it is applied", () => {
  for (const { reason, change, foreseen, synced } of cases) {
    it(reason, async () => {
      const { world } = await openProxmox();
      world.start();
      await createVm(world.client, "web", { disks: [root, data] });
      assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
      const vms = world.client.of(virtualMachineKind);
      const before = await vms.get(web);
      const patch = { merge: { spec: change } };
      const after = await vms.patch(web, patch, { dryRun: true });
      const hypervisor = await world.client.of(hypervisorKind).get({ name: "model" });
      const [claim] = await listClaims(world.client);
      assert.ok(claim);
      const around = { hypervisor, networks: new Map(), fills: new Map(), discs: new Map() };
      const { plan, refusal } = previewVm({
        before: { ...around, vm: before, isNew: false },
        after: { ...around, vm: after, isNew: false },
        claim: claim.spec,
        dialect: proxmoxDialect("8.4"),
        nowMs: world.clock.nowMs(),
      });
      const changes = plan.changes.map(({ field, effect }) => `${field} ${effect}`).join(", ");
      const told = refusal === undefined ? changes : `${refusal.category}: ${changes}`;
      assert.equal(told, foreseen);
      await vms.patch(web, patch);
      let last = "";
      const isSo = await until(world, async () => {
        last = condition(await getVm(world.client, "web"), "Synced");
        return last === synced;
      });
      assert.ok(isSo, last);
    });
  }
});
