import assert from "node:assert/strict";
import { test } from "node:test";
import { annotations, claimKind, virtualMachineKind } from "../../api/index.ts";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import { createInformer } from "../../client/index.ts";
import { pathNotFound } from "../../kernel/status.ts";
import { countingRandom, createVm, getVm, openWorld, until, type World } from "../testing/world.ts";
import { claimIndexes } from "./claim-indexes.ts";
import { Ledger, quarantineMs } from "./ledger.ts";
import { FileLedger } from "./file-ledger.ts";
import { reconcileClaim } from "./reconcile.ts";
import type { Reservation } from "./reservation.ts";

const installation = "00000000-0000-4000-8000-000000000007";
const system = { name: "model", systemId: "model-1" };

interface Bench {
  readonly world: World;
  readonly ledger: Ledger;
  readonly vm: (name: string) => Promise<VirtualMachine>;
  readonly reservation: (vm: VirtualMachine) => Reservation;
  readonly afterDay: () => Promise<string>;
}

async function openBench(): Promise<Bench> {
  const world = await openWorld();
  const { client, clock } = world;
  const random = countingRandom(5);
  const claims = createInformer({ client, clock, random, kind: claimKind, indexes: claimIndexes });
  await claims.synced;
  const ledger = new Ledger({ client, claims, clock, installation });
  ledger.systemOf = () => system.systemId;
  return {
    world,
    ledger,
    vm: async (name) => {
      await createVm(client, name);
      const vm = await getVm(client, name);
      assert.ok(vm);
      return vm;
    },
    reservation: (vm) => ({
      vm,
      hypervisor: system,
      externalId: "100",
      idChosenBy: "Berth",
      identity: random.uuid(),
      node: "n1",
      otherVolumes: [],
      resources: { cpu: 1, memory: "1024", storage: "0" },
    }),
    afterDay: async () => {
      clock.advance(quarantineMs + 1000);
      await until(world, () => claims.list().length > 0, 0);
      const name = claims.list()[0]?.metadata.name ?? "";
      const files = new FileLedger({ client, clock, ledger });
      const deps = { claims, ledger, files, heirOf: () => undefined, clock, client };
      return (await reconcileClaim(name, deps)).type;
    },
  };
}

test("an id is reserved by one VM, however often it asks", async () => {
  const { ledger, vm, reservation } = await openBench();
  const [web, db] = [await vm("web"), await vm("db")];
  const wanted = reservation(web);
  assert.equal((await ledger.reserve(wanted)).is, "ours");
  assert.equal((await ledger.reserve(wanted)).is, "ours");
  assert.equal((await ledger.reserve(reservation(db))).is, "taken");
});

test("an id that rests is nobody's for a day, and then anybody's", async () => {
  const { world, ledger, vm, reservation } = await openBench();
  const [web, db] = [await vm("web"), await vm("db")];
  const reserved = await ledger.reserve(reservation(web));
  assert.ok(reserved.is === "ours");
  await ledger.retire(reserved.claim);
  assert.equal((await ledger.reserve(reservation(db))).is, "taken");
  world.clock.advance(quarantineMs + 1000);
  const taken = await ledger.reserve(reservation(db));
  assert.ok(taken.is === "ours");
  assert.equal(taken.claim.spec.owner.name, "db");
  assert.equal(taken.claim.spec.state, "Reserved");
});

test("empty reservations that an object gave up are counted, and nobody else's", async () => {
  const { ledger, vm, reservation } = await openBench();
  const [web, db] = [await vm("web"), await vm("db")];
  const reserve = async (of: VirtualMachine, externalId: string): Promise<Claim> => {
    const reserved = await ledger.reserve({ ...reservation(of), externalId });
    assert.ok(reserved.is === "ours");
    return reserved.claim;
  };
  const first = await reserve(web, "100");
  assert.equal(ledger.husksOf(first.spec), 0, "one that is held was not given up");
  await ledger.release(first, "its task is dead");
  await ledger.release(await reserve(db, "101"), "its task is dead");
  const stood = await ledger.record(await reserve(web, "102"), { everExisted: true });
  await ledger.release(stood, "a person said so");
  assert.equal(ledger.husksOf(first.spec), 1);
});

test("a Claim whose quarantine is over is deleted", async () => {
  const { world, ledger, vm, reservation, afterDay } = await openBench();
  const reserved = await ledger.reserve(reservation(await vm("web")));
  assert.ok(reserved.is === "ours");
  await ledger.retire(reserved.claim);
  await until(world, () => false, 1000);
  assert.equal(await afterDay(), "settled");
  assert.deepEqual((await world.client.of(claimKind).list()).items, []);
});

test("an id that the user chose is free at once", async () => {
  const { ledger, vm, reservation } = await openBench();
  const [web, db] = [await vm("web"), await vm("db")];
  const reserved = await ledger.reserve({ ...reservation(web), idChosenBy: "User" });
  assert.ok(reserved.is === "ours");
  await ledger.retire(reserved.claim);
  assert.equal((await ledger.reserve(reservation(db))).is, "ours");
});

test("a later object of the same name gets the machine only with its identity", async () => {
  const { world, ledger, vm, reservation } = await openBench();
  const reserved = await ledger.reserve(reservation(await vm("web")));
  assert.ok(reserved.is === "ours");
  await until(world, () => false, 1000);
  const { identity } = reserved.claim.spec;
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
  const later = await vm("web");
  const refused = await ledger.find(later);
  assert.ok(!refused.ok);
  assert.equal(refused.failure.category, "IdentityConflict");
  assert.match(refused.failure.remedy ?? "", new RegExp(identity));
  const metadata = { ...later.metadata, annotations: { [annotations.identity]: identity } };
  const rebound = await ledger.find({ ...later, metadata });
  assert.ok(rebound.ok);
  assert.equal(rebound.value?.spec.owner.uid, later.metadata.uid);
});

