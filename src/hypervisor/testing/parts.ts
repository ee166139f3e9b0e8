import assert from "node:assert/strict";
import { seedFileName } from "../file-names.ts";
import type { Bench, Laws } from "./stage.ts";

/** What can be done to the parts of a machine that stands. */
export const parts: Laws = {
  "detaches a disk, whose volume stays, and attaches it again by its name": async (bench) => {
    const claim = await bench.bound(await bench.machine());
    const [before] = (await bench.ours(claim)).disks;
    assert(before !== undefined);
    const part = { of: "disk", name: "root" } as const;
    await bench.succeed({ kind: "detach", claim, at: await bench.at(claim), part });
    const without = await bench.ours(claim);
    assert.deepEqual(without.disks, []);
    assert.deepEqual(
      without.volumes.map(({ id, state }) => [id, state]),
      [[before.volume, "Detached"]],
    );
    const again = { claim, disk: { name: "root" }, volume: before.volume, bootOrder: ["root"] };
    await bench.succeed({ kind: "attach", at: await bench.at(claim), ...again });
    const after = await bench.ours(claim);
    assert.deepEqual(after.disks, [before]);
    assert.deepEqual(after.shape.bootOrder, ["root"]);
    const twice = await bench.begin({ kind: "attach", at: await bench.at(claim), ...again });
    assert.deepEqual(twice, { outcome: "done" });
    assert.equal(bench.stage.behind.volumes().length, 1);
  },

  "attaches only what is its own, or what nobody uses and a person's word gives it": async (
    bench,
  ) => {
    const other = await bench.machine();
    const claim = await bench.machine();
    const disk = { name: "data" };
    const volume = bench.stage.behind.leaveVolume(claim.externalId);
    const [used] = (await bench.ours(other)).disks;
    const at = await bench.at(claim);
    const unasked = await bench.begin({ kind: "attach", claim, at, disk, volume });
    assert.equal(unasked.outcome, "refused");
    const stolen = { claim, at, disk, volume: used?.volume ?? "", take: true };
    assert.equal((await bench.begin({ kind: "attach", ...stolen })).outcome, "refused");
    await bench.succeed({ kind: "attach", claim, at, disk, volume, take: true });
    const seen = (await bench.ours(claim)).disks.find(({ name }) => name === "data");
    assert.equal(seen?.volume, volume);
    assert.equal((await bench.ours(other)).disks.length, 1);
  },

  "destroys one disk with its data, and no other": async (bench) => {
    const made = await bench.machine();
    const at = await bench.at(made);
    await bench.succeed({ kind: "addDisk", claim: made, at, disk: bench.blank("data", 1) });
    const claim = await bench.bound(made);
    const [root, data] = ["root", "data"].map((name) => {
      return claim.volumes?.find(({ disk }) => disk === name)?.id ?? "";
    });
    const destroy = { kind: "destroyDisk", claim, volume: data ?? "" } as const;
    const unknown = { ...destroy, claim: { ...claim, volumes: [] } };
    const begun = await bench.begin({ ...unknown, at: await bench.at(claim) });
    assert.equal(begun.outcome, "refused");
    await bench.succeed({ ...destroy, at: await bench.at(claim) });
    const left = await bench.ours(claim);
    assert.deepEqual(
      left.volumes.map(({ id }) => id),
      [root],
    );
    assert.equal(bench.stage.behind.volumes().length, 1);
    await bench.succeed({ ...destroy, at: await bench.at(claim) });
  },

  "gives a name another place where it should have another bus": async (bench) => {
    const claim = await bench.bound(await bench.machine());
    const [before] = (await bench.ours(claim)).disks;
    const volume = before?.volume ?? "";
    const part = { of: "disk", name: "root" } as const;
    await bench.succeed({ kind: "detach", claim, at: await bench.at(claim), part });
    const disks = [{ name: "root", bus: "virtio" as const }];
    await bench.succeed({ kind: "stamp", claim, at: await bench.at(claim), disks, networks: [] });
    const disk = { name: "root", bus: "virtio" as const };
    await bench.succeed({ kind: "attach", claim, at: await bench.at(claim), disk, volume });
    const [after] = (await bench.ours(claim)).disks;
    assert.deepEqual([after?.name, after?.bus, after?.volume], ["root", "virtio", volume]);
  },

  "moves a disk to another storage, once": async (bench) => {
    const claim = await bench.machine();
    const move = { kind: "moveDisk", claim, disk: "root" } as const;
    const storage = bench.stage.otherStorage;
    await bench.succeed({ ...move, at: await bench.at(claim), storage });
    const machine = await bench.ours(claim);
    assert.equal(machine.disks[0]?.storage, storage);
    assert.equal(machine.disks[0]?.name, "root");
    assert.equal(bench.stage.behind.volumes().length, 1);
    const again = await bench.begin({ ...move, at: await bench.at(claim), storage });
    assert.deepEqual(again, { outcome: "done" });
  },

  "hands a volume over to another machine of its own, and both show it": async (bench) => {
    const keeper = await bench.shell();
    const claim = await bench.bound(await bench.machine());
    const [root] = (await bench.ours(claim)).disks;
    const to = { claim: keeper, at: await bench.at(keeper), disk: "data" };
    const volume = root?.volume ?? "";
    await bench.succeed({ kind: "handOver", claim, at: await bench.at(claim), volume, to });
    assert.deepEqual((await bench.ours(claim)).volumes, []);
    const kept = await bench.ours(keeper);
    assert.deepEqual(
      kept.volumes.map(({ disk, isOwn }) => [disk, isOwn]),
      [["data", true]],
    );
    const at = await bench.at(claim);
    await bench.succeed({ kind: "destroy", claim, at, volumes: [] });
    assert.equal(bench.stage.behind.volumes().length, 1);
    assert.equal((await bench.ours(keeper)).disks.length, 1);
  },

  "plugs in a card and takes it out again": async (bench) => {
    const claim = await bench.machine();
    const networks = [{ name: "dmz", network: bench.stage.network }];
    const at = await bench.at(claim);
    const early = await bench.begin({ kind: "configure", claim, at, shape: { networks } });
    assert.equal(early.outcome, "refused");
    await bench.succeed({ kind: "stamp", claim, at, disks: [], networks: [{ name: "dmz" }] });
    const shape = { networks };
    await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
    const [card] = (await bench.ours(claim)).networks;
    assert.equal(card?.name, "dmz");
    assert.match(card?.macAddress ?? "", /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/);
    const part = { of: "network", name: "dmz" } as const;
    for (const _ of [1, 2]) {
      await bench.succeed({ kind: "detach", claim, at: await bench.at(claim), part });
      assert.deepEqual((await bench.ours(claim)).networks, []);
    }
  },

  "puts a disc into a drive, and another, and takes the drive away": async (bench) => {
    const { node, discStorage: storage } = bench.stage;
    const claim = await bench.machine();
    const fileName = seedFileName(claim.identity, "feedfeedfeedfeed");
    const content = new Uint8Array(4096);
    await bench.succeed({ kind: "putSeed", claim, node, storage, fileName, content });
    const discs = await bench.stage.settle(bench.driver.discs({ node, storage }));
    assert(discs.ok);
    const disc = discs.value.find((file) => file.fileName === fileName);
    assert.equal(disc?.sizeBytes, content.length);
    const at = await bench.at(claim);
    const drive = { disks: [], networks: [], cdroms: [{ name: "install" }] };
    await bench.succeed({ kind: "stamp", claim, at, ...drive });
    for (const medium of [disc?.volume ?? "", ""]) {
      const shape = { cdroms: [{ name: "install", medium }] };
      await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
      const { cdroms } = (await bench.ours(claim)).shape;
      assert.deepEqual(
        cdroms?.map((seen) => [seen.name, seen.medium]),
        [["install", medium]],
      );
    }
    const part = { of: "cdrom", name: "install" } as const;
    await bench.succeed({ kind: "detach", claim, at: await bench.at(claim), part });
    const machine = await bench.ours(claim);
    assert.deepEqual([machine.shape.cdroms, machine.disks.length], [[], 1]);
  },

  "gives firmware the volumes that it needs, and knows them as its own": async (bench) => {
    const firmware = { type: "UEFI", secureBoot: true, tpm: "V2.0" } as const;
    const claim = await bench.machine({ firmware });
    const { shape } = bench.driver.fit({ firmware });
    await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
    const machine = await bench.ours(claim);
    assert.deepEqual(machine.shape.firmware, { ...firmware, keepsVariables: true });
    assert.deepEqual(new Set(machine.volumes.map(({ role }) => role)), roles);
    const again = await bench.begin({ kind: "configure", claim, at: await bench.at(claim), shape });
    assert.deepEqual(again, { outcome: "done" });
    const without = { firmware: { tpm: "None" } } as const;
    const at = await bench.at(claim);
    const refused = await bench.begin({ kind: "configure", claim, at, shape: without });
    assert(refused.outcome === "refused" && refused.failure.category === "ReplacementRequired");
  },

  "brings in a seed, inserts and ejects it, and removes nothing but its own": async (bench) => {
    const { node, discStorage: storage } = bench.stage;
    const claim = await bench.machine();
    const content = new TextEncoder().encode("#cloud-config\n".repeat(100));
    const fileName = seedFileName(claim.identity, "0123456789abcdef0123456789abcdef");
    const file = { claim, node, storage, fileName };
    for (const _ of [1, 2]) await bench.succeed({ kind: "putSeed", ...file, content });
    const seed = { state: "Inserted", storage, fileName } as const;
    await configureSeed(bench, claim, seed);
    for (const isStray of [false, true]) {
      const held = await bench.begin({ kind: "removeSeed", ...file, isStray });
      assert.equal(held.outcome, "refused");
    }
    await configureSeed(bench, claim, { state: "Ejected" });
    const foreign = await bench.begin({ kind: "removeSeed", ...file, fileName: "debian.iso" });
    assert.equal(foreign.outcome, "refused");
    for (const _ of [1, 2]) await bench.succeed({ kind: "removeSeed", ...file });
    const discs = await bench.stage.settle(bench.driver.discs({ node, storage }));
    assert(discs.ok);
    assert.equal(
      discs.value.some((disc) => disc.fileName === fileName),
      false,
    );
  },

  "makes a linked clone, and owns it once it is stamped": async (bench) => {
    const { node, behind } = bench.stage;
    const template = await bench.machine();
    const source = template.externalId;
    const early = { claim: await bench.claim(), node, shape: {}, disks: [] };
    const linked = { ...early, clone: { source, mode: "Linked" } } as const;
    const { findings } = await bench.stage.settle(bench.driver.preflight(linked));
    assert.deepEqual(
      findings.map(({ category }) => category),
      ["ConfigurationError"],
    );
    behind.makeTemplate(source);
    const claim = await bench.claim();
    const clone = { kind: "clone", claim, node, source, mode: "Linked", name: "web" } as const;
    const draft = { claim, node, shape: {}, disks: [], clone };
    assert.deepEqual((await bench.stage.settle(bench.driver.preflight(draft))).findings, []);
    await bench.succeed(clone);
    const plain = await bench.observe(claim);
    assert.equal(plain.at, "foreign");
    const seen = await bench.observe(claim, { clonedFrom: source });
    assert(seen.at === "foreign" && seen.reason === "Unstamped", JSON.stringify(seen));
    const at = { node, version: seen.machine?.version ?? "" };
    const unproven = await bench.begin({ kind: "powerOn", claim, at });
    assert.equal(unproven.outcome, "refused");
    const disks = [{ name: "root", boots: true }];
    const cloned = { from: source };
    await bench.succeed({ kind: "stamp", claim, at, disks, networks: [], cloned });
    const machine = await bench.ours(claim);
    assert.equal(machine.identity, claim.identity);
    assert.deepEqual(
      machine.disks.map(({ name }) => name),
      ["root"],
    );
    assert.notEqual((await bench.begin(clone)).outcome, "task");
    assert.deepEqual(new Set(behind.machines()), new Set([source, claim.externalId]));
  },

  "takes over a machine as it is, and keeps its notes and its identity": async (bench) => {
    const { behind, node } = bench.stage;
    const made = await bench.claim();
    behind.strangerTakes(made.externalId);
    const stranger = await bench.observe(made);
    assert(stranger.at === "foreign" && stranger.machine?.identity !== undefined);
    const claim = { ...made, identity: stranger.machine.identity };
    const at = { node, version: stranger.machine.version };
    const stamp = { kind: "stamp", at, disks: [], networks: [], adopt: true } as const;
    const other = await bench.begin({ ...stamp, claim: made });
    assert.equal(other.outcome, "refused");
    await bench.succeed({ ...stamp, claim });
    const machine = await bench.ours(claim);
    assert.equal(machine.identity, stranger.machine.identity);
    assert.equal(machine.shape.notes, stranger.machine.shape.notes);
    assert.equal(machine.shape.name, stranger.machine.shape.name);
  },
};

