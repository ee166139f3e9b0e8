import assert from "node:assert/strict";
import type { Basis, ClaimedMachine, Operation } from "../operation.ts";
import { taskTimeSlackMs } from "../task-times.ts";
import type { Bench, Laws } from "./stage.ts";

/** That nothing is done to what is not ours, nor on what is not so any more. */
export const safety: Laws = {
  "does not make a machine where a stranger's stands, and leaves that alone": async (bench) => {
    const claim = await bench.claim();
    const { behind, node } = bench.stage;
    behind.strangerTakes(claim.externalId);
    const seen = await bench.observe(claim);
    assert(seen.at === "foreign" && seen.reason === "Stranger");
    const begun = await bench.begin({ kind: "create", claim, node, shape: {} });
    assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
    const at = { node, version: seen.machine?.version ?? "" };
    const cloned = { from: claim.externalId };
    const asClone = { kind: "stamp", claim, at, disks: [], networks: [], cloned } as const;
    for (const operation of [asClone, ...everything(bench, { claim, at })]) {
      const refused = await bench.begin(operation);
      assert.equal(refused.outcome, "refused", operation.kind);
    }
    assert.deepEqual(behind.machines(), [claim.externalId]);
    assert.deepEqual(await bench.observe(claim), seen);
  },

  "knows a copy of its machine for what it is": async (bench) => {
    const claim = await bench.machine();
    for (const as of ["clone", "restore"] as const) {
      const copyId = (await bench.claim()).externalId;
      bench.stage.behind.copy(claim.externalId, copyId, as);
      const seen = await bench.observe({ ...claim, externalId: copyId });
      assert(seen.at === "foreign" && seen.reason === "Copied", as);
    }
    await bench.ours(claim);
  },

  "does not take another object's or another installation's machine for its own": async (bench) => {
    const claim = await bench.machine();
    const other = { ...claim, owner: { namespace: "conformance", name: "db" } };
    const theirs = { ...claim, installation: "00000000-0000-4000-8000-00000000beef" };
    const byOwner = await bench.observe(other);
    const byInstallation = await bench.observe(theirs);
    assert(byOwner.at === "foreign" && byOwner.reason === "OtherOwner");
    assert(byInstallation.at === "foreign" && byInstallation.reason === "OtherInstallation");
  },

  "does not know its machine any more when somebody removed the mark": async (bench) => {
    const claim = await bench.machine();
    const at = await bench.at(claim);
    bench.stage.behind.removeMark(claim.externalId);
    const seen = await bench.observe(claim);
    assert(seen.at === "foreign" && seen.reason === "MarkLost");
    const begun = await bench.begin({ kind: "destroy", claim, at, volumes: [] });
    assert.equal(begun.outcome, "refused");
  },

  "keeps what people write around the mark": async (bench) => {
    const claim = await bench.machine({ notes: "above" });
    bench.stage.behind.writeNotes(claim.externalId, (notes) => `${notes}\nbelow`);
    assert.equal((await bench.ours(claim)).shape.notes, "above\nbelow");
    const disks = [{ name: "more" }];
    const at = await bench.at(claim);
    await bench.succeed({ kind: "stamp", claim, at, disks, networks: [] });
    assert.equal((await bench.ours(claim)).shape.notes, "above\nbelow");
  },

  "does nothing that rests on an old sight of the machine": async (bench) => {
    const claim = await bench.machine();
    const at = await bench.at(claim);
    bench.stage.behind.writeNotes(claim.externalId, (notes) => `changed by hand\n${notes}`);
    for (const operation of everything(bench, { claim, at })) {
      const begun = await bench.begin(operation);
      // Some hypervisors look at the version only once the work has begun.
      const end = begun.outcome === "task" ? (await bench.end(begun.task)).state : begun.outcome;
      assert.equal(end, "changed", `${operation.kind}: ${JSON.stringify(begun)}`);
    }
    const machine = await bench.ours(claim);
    assert.equal(machine.power, "Stopped");
    assert.equal(machine.disks.length, 1);
  },

  "sends nothing once it may not write any more": async (bench) => {
    const claim = await bench.machine();
    const machine = await bench.ours(claim);
    const at = await bench.at(claim);
    const closed = { mayWrite: () => false };
    const volumes = machine.volumes.map(({ id }) => id);
    for (const operation of everything(bench, { claim, at, volumes })) {
      const begun = await bench.begin(operation, closed);
      assert.deepEqual(begun, { outcome: "fenced" }, operation.kind);
    }
    assert.deepEqual(await bench.ours(claim), machine);
  },

  "does not destroy a machine with a volume that nobody accounted for": async (bench) => {
    const claim = await bench.machine();
    const begun = await bench.begin({
      kind: "destroy",
      claim,
      at: await bench.at(claim),
      volumes: [],
    });
    assert.equal(begun.outcome, "changed");
    assert.equal((await bench.ours(claim)).disks.length, 1);
  },

  "never destroys a disk that its Claim says to stay, whoever asks": async (bench) => {
    const made = await bench.bound(await bench.machine());
    const kept = made.volumes?.map((volume) => ({ ...volume, onDelete: "Retain" as const })) ?? [];
    const { behind, node } = bench.stage;
    // One that the VM has, and one that nothing refers to any more.
    const left = behind.leaveVolume(made.externalId);
    const loose = kept.map((volume) => ({ ...volume, id: left, state: "Detached" as const }));
    const claim = { ...made, volumes: [...kept, ...loose] };
    const volumes = kept.map(({ id }) => id);
    const volume = volumes[0] ?? "";
    const at = await bench.at(claim);
    for (const operation of [
      { kind: "destroy", claim, at, volumes },
      { kind: "destroyDisk", claim, at, volume },
      { kind: "destroyDisk", claim, at, volume: left },
      { kind: "removeVolume", claim, node, volume },
      { kind: "removeVolume", claim, node, volume: left },
    ] as const) {
      assert.equal((await bench.begin(operation)).outcome, "refused", operation.kind);
    }
    assert.equal((await bench.ours(claim)).disks.length, 1);
    assert.equal(behind.volumes().length, 2);
  },

  "never removes a volume that only bears the id of its VM, whatever it is called": async (
    bench,
  ) => {
    const { behind, node } = bench.stage;
    const claim = await bench.machine();
    const volume = behind.leaveVolume(claim.externalId);
    const counted = behind.volumes().length;
    const found = await bench.stage.settle(bench.driver.leftovers(claim));
    assert(found.ok);
    assert.deepEqual(
      found.value.map((leftover) => [leftover.volume, leftover.proof]),
      [[volume, "Unattributed"]],
    );
    for (const isApproved of [false, true]) {
      const removal = { kind: "removeVolume", claim, node, volume, isApproved } as const;
      assert.equal((await bench.begin(removal)).outcome, "refused");
    }
    const bound = await bench.bound(claim);
    const volumes = bound.volumes?.map(({ id }) => id) ?? [];
    await bench.succeed({ kind: "destroy", claim: bound, at: await bench.at(claim), volumes });
    assert.equal(behind.volumes().length, counted - 1);
  },

  "removes a volume that the Claim names, unless somebody uses it or it existed before": async (
    bench,
  ) => {
    const { behind, node } = bench.stage;
    const bound = await bench.bound(await bench.machine());
    const volume = behind.leaveVolume(bound.externalId);
    const [used] = bound.volumes ?? [];
    assert(used !== undefined);
    const named = { id: volume, role: "Disk", proof: "Config", state: "Detached" } as const;
    const claim = { ...bound, volumes: [...(bound.volumes ?? []), named] };
    const remove = (of: ClaimedMachine, id: string): Operation => {
      return { kind: "removeVolume", claim: of, node, volume: id };
    };
    const before = { ...claim, otherVolumes: [{ id: volume }] };
    assert.equal((await bench.begin(remove(before, volume))).outcome, "refused");
    assert.equal((await bench.begin(remove(claim, used.id))).outcome, "refused");
    const counted = behind.volumes().length;
    await bench.succeed(remove(claim, volume));
    assert.equal(behind.volumes().length, counted - 1);
    await bench.succeed(remove(claim, volume));
  },

  "removes what is only probably ours when that was approved, and never without": async (bench) => {
    const { behind, node, storage } = bench.stage;
    const claim = await bench.machine();
    const volume = behind.leaveVolume(claim.externalId);
    const probable = {
      id: volume,
      storage,
      node,
      size: "1073741824",
      operation: "00000000-0000-4000-8000-0000000000a1",
      seenAt: new Date(bench.stage.nowMs()).toISOString(),
      evidence: ["All of it fits."],
    };
    const known = { ...claim, probableVolumes: [probable] };
    const found = await bench.stage.settle(bench.driver.leftovers(known));
    assert(found.ok);
    assert.deepEqual(
      found.value.map(({ proof, evidence }) => [proof, evidence]),
      [["Probable", ["All of it fits."]]],
    );
    const removal = { kind: "removeVolume", claim: known, node, volume } as const;
    assert.equal((await bench.begin(removal)).outcome, "refused");
    const counted = behind.volumes().length;
    await bench.succeed({ ...removal, isApproved: true });
    assert.equal(behind.volumes().length, counted - 1);
  },
};