/** A copy of the Claims that shows nothing yet. */
const blind = {
  get: () => undefined,
  list: () => [],
  byIndex: () => [],
  synced: Promise.resolve(),
  isSynced: () => true,
  on: () => () => undefined,
  stop: () => Promise.resolve(),
};

function blindLedger({ world: { client, clock } }: Bench): Ledger {
  const ledger = new Ledger({ client, claims: blind, clock, installation });
  ledger.systemOf = () => system.systemId;
  return ledger;
}

test("a Claim is found by its owner without a status, whatever a list that lies here shows", async () => {
  const bench = await openBench();
  const [web, db] = [await bench.vm("web"), await bench.vm("db")];
  await bench.ledger.reserve({ ...bench.reservation(web), isPending: true });
  const passed = await bench.ledger.reserve({ ...bench.reservation(web), externalId: "101" });
  assert.ok(passed.is === "ours");
  const found = await blindLedger(bench).find(web);
  assert.ok(found.ok);
  assert.equal(found.value?.spec.externalId, "101", "what may have been made comes first");
  assert.deepEqual(await blindLedger(bench).find(db), { ok: true, value: undefined });
});

test("a Claim without a label is found for an object that an export brings back", async () => {
  const bench = await openBench();
  const web = await bench.vm("web");
  const reserved = await bench.ledger.reserve(bench.reservation(web));
  assert.ok(reserved.is === "ours");
  const { name = "" } = reserved.claim.metadata;
  const { identity } = reserved.claim.spec;
  const claims = bench.world.client.of(claimKind);
  await claims.patch({ name }, { merge: { metadata: { labels: null } } });
  const written = {
    ...web.metadata,
    uid: "another",
    annotations: { [annotations.identity]: identity },
  };
  const found = await blindLedger(bench).find({ ...web, metadata: written });
  assert.ok(found.ok);
  assert.equal(found.value?.spec.owner.uid, "another");
});

test("what is granted counts until the list shows it as granted, not as Pending", async () => {
  const bench = await openBench();
  const [web, db] = [await bench.vm("web"), await bench.vm("db")];
  const { ledger } = bench;
  const wanted = bench.reservation(web);
  const pending = await ledger.reserve({ ...wanted, isPending: true });
  assert.ok(pending.is === "ours");
  const beside = (): number => ledger.heldBeside(bench.reservation(db)).length;
  assert.equal(beside(), 0, "one that is Pending does not count");
  assert.equal(
    ledger.grant(wanted, () => undefined),
    undefined,
  );
  await until(bench.world, () => false, 1000);
  assert.equal(beside(), 1, "the list shows the Pending one still");
  await ledger.record(pending.claim, { preflight: "Passed" });
  assert.equal(beside(), 1);
  await until(bench.world, () => false, 1000);
  assert.equal(beside(), 1);
});

test("what was let go goes on saying so while another only waits for its id", async () => {
  const bench = await openBench();
  const [web, db] = [await bench.vm("web"), await bench.vm("db")];
  const reserved = await bench.ledger.reserve(bench.reservation(web));
  assert.ok(reserved.is === "ours");
  await bench.ledger.release(reserved.claim, "retained by policy");
  const pending = await bench.ledger.reserve({ ...bench.reservation(db), isPending: true });
  assert.equal(pending.is, "released");
  assert.equal((await bench.ledger.reserve(bench.reservation(db))).is, "ours");
});

test("a Claim that is taken over keeps what failed attempts probably left under the id", async () => {
  const { ledger, vm, reservation } = await openBench();
  const [web, db] = [await vm("web"), await vm("db")];
  const reserved = await ledger.reserve(reservation(web));
  assert.ok(reserved.is === "ours");
  const seenAt = "2026-01-02T03:04:05Z";
  const place = { storage: "zfs", node: "n1", size: "1", operation: "op-1", seenAt, evidence: [] };
  const probableVolumes = [{ id: "zfs:vm-100-disk-0", ...place }];
  const known = await ledger.record(reserved.claim, { probableVolumes });
  await ledger.release(known, "retained by policy");
  const taken = await ledger.reserve(reservation(db));
  assert.ok(taken.is === "ours");
  assert.deepEqual(taken.claim.spec.probableVolumes, probableVolumes);
});

test("where the kind Claim was deleted, only what is deleted as well is without a Claim", async () => {
  const { world, vm } = await openBench();
  const { client, clock } = world;
  const web = await vm("web");
  const claims = createInformer({
    client,
    clock,
    random: countingRandom(6),
    kind: claimKind,
    indexes: claimIndexes,
  });
  const gone = { ...client.of(claimKind), list: () => Promise.reject(pathNotFound()) };
  const without = { ...client, of: () => gone } as unknown as typeof client; // cast: one kind of it
  const ledger = new Ledger({ client: without, claims, clock, installation });
  await assert.rejects(() => ledger.find(web), /could not find/);
  const deletionTimestamp = "2026-01-02T03:04:05Z";
  const leaving = { ...web, metadata: { ...web.metadata, deletionTimestamp } };
  assert.deepEqual(await ledger.find(leaving), { ok: true, value: undefined });
});
