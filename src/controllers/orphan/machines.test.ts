import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, hypervisorKind, orphanKind, virtualMachineKind } from "../../api/index.ts";
import { sleep } from "../../kernel/clock.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { condition, getVm, isReady, listClaims, until } from "../testing/world.ts";
import {
  configure,
  decide,
  listOrphans,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

const stopped = { powerState: "Stopped" } as const;

async function open(): Promise<SimulatedWorld> {
  const stage = await openProxmox();
  stage.world.start(slow);
  return stage;
}

function guests({ proxmox }: SimulatedWorld): string[] {
  return Object.keys(proxmox.cluster.state.guests);
}

async function allowAdoption({ world }: SimulatedWorld): Promise<void> {
  const entry = { namespace: "*", adopt: true, externalId: true };
  await configure(world, { allow: [{ ...entry, storages: ["*"], networks: ["*"] }] });
}

describe("a machine of ours whose object is gone", () => {
  it("is destroyed on a person's word, with its disks, and its id rests", async () => {
    const stage = await open();
    const { world } = stage;
    const id = await ready(stage, "web", stopped);
    await ready(stage, "db", stopped);
    await strip(world, "web");
    await until(world, () => false, 600_000);
    assert.deepEqual(await listOrphans(world), [], "not before the grace time is over");
    const orphan = await waitForOrphan(world, id);
    assert.equal(orphan.spec.kind, "Machine");
    assert.equal(orphan.status?.ownership, "Ours");
    assert.ok((orphan.status?.sightings ?? 0) >= 2);
    assert.deepEqual(orphan.status?.allowedDecisions, ["Keep", "Adopt", "Destroy"]);
    await decide(world, orphan, { decision: "Destroy" });
    const isGone = await until(world, async () => reasonOf(await orphanOf(world, id)) === "Gone");
    assert.ok(isGone, JSON.stringify((await orphanOf(world, id))?.status));
    assert.equal((await orphanOf(world, id))?.status?.reclaimed, String(10 * 1024 ** 3));
    assert.equal(guests(stage).length, 1);
    assert.deepEqual(
      volumeNames(stage.proxmox).filter((name) => name.includes(`-${id}-`)),
      [],
    );
    const claim = (await listClaims(world.client)).find(({ spec }) => spec.externalId === id);
    assert.equal(claim?.spec.state, "Quarantined");
    assert.ok(isReady(await getVm(world.client, "db")));
  });

  it("is not destroyed while its kind goes away, whoever decided it", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start({ ...slow, mayDestroy: () => Promise.resolve(false) });
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    await decide(world, await waitForOrphan(world, id), { decision: "Destroy" });
    await until(world, () => guests(stage).length === 0, longMs);
    assert.deepEqual(guests(stage), [id]);
  });

  it("takes its turn at the Hypervisor's slots, as the machines do", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    await configure(world, { slots: { hypervisor: 1, node: 1, storage: 1 } });
    const ids = [await ready(stage, "web", stopped), await ready(stage, "db", stopped)];
    for (const name of ["web", "db"]) await strip(world, name);
    const orphans = [];
    for (const id of ids) orphans.push(await waitForOrphan(world, id));
    for (const orphan of orphans) await decide(world, orphan, { decision: "Destroy" });
    let most = 0;
    const waits = new Set<string | undefined>();
    const areGone = await until(world, async () => {
      const { processes } = proxmox.cluster;
      const works = processes.list().filter(({ name }) => name.startsWith("qmdestroy:"));
      most = Math.max(most, works.length);
      for (const { status } of await listOrphans(world))
        waits.add(status?.conditions?.[0]?.message);
      return guests(stage).length === 0;
    });
    assert.ok(areGone);
    assert.equal(most, 1);
    assert.ok([...waits].some((text) => /a free slot: hypervisor model/.test(text ?? "")));
  });

  it("leaves no Claim held where its Orphan is deleted before the destruction is proven", async () => {
    const stage = await open();
    const { world } = stage;
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    const { metadata } = await waitForOrphan(world, id);
    const orphans = world.client.of(orphanKind);
    await decide(world, await waitForOrphan(world, id), { decision: "Destroy" });
    await until(world, () => guests(stage).length === 0);
    assert.equal((await orphanOf(world, id))?.status?.reclaimed, undefined);
    await orphans.delete({ name: metadata.name ?? "" });
    const stateOf = async (): Promise<string | undefined> => {
      return (await listClaims(world.client))[0]?.spec.state;
    };
    assert.equal(await stateOf(), "Bound");
    await until(world, () => false, 600_000);
    assert.equal(await stateOf(), "Bound", "an absence is believed after the grace time");
    await until(world, async () => (await stateOf()) === "Quarantined", longMs);
    assert.equal(await stateOf(), "Quarantined");
  });

  it("leaves no Claim held where somebody removes it by hand; what is left of it holds it", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    const node = proxmox.cluster.state.guests[id]?.node ?? "";
    proxmox.removeGuestFile(Number(id));
    const volume = `local-zfs:vm-${id}-disk-0`;
    assert.equal((await waitForOrphan(world, volume)).status?.ownership, "Ours");
    await until(world, () => false, longMs);
    assert.equal((await listClaims(world.client))[0]?.spec.state, "Bound");
    proxmox.removeVolume(node, volume);
    await until(world, () => false, 2 * longMs);
    assert.equal((await listClaims(world.client))[0]?.spec.state, "Quarantined");
    assert.deepEqual(await listOrphans(world), []);
  });

  it("is not destroyed while it runs, and says so; once it is stopped it goes", async () => {
    const stage = await open();
    const { world } = stage;
    const id = await ready(stage, "web");
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    assert.deepEqual(orphan.status?.allowedDecisions, ["Keep", "Adopt"]);
    await decide(world, orphan, { decision: "Destroy" });
    await until(world, async () => reasonOf(await orphanOf(world, id)) === "NotAllowed");
    assert.deepEqual(guests(stage), [id]);
    stage.proxmox.killMachine(Number(id));
    const isGone = await until(
      world,
      async () => reasonOf(await orphanOf(world, id)) === "Gone",
      longMs,
    );
    assert.ok(isGone, JSON.stringify((await orphanOf(world, id))?.status));
    assert.deepEqual(guests(stage), []);
  });

  it("is left alone when it is kept, and is no Orphan any more when it is declared", async () => {
    const stage = await open();
    const { world } = stage;
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    await decide(world, await waitForOrphan(world, id), { decision: "Keep" });
    await until(world, async () => reasonOf(await orphanOf(world, id)) === "Kept");
    await until(world, () => false, longMs);
    assert.deepEqual(guests(stage), [id]);
    const [claim] = await listClaims(world.client);
    const annotations = { "berth.dev/identity": claim?.spec.identity ?? "" };
    await world.client.of(virtualMachineKind).create({
      apiVersion: "berth.dev/v1alpha1",
      kind: "VirtualMachine",
      metadata: { namespace: "default", name: "web", annotations },
      spec: {
        hypervisorRef: { name: "model" },
        cpu: { cores: 2 },
        memory: { size: "2Gi" },
        source: { image: { name: "debian" } },
        disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
        networks: [{ name: "lan", bridge: "vmbr0" }],
        ...stopped,
      },
    });
    await until(world, async () => (await listOrphans(world)).length === 0, longMs);
    assert.deepEqual(await listOrphans(world), []);
    assert.ok(isReady(await getVm(world.client, "web")));
  });

  it("is not let go for an object that the server refuses, and says why", async () => {
    const stage = await open();
    const { world } = stage;
    const entry = { namespace: "*", adopt: true, externalId: true };
    await configure(world, { allow: [{ ...entry, storages: ["*"], networks: ["*"] }] });
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    const before = stage.proxmox.cluster.state.guests[id]?.text;
    const adoptAs = { namespace: "default", name: "a".repeat(64) };
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    await until(world, async () => reasonOf(await orphanOf(world, id)) === "ConfigurationError");
    const { failure } = (await orphanOf(world, id))?.status ?? {};
    assert.match(failure?.message ?? "", /^The VirtualMachine default\/a+ was refused: .*name/);
    assert.equal(stage.proxmox.cluster.state.guests[id]?.text, before, "the mark is as it was");
    const [claim] = await listClaims(world.client);
    assert.equal(claim?.spec.state, "Bound");
  });

  it("is adopted no more when somebody else's machine has its id", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    const { node = "", text = "" } = proxmox.cluster.state.guests[id] ?? {};
    const other = text.replace(/uuid=[0-9a-f-]+/, "uuid=00000000-0000-4000-8000-00000000f00d");
    proxmox.writeGuestFile(node, Number(id), other);
    const adoptAs = { namespace: "default", name: "web" };
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    const isGone = async (): Promise<boolean> => (await orphanOf(world, id)) === undefined;
    assert.ok(await until(world, isGone, longMs), "it asks for one sweep after the other");
    assert.equal(proxmox.cluster.state.guests[id]?.text, other);
  });

  it("is let go with its Claim, if its Orphan goes between its release and its adoption", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    await configure(world, { orphans: { graceSeconds: 60, sweepSeconds: 60 } });
    await allowAdoption(stage);
    const id = await ready(stage, "web", stopped);
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    const adoptAs = { namespace: "default", name: "site" };
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    const isLetGo = (): boolean => {
      return decodeURIComponent(proxmox.cluster.state.guests[id]?.text ?? "").includes(
        '"Released"',
      );
    };
    assert.ok(await until(world, isLetGo));
    assert.equal(await getVm(world.client, "site"), undefined);
    await world.client.of(orphanKind).delete({ name: orphan.metadata.name ?? "" });
    const stateOf = async (): Promise<string | undefined> => {
      return (await listClaims(world.client)).find(({ spec }) => spec.externalId === id)?.spec
        .state;
    };
    assert.equal(await stateOf(), "Bound");
    assert.ok(await until(world, async () => (await stateOf()) === "Released"));
    await until(world, () => false, longMs);
    assert.deepEqual(await listOrphans(world), []);
    assert.deepEqual(guests(stage), [id]);
  });

  it("is adopted under another name as it stands, and nothing of it is detached", async () => {
    const stage = await open();
    const { world } = stage;
    const id = await ready(stage, "web");
    const before = await getVm(world.client, "web");
    await strip(world, "web");
    const orphan = await waitForOrphan(world, id);
    const adoptAs = { namespace: "default", name: "site" };
    await decide(world, orphan, { decision: "Adopt", adoptAs });
    const isDenied = await until(
      world,
      async () => reasonOf(await orphanOf(world, id)) === "PermissionDenied",
    );
    assert.ok(isDenied, JSON.stringify((await orphanOf(world, id))?.status));
    assert.equal(await getVm(world.client, "site"), undefined);
    await allowAdoption(stage);
    const isThere = await until(
      world,
      async () => isReady(await getVm(world.client, "site")),
      longMs,
    );
    const vm = await getVm(world.client, "site");
    assert.ok(isThere, JSON.stringify([vm, (await orphanOf(world, id))?.status], undefined, 1));
    const told = (seen: typeof vm): unknown[] => {
      const { externalId, identity, disks } = seen?.status ?? {};
      return [externalId, identity, disks];
    };
    assert.deepEqual(told(vm), told(before));
    assert.equal(condition(vm, "Running").split(" ")[0], "True");
    const isOver = await until(world, async () => (await listOrphans(world)).length === 0);
    assert.ok(isOver, JSON.stringify(await listOrphans(world)));
  });
});