interface Target {
  readonly claim: ClaimedMachine;
  readonly at: Basis;
  readonly volumes?: readonly string[];
}

/** Every operation on a machine that stands. */
function everything(bench: Bench, { claim, at, volumes = [] }: Target): Operation[] {
  const disk = bench.blank("data");
  return [
    { kind: "addDisk", claim, at, disk },
    { kind: "grow", claim, at, disk: "root", sizeBytes: 64 * 1024 ** 3 },
    { kind: "configure", claim, at, shape: { cpu: { cores: 7 } } },
    { kind: "stamp", claim, at, disks: [{ name: "third" }], networks: [] },
    { kind: "release", claim, at },
    { kind: "powerOn", claim, at },
    { kind: "powerOff", claim, at, mode: "Forced" },
    { kind: "reboot", claim, at },
    { kind: "suspend", claim, at },
    { kind: "resume", claim, at },
    { kind: "migrate", claim, at, to: bench.stage.otherNode },
    { kind: "moveDisk", claim, at, disk: "root", storage: bench.stage.otherStorage },
    { kind: "detach", claim, at, part: { of: "disk", name: "root" } },
    { kind: "destroyDisk", claim: withVolumes(claim, volumes), at, volume: volumes[0] ?? "none" },
    { kind: "regroup", claim, at, pool: "web" },
    { kind: "destroy", claim, at, volumes },
  ];
}

