import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { httpForm } from "../../drivers/proxmox/index.ts";
import { releases } from "../../sim/index.ts";
import { condition, listClaims } from "../testing/world.ts";
import { idOf, Stage, type Spec } from "./testing.ts";

const blank: Spec = { source: { blank: {} }, shutdown: { graceSeconds: 0 } };

/** Failures of deletions. Each is named after the thread. */
describe("deleting a machine", () => {
  it("karpenter-188: the object stays until stop and destroy have ended and the machine is gone", async () => {
    const stage = await Stage.open("9.2", { timing: { stopMs: 20_000 } });
    const { proxmox } = stage.simulated;
    const vm = await stage.make("web", blank);
    const id = idOf(vm);
    proxmox.faults.onStep({
      matches: ({ name }, step) => name.startsWith("qmdestroy") && /free/.test(step.name),
      verdict: { kind: "fail", error: new Error("got lock timeout") },
    });
    await stage.startRemoving("web");
    const isStopping = await stage.until(() => stage.writes.some((path) => path.endsWith("/stop")));
    assert.ok(isStopping && stage.guests[id]);
    assert.ok(await stage.vm("web"), "while it stops");
    const isAsked = await stage.until(() => stage.writes.some((path) => path.startsWith("DELETE")));
    assert.ok(isAsked && (await stage.vm("web")), "while it is destroyed");
    assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined));
    assert.deepEqual(stage.guests, {});
    assert.deepEqual(stage.volumes, [], "also what the destroy could not free");
    const order = stage.writes.map((path) => path.replace(/.*\/(?=stop$|qemu\/)/, ""));
    assert.ok(order.indexOf("stop") < order.findIndex((path) => /^qemu\/\d+$/.test(path)));
  });

  it("karpenter-188: a destroy that fails is tried again, and the object says why it is still there", async () => {
    const stage = await Stage.open("9.2");
    const vm = await stage.make("web", { ...blank, powerState: "Stopped" });
    stage.simulated.proxmox.faults.onStep({
      matches: ({ name }) => name.startsWith("qmdestroy"),
      verdict: { kind: "fail", error: new Error("storage is not online") },
    });
    await stage.startRemoving("web");
    const failed = await stage.when("web", ({ status }) => status?.failure !== undefined);
    assert.match(condition(failed, "Ready"), /^False/);
    assert.match(JSON.stringify(failed.status?.failure), /storage is not online/);
    assert.ok(stage.guests[idOf(vm)]);
    assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined));
    assert.deepEqual([Object.keys(stage.guests), stage.volumes], [[], []]);
  });

  it("karpenter-188: what a node without its cluster does not see is no absence", async () => {
    const cut = { off: false };
    const stage = await Stage.open("9.2", {
      between: async (request, send) => {
        const isAsked = /\/qemu\/\d+\/pending$|\/cluster\/nextid$/.test(request.path);
        if (!cut.off || !isAsked) return send(request);
        const answered = { type: "answered", from: "pve1" } as const;
        if (request.path.endsWith("/nextid")) {
          const body = JSON.stringify({ data: request.params?.["vmid"] });
          return { ...answered, status: 200, reason: "OK", body };
        }
        const message = "Configuration file 'nodes/pve1/qemu-server/1.conf' does not exist\n";
        return { ...answered, status: 500, reason: message, body: JSON.stringify({ message }) };
      },
    });
    // Without a disk nothing else would show that it stands.
    const vm = await stage.make("web", { ...blank, disks: [] });
    cut.off = true;
    stage.simulated.proxmox.faults.hasNoQuorum = true;
    await stage.startRemoving("web");
    await stage.pass(300_000);
    assert.ok(await stage.vm("web"));
    const [claim] = await listClaims(stage.simulated.world.client);
    assert.equal(claim?.spec.state, "Bound");
    assert.ok(stage.guests[idOf(vm)]);
    cut.off = false;
    stage.simulated.proxmox.faults.hasNoQuorum = false;
    assert.ok(await stage.until(async () => (await stage.vm("web")) === undefined));
    assert.deepEqual(stage.guests, {});
  });

  for (const release of releases) {
    it(`PXC-403: flags are in the query on ${release}, and nothing is swept by name`, async () => {
      const stage = await Stage.open(release);
      const vm = await stage.make("web", blank);
      const id = idOf(vm);
      // Another cluster's live disk, on storage that both use.
      const theirs = {
        name: `${id}/vm-${id}-disk-7.raw`,
        content: "images",
        format: "raw",
      } as const;
      stage.state.volumes["shared:192.0.2.2:/export/shared"] = [
        { ...theirs, sizeBytes: 1, usedBytes: 1, createdMs: 0, vmid: Number(id) },
      ];
      await stage.remove("web");
      const [removal] = stage.writeRequests.filter(({ method }) => method === "DELETE");
      assert.ok(removal);
      const { path, body, contentType } = httpForm(removal);
      assert.match(path, /\?purge=1&destroy-unreferenced-disks=0$/);
      assert.deepEqual([body, contentType], ["", undefined]);
      assert.deepEqual(stage.volumes, [theirs.name]);
    });
  }
});