const roles = new Set(["Disk", "Firmware", "TPM"]);

async function configureSeed(
  bench: Bench,
  claim: Awaited<ReturnType<Bench["machine"]>>,
  seed: { state: "Ejected" } | { state: "Inserted"; storage: string; fileName: string },
): Promise<void> {
  const shape = { cloudInit: { seed } };
  await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
  assert.deepEqual((await bench.ours(claim)).shape.cloudInit?.seed, seed);
}

/** Power beyond on and off, and where a machine is. */
export const moving: Laws = {
  "restarts a machine with what was pending": async (bench) => {
    const claim = await bench.machine({ cpu: { cores: 1 } });
    bench.stage.behind.installSystem(claim.externalId);
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    const shape = { cpu: { cores: 2 } };
    await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
    // Some hypervisors plug in a core while the machine runs. What is said of it must be so.
    const waits = bench.driver.changeOf("cpu.cores").class === "Reboot";
    assert.deepEqual((await bench.ours(claim)).pending, waits ? ["cpu.cores"] : []);
    await bench.succeed({ kind: "reboot", claim, at: await bench.at(claim), graceSeconds: 60 });
    // Some hypervisors count it as done when the guest is down, and start it just after.
    await bench.stage.pass(10_000);
    const machine = await bench.ours(claim);
    assert.deepEqual([machine.power, machine.pending], ["Running", []]);
    assert.equal(machine.shape.cpu?.cores, 2);
  },

  "suspends a machine to disk, and goes on from there": async (bench) => {
    const claim = await bench.machine();
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    await bench.succeed({ kind: "suspend", claim, at: await bench.at(claim) });
    const asleep = await bench.ours(claim);
    assert.deepEqual([asleep.power, asleep.lock], ["Suspended", undefined]);
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    assert.equal((await bench.ours(claim)).power, "Running");
  },

  "moves a machine to another node, off and while it runs, and finds it there": async (bench) => {
    const { node, otherNode } = bench.stage;
    const claim = await bench.machine();
    await bench.succeed({ kind: "migrate", claim, at: await bench.at(claim), to: otherNode });
    assert.equal((await bench.ours(claim)).node, otherNode);
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    await bench.succeed({ kind: "migrate", claim, at: await bench.at(claim), to: node });
    const back = await bench.ours(claim);
    assert.deepEqual([back.node, back.power], [node, "Running"]);
    const again = await bench.begin({
      kind: "migrate",
      claim,
      at: await bench.at(claim),
      to: node,
    });
    assert.deepEqual(again, { outcome: "done" });
    assert.equal(bench.stage.behind.volumes().length, 1);
  },

  "asks the guest to shut down, and switches it off after that if it may": async (bench) => {
    const claim = await bench.machine();
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    const off = { kind: "powerOff", claim, mode: "Graceful", graceSeconds: 5 } as const;
    await bench.succeed({ ...off, at: await bench.at(claim), thenForce: true });
    assert.equal((await bench.ours(claim)).power, "Stopped");
  },

  "knows how long a machine runs, and asks the guest without waiting for it": async (bench) => {
    const claim = await bench.machine({
      guestAgent: true,
      networks: [{ name: "lan", network: bench.stage.network }],
    });
    bench.stage.behind.installSystem(claim.externalId);
    const off = await bench.stage.settle(bench.driver.guest(claim));
    assert.deepEqual(off, { ok: true, value: { agent: "Off" } });
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    await bench.stage.pass(600_000);
    const { uptimeSeconds } = await bench.ours(claim);
    assert(uptimeSeconds !== undefined && uptimeSeconds >= 600);
    const guest = await bench.stage.settle(bench.driver.guest(claim));
    assert(guest.ok && guest.value.agent === "Answered", JSON.stringify(guest));
    const card = guest.value.cards.find(({ network }) => network === "lan");
    assert.equal(card?.addresses.length, 1);
  },

  "puts a machine under high availability, where requests are queued": async (bench) => {
    const claim = await bench.machine();
    const highAvailability = { enabled: true, maxRestarts: 2, maxRelocations: 3 };
    const guard = { kind: "guard", claim, highAvailability, power: "Stopped" } as const;
    await bench.succeed({ ...guard, at: await bench.at(claim) });
    const watched = await bench.ours(claim);
    assert.deepEqual(watched.shape.highAvailability, highAvailability);
    assert.equal(watched.highAvailability?.requested, "Stopped");
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    assert.equal((await bench.ours(claim)).highAvailability?.requested, "Running");
    await bench.stage.pass(120_000);
    assert.equal((await bench.ours(claim)).power, "Running");
    const out = { ...guard, highAvailability: { enabled: false } };
    for (const _ of [1, 2]) await bench.succeed({ ...out, at: await bench.at(claim) });
    const free = await bench.ours(claim);
    assert.equal(free.highAvailability, undefined);
    assert.deepEqual(free.shape.highAvailability, { enabled: false });
  },
};