function withVolumes(claim: ClaimedMachine, volumes: readonly string[]): ClaimedMachine {
  const known = (volumes.length === 0 ? ["none"] : volumes).map((id) => {
    return { id, role: "Disk", proof: "Config", storage: "any", state: "Attached" } as const;
  });
  return { ...claim, volumes: known };
}

/** That a lost reply, a dead worker or a dead network lead to looking and to nothing else. */
export const settling: Laws = {
  "settles a creation whose reply was lost by looking": async (bench) => {
    const { behind, node } = bench.stage;
    const claim = await bench.claim();
    behind.loseNext("reply");
    const begun = await bench.begin({ kind: "create", claim, node, shape: { name: "web" } });
    assert(begun.outcome === "unknown" && begun.failure.category === "UnknownOutcome");
    await finishRecalled(bench, claim);
    await bench.ours(claim);
    assert.deepEqual(behind.machines(), [claim.externalId]);
  },

  "settles a creation that never arrived by looking": async (bench) => {
    const { behind, node } = bench.stage;
    const claim = await bench.claim();
    behind.loseNext("request");
    const begun = await bench.begin({ kind: "create", claim, node, shape: { name: "web" } });
    assert(begun.outcome === "unknown" || begun.outcome === "refused");
    assert.deepEqual(await bench.observe(claim), { at: "absent" });
    await bench.succeed({ kind: "create", claim, node, shape: { name: "web" } });
  },

  "makes no second disk when the reply of the first was lost": async (bench) => {
    const { behind } = bench.stage;
    const claim = await bench.shell();
    const operation: Operation = {
      kind: "addDisk",
      claim,
      at: await bench.at(claim),
      disk: bench.blank("root"),
    };
    behind.loseNext("reply");
    assert.equal((await bench.begin(operation)).outcome, "unknown");
    await finishRecalled(bench, claim);
    assert.equal((await bench.ours(claim)).disks.length, 1);
    assert.equal((await bench.begin(operation)).outcome, "changed");
    assert.equal(behind.volumes().length, 1);
  },

  "goes on after the worker of a disk was killed, and knows what it left": async (bench) => {
    const { behind, node, storage, otherStorage } = bench.stage;
    for (const place of [storage, otherStorage]) {
      for (const afterMs of [0, 100, 200, 400]) {
        const shell = await bench.shell();
        const count = behind.volumes().length;
        const disk = { ...bench.blank("root"), storage: place };
        const add = { kind: "addDisk", claim: shell, at: await bench.at(shell), disk } as const;
        const claim = await bench.allocating(add);
        const begun = await bench.begin(add);
        assert(begun.outcome === "task");
        await bench.stage.pass(afterMs);
        behind.kill(begun.task);
        await bench.end(begun.task);
        // The program that makes a volume may outlive the worker that began it.
        await bench.stage.pass(60_000);
        const left = await bench.stage.settle(bench.driver.leftovers(claim));
        assert(left.ok, JSON.stringify(left));
        for (const { volume, proof, evidence } of left.value) {
          assert(proof === "TaskLogged" || proof === "Probable", `${volume}: ${proof}`);
          assert(evidence !== undefined && evidence.length > 0);
          const isApproved = proof === "Probable";
          await bench.succeed({ kind: "removeVolume", claim, node, volume, isApproved });
        }
        const isMade = (await bench.ours(claim)).disks.length > 0;
        assert.equal(behind.volumes().length, count + (isMade ? 1 : 0));
        if (isMade) continue;
        await bench.succeed({ ...add, at: await bench.at(claim) });
        assert.equal(behind.volumes().length, count + 1);
      }
    }
  },

  "waits while its machine is in the making, and says when nobody makes it any more": async (
    bench,
  ) => {
    const { behind, node } = bench.stage;
    const claim = await bench.claim();
    const begun = await bench.begin({ kind: "create", claim, node, shape: { name: "web" } });
    assert(begun.outcome === "task");
    behind.kill(begun.task);
    const seen = await bench.observe(claim);
    assert(seen.at === "opaque", JSON.stringify(seen));
    assert.equal(seen.lock.state, "Dead");
    assert.match(seen.lock.remedy ?? "", new RegExp(claim.externalId));
  },

  "knows nothing when nobody answers, and does nothing": async (bench) => {
    const claim = await bench.machine();
    const at = await bench.at(claim);
    bench.stage.behind.cutOff();
    const seen = await bench.observe(claim);
    assert(seen.at === "unknown" && seen.failure.category === "NetworkError");
    const inventory = await bench.stage.settle(bench.driver.inventory());
    assert.equal(inventory.ok, false);
    const begun = await bench.begin({ kind: "powerOn", claim, at });
    assert(begun.outcome === "refused" && begun.failure.category === "NetworkError");
  },

  "remembers its own work on a machine": async (bench) => {
    const claim = await bench.machine();
    const recalled = await bench.stage.settle(bench.driver.recall(claim, 0));
    assert(recalled.ok);
    const does = recalled.value.map((task) => task.does);
    assert(does.includes("Create") && does.includes("Configure"), does.join());
    assert(recalled.value.every(({ isRunning }) => !isRunning));
    const since = recalled.value.map(({ sinceMs }) => sinceMs);
    assert.deepEqual(
      since,
      since.toSorted((a, b) => b - a),
      "newest first",
    );
    const nowMs = bench.stage.nowMs();
    const first = Math.min(...since);
    assert(first > nowMs - 60_000 && first < nowMs + taskTimeSlackMs, "on the clock of Berth");
    const later = await bench.stage.settle(bench.driver.recall(claim, nowMs + 60_000));
    assert.deepEqual(later, { ok: true, value: [] }, "not what began before the moment");
  },
};

/** What a controller does after a lost reply: it looks for its own work and waits for it. */
async function finishRecalled(bench: Bench, claim: ClaimedMachine): Promise<void> {
  const recalled = await bench.stage.settle(bench.driver.recall(claim, 0));
  assert(recalled.ok, JSON.stringify(recalled));
  for (const { task, isRunning } of recalled.value) if (isRunning) await bench.end(task);
}