describe("deleting by policy", () => {
  it("takes what is ours and stopped, one with each sweep, and nothing else", async () => {
    const stage = await open();
    const { world } = stage;
    await configure(world, { orphans: { policy: "DeleteOwned", graceSeconds: 60 } });
    for (const name of ["a", "b", "c", "d", "e"]) await ready(stage, name, stopped);
    const running = await ready(stage, "f");
    for (const name of ["a", "b"]) await strip(world, name);
    await strip(world, "f");
    const counts: number[] = [];
    await until(
      world,
      () => {
        counts.push(guests(stage).length);
        return guests(stage).length === 4;
      },
      longMs,
    );
    assert.equal(guests(stage).length, 4, JSON.stringify(await listOrphans(world), undefined, 1));
    await until(world, () => false, longMs);
    assert.equal(guests(stage).length, 4);
    assert.ok(guests(stage).includes(running));
    assert.ok(counts.includes(5), "one after the other");
  });

  it("takes nothing when most objects are gone at once, nor when a mark is all there is", async () => {
    const stage = await open();
    const { world } = stage;
    await configure(world, { orphans: { policy: "DeleteOwned", graceSeconds: 60 } });
    for (const name of ["a", "b", "c"]) await ready(stage, name, stopped);
    for (const name of ["a", "b"]) await strip(world, name);
    const [claim] = (await listClaims(world.client)).filter(({ spec }) => spec.owner.name === "a");
    assert.ok(claim);
    await until(world, () => false, longMs);
    assert.equal(guests(stage).length, 3);
    await world.client.of(claimKind).delete({ name: claim.metadata.name ?? "" });
    await until(world, () => false, longMs);
    const { externalId } = claim.spec;
    assert.equal((await orphanOf(world, externalId))?.status?.ownership, "Marked");
    assert.ok(guests(stage).includes(externalId));
  });
});

