import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../../api/index.ts";
import { releases } from "../../sim/index.ts";
import { condition } from "../testing/world.ts";
import { idOf, Stage, type Spec } from "./testing.ts";

/** The last part of every request about power, in order. */
function powerCalls(stage: Stage): string[] {
  return stage.writes.flatMap((path) => /\/status\/(\w+)$/.exec(path)?.[1] ?? []);
}

function runs({ simulated }: Stage, id: string): boolean {
  return simulated.proxmox.cluster.machine(Number(id)) !== undefined;
}

/** A guest that runs and does not shut down when it is asked. */
async function deaf(stage: Stage, spec: Spec): Promise<string> {
  const id = idOf(await stage.make("web", spec));
  const guest = stage.simulated.proxmox.cluster.machine(Number(id))?.guest;
  if (guest !== undefined) guest.obeysShutdown = false;
  return id;
}

describe("power", () => {
  for (const release of releases) {
    const source: Spec = release === "7.4" ? { source: { blank: {} } } : {};
    it(`is taken by force on ${release} only after the guest had its time`, async () => {
      const stage = await Stage.open(release);
      const id = await deaf(stage, { ...source, shutdown: { graceSeconds: 40 } });
      const { clock } = stage.simulated.world;
      const beginMs = clock.nowMs();
      await stage.edit("web", { powerState: "Stopped" });
      await stage.pass(30_000);
      assert.ok(runs(stage, id));
      await stage.synced("web");
      assert.ok(clock.nowMs() - beginMs >= 40_000);
      assert.deepEqual(powerCalls(stage), ["start", "shutdown", "stop"]);
    });
  }

  it("is not taken by force where that is forbidden, and it is said", async () => {
    const stage = await Stage.open("9.2");
    const id = await deaf(stage, { shutdown: { graceSeconds: 10, force: false } });
    await stage.edit("web", { powerState: "Stopped" });
    const vm = await stage.when("web", ({ status }) => {
      return JSON.stringify(status?.conditions ?? []).includes("shutdown.force is off");
    });
    const asked = stage.simulated.requests.length;
    await stage.pass(600_000);
    assert.ok(runs(stage, id));
    assert.ok(stage.simulated.requests.length - asked < 300, "it is looked at ever less often");
    assert.match(condition(vm, "Ready"), /^False/);
    assert.ok(!powerCalls(stage).includes("stop"));
    await stage.edit("web", { shutdown: { force: true } });
    await stage.synced("web");
    assert.ok(!runs(stage, id));
  });

  it("is a restart where a person asks for one, once, and the guest's own where it can", async () => {
    const stage = await Stage.open("9.2");
    const id = idOf(await stage.make("web", { shutdown: { graceSeconds: 60 } }));
    const pid = (): number | undefined => stage.simulated.proxmox.cluster.machine(Number(id))?.pid;
    const before = pid();
    const merge = { metadata: { annotations: { [annotations.restartAt]: "now" } } };
    const at = { namespace: "default", name: "web" };
    await stage.simulated.world.client.of(virtualMachineKind).patch(at, { merge });
    assert.ok(await stage.until(() => pid() !== undefined && pid() !== before));
    await stage.synced("web");
    const after = pid();
    stage.restart();
    await stage.pass(300_000);
    assert.equal(pid(), after);
    assert.ok(!powerCalls(stage).includes("stop"), powerCalls(stage).join());
  });

  it("Running, AgentReady and addresses are told apart, and Ready waits for none of the latter", async () => {
    const stage = await Stage.open("9.2");
    const vm = await stage.make("web");
    assert.deepEqual(
      [condition(vm, "Running"), condition(vm, "AgentReady"), vm.status?.addresses],
      ["True Succeeded", "False NoAgent", undefined],
    );
    const later = await stage.when("web", ({ status }) => status?.addresses !== undefined);
    assert.equal(condition(later, "AgentReady"), "True Succeeded");
    await stage.edit("web", { powerState: "Suspended" });
    const asleep = await stage.synced("web");
    assert.equal(condition(asleep, "Running"), "False Suspended");
    await stage.edit("web", { powerState: "Running" });
    await stage.synced("web");
    assert.deepEqual(powerCalls(stage), ["start", "suspend", "start"]);
  });
});
