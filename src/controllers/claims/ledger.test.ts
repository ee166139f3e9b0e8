import assert from "node:assert/strict";
import { test } from "node:test";
import { annotations, claimKind, virtualMachineKind } from "../../api/index.ts";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import { createInformer } from "../../client/index.ts";
import { countingRandom, createVm, getVm, openWorld, until, type World } from "../testing/world.ts";
import { claimIndexes, Ledger, quarantineMs, type Reservation } from "./ledger.ts";
import { reconcileClaim } from "./reconcile.ts";

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
      preflightVolumes: [],
      resources: { cpu: 1, memory: "1024", storage: "0" },
    }),
    afterDay: async () => {
      clock.advance(quarantineMs + 1000);
      await until(world, () => claims.list().length > 0, 0);
      const name = claims.list()[0]?.metadata.name ?? "";
      return (await reconcileClaim(name, { claims, ledger, clock })).type;
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
  const stood = await ledger.record(await reserve(web, "102"), { everStood: true });
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
