import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { releases } from "../../sim/index.ts";
import { condition } from "../testing/world.ts";
import { idOf, root, Stage, type Spec } from "./testing.ts";

type Policy = "Live" | "Reboot" | "PowerOff";
type Class = "Live" | "Reboot" | "PowerOff" | "Impossible";

const lan = { name: "lan", bridge: "vmbr0" } as const;
const start: Spec = {
  source: { blank: {} },
  firmware: { type: "UEFI", secureBoot: true },
  networks: [lan],
  shutdown: { graceSeconds: 5 },
};

/** One field of each class of change, with the line that tells whether it is so. */
const edits: readonly { readonly of: Class; readonly edit: object; readonly line: RegExp }[] = [
  { of: "Live", edit: { cpu: { limit: 2 } }, line: /^cpulimit: 2$/m },
  { of: "Reboot", edit: { cpu: { cores: 4 } }, line: /^cores: 4$/m },
  { of: "PowerOff", edit: { networks: [{ ...lan, model: "e1000" }] }, line: /^net0: e1000=/m },
  { of: "Impossible", edit: { firmware: { secureBoot: false } }, line: /pre-enrolled-keys=0/ },
];

/** Whether a policy lets a running machine have a change, and by what. */
function allows(policy: Policy, of: Class): boolean {
  const order = ["Live", "Reboot", "PowerOff"];
  return of !== "Impossible" && order.indexOf(of) <= order.indexOf(policy);
}

/** The file without what waits in it. */
function present({ guests }: Stage, id: string): string {
  return guests[id]?.text.split("\n[PENDING]")[0] ?? "";
}

describe("updatePolicy decides when a change is made", () => {
  for (const release of releases) {
    it(`for each class of change on ${release}, while the machine runs`, async () => {
      for (const policy of ["Live", "Reboot", "PowerOff"] as const) {
        const stage = await Stage.open(release);
        const id = idOf(await stage.make("web", { ...start, updatePolicy: policy }));
        for (const { of, edit, line } of edits) {
          const why = `${of} with ${policy}`;
          const pid = runningAs(stage, id);
          const { metadata } = await stage.edit("web", edit);
          const vm = await stage.when("web", ({ status }) => {
            const isBusy = status?.conditions?.some(({ type }) => type === "Reconciling") === true;
            return status?.observedGeneration === metadata.generation && !isBusy;
          });
          await stage.pass(15_000);
          const isAllowed = allows(policy, of);
          assert.equal(line.test(present(stage, id)), isAllowed, why);
          assert.equal(runningAs(stage, id) === pid, !isAllowed || of === "Live", `${why}: power`);
          assert.equal(condition(vm, "Ready"), "True Succeeded", why);
          const refusal = of === "Impossible" ? "ReplacementRequired" : "RestartRequired";
          const expected = isAllowed ? "True Succeeded" : `False ${refusal}`;
          assert.equal(condition(vm, "Synced"), expected, why);
          if (!isAllowed) await stage.edit("web", undone(start));
          await stage.synced("web");
        }
      }
    });
  }

  it("and an edit of what already waits is said at once, also one that takes it back", async () => {
    const stage = await Stage.open("9.2");
    const id = idOf(await stage.make("web", start));
    const waiting = (): string => stage.guests[id]?.text.split("\n[PENDING]\n")[1] ?? "";
    await stage.edit("web", { cpu: { cores: 4 } });
    assert.ok(await stage.until(() => waiting() === "cores: 4\n"), waiting());
    await stage.edit("web", { cpu: { cores: 3 } });
    assert.ok(await stage.until(() => waiting() === "cores: 3\n"), waiting());
    await stage.edit("web", { cpu: { cores: 2 } });
    await stage.synced("web");
    assert.equal(waiting(), "");
  });

  it("and a machine that is off takes everything that is possible at once", async () => {
    const stage = await Stage.open("9.2");
    const vm = await stage.make("web", { ...start, powerState: "Stopped" });
    for (const { of, edit, line } of edits) {
      await stage.edit("web", edit);
      if (of === "Impossible") await stage.failed("web", "ReplacementRequired");
      else await stage.synced("web");
      assert.equal(line.test(present(stage, idOf(vm))), of !== "Impossible", of);
    }
    assert.deepEqual(
      stage.state.nodes.flatMap(({ machines }) => Object.keys(machines)),
      [],
    );
  });

  it("and disks grow under a running machine, and never shrink", async () => {
    const stage = await Stage.open("9.2");
    const vm = await stage.make("web", start);
    const pid = runningAs(stage, idOf(vm));
    await stage.edit("web", { disks: [{ ...root, size: "12Gi" }] });
    const grown = await stage.synced("web");
    assert.equal(grown.status?.disks?.[0]?.size, String(12 * 2 ** 30));
    await assert.rejects(
      stage.edit("web", { disks: [{ ...root, size: "11Gi" }] }),
      /cannot shrink/,
    );
    assert.equal(runningAs(stage, idOf(vm)), pid);
  });
});

/** The process of a machine: another one after each restart. */
function runningAs({ simulated }: Stage, id: string): number | undefined {
  return simulated.proxmox.cluster.machine(Number(id))?.pid;
}

/** What takes every edit back that was not made. */
function undone({ networks }: Spec): object {
  return { cpu: { cores: 2 }, networks, firmware: { secureBoot: true } };
}