describe("a sweep that sees suddenly less", () => {
  it("decides nothing and says so on the Hypervisor, until it goes on being so", async () => {
    const stage = await open();
    const { world, proxmox } = stage;
    for (let id = 500; id < 504; id += 1) proxmox.writeGuestFile("pve1", id, "name: s\n");
    await until(world, () => false, 300_000);
    for (let id = 500; id < 503; id += 1) proxmox.removeGuestFile(id);
    const swept = async (): Promise<string> => {
      const { status } = await world.client.of(hypervisorKind).get({ name: "model" });
      return status?.conditions?.find(({ type }) => type === "Swept")?.message ?? "";
    };
    assert.ok(await until(world, async () => (await swept()) !== "", 300_000));
    assert.match(await swept(), /3 of 4 machines/);
    assert.ok(await until(world, async () => (await swept()) === "", 600_000));
  });

  it("ends after a minute, however long the sweep took that saw less", async () => {
    const sweeps = { hidden: 0 };
    const stage = await openProxmox("8.4", {
      around: (driver) => ({
        ...driver,
        survey: async (known) => {
          const survey = await driver.survey(known);
          if (sweeps.hidden !== 1 || !survey.ok) return survey;
          sweeps.hidden += 1;
          await sleep(stage.world.clock, 500);
          return { ok: true, value: { ...survey.value, machines: [] } };
        },
      }),
    });
    const { world, proxmox } = stage;
    for (let id = 500; id < 504; id += 1) proxmox.writeGuestFile("pve1", id, "name: s\n");
    world.start();
    await configure(world, { orphans: { sweepSeconds: 60 } });
    await until(world, () => false, 300_000);
    const isTold = async (): Promise<boolean> => {
      const { status } = await world.client.of(hypervisorKind).get({ name: "model" });
      return status?.conditions?.some(({ type }) => type === "Swept") ?? false;
    };
    sweeps.hidden = 1;
    assert.ok(await until(world, isTold, 300_000));
    assert.ok(await until(world, async () => !(await isTold()), 90_000), "it is told for longer");
  });
});
