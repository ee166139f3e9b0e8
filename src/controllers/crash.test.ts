import assert from "node:assert/strict";
import { test } from "node:test";
import { virtualMachineKind } from "../api/index.ts";
import {
  createVm,
  getVm,
  isReady,
  listClaims,
  openWorld,
  until,
  type Incarnation,
  type World,
} from "./testing/world.ts";

// Where real components are required there is time for every call.
const stride = process.env["BERTH_REQUIRE_REAL"] === "1" ? 1 : 3;

const web = { namespace: "default", name: "web" };

/** From nothing to Ready and back to nothing, with a new incarnation after each crash. */
async function live(world: World, first: Incarnation, label: string): Promise<void> {
  const { client, model } = world;
  const check = async (): Promise<void> => checkLaws(world, label, await holdersOf(world));
  let current = first;
  const revive = (): void => {
    if (current.isCrashed) current = world.start();
  };
  await createVm(client, "web");
  const isThere = await until(world, async () => {
    revive();
    await check();
    return isReady(await getVm(client, "web"));
  });
  const vm = await getVm(client, "web");
  assert.ok(isThere, `${label}: Ready ${JSON.stringify([vm?.status, model.effects, world.log])}`);
  await client.of(virtualMachineKind).delete(web);
  const isGone = await until(world, async () => {
    revive();
    await check();
    return (await getVm(client, "web")) === undefined;
  });
  assert.ok(
    isGone,
    `${label}: gone ${JSON.stringify([await getVm(client, "web"), model.effects])}`,
  );
  checkRest(world, label, await listClaims(client));
  current.crash();
}

/**
 * The disk-holder VMs: where nobody remembers how an operation ended, nothing proves whose the
 * disk is that it made. It is used, and kept when the VM goes.
 */
async function holdersOf({ client, model }: World): Promise<readonly string[]> {
  if (!model.isForgetful) return [];
  return diskHolders(await listClaims(client)).map(({ spec }) => spec.externalId);
}

type Claims = Awaited<ReturnType<typeof listClaims>>;

function diskHolders(claims: Claims): Claims {
  return claims.filter(({ spec }) => spec.role === "DiskHolder");
}

/** One machine per declaration, and strangers as they were. */
function checkLaws({ model }: World, label: string, holders: readonly string[]): void {
  const ours = [...model.machines.values()].filter(({ id }) => {
    return id !== "100" && !holders.includes(id);
  });
  assert.ok(ours.length <= 1, `${label}: one machine, not ${ours.map(({ id }) => id).join()}`);
  assert.equal(model.machines.get("100")?.version, 1, `${label}: the stranger was touched`);
}

/** Nothing is left but the stranger, and no Claim that holds anything. */
function checkRest({ model }: World, label: string, claims: Claims): void {
  const holders = model.isForgetful ? diskHolders(claims) : [];
  const kept = holders.flatMap(({ spec }) => (spec.volumes ?? []).map(({ id }) => id));
  const ids = holders.map(({ spec }) => spec.externalId);
  const left = (all: Iterable<string>, known: readonly string[]): string[] => {
    return [...all].filter((one) => !known.includes(one));
  };
  assert.deepEqual(left(model.machines.keys(), ids), ["100"], label);
  assert.deepEqual(left(model.volumes.keys(), kept), ["store:vm-100-disk-0"], label);
  const held = claims.filter((claim) => {
    const isKept = holders.includes(claim) && claim.spec.state === "Released";
    return claim.spec.state !== "Quarantined" && !isKept;
  });
  assert.deepEqual(held, [], label);
}

/** Work goes on when the next incarnation looks, and nobody can tell it whose it is. */
function beSlowAndForgetful({ model }: World): void {
  model.isForgetful = true;
  model.taskMs = 25_000;
}

for (const when of ["before", "after"] as const) {
  test(`a crash ${when} any call loses, doubles and leaks nothing`, async () => {
    const calm = await openWorld();
    calm.model.addStranger("100");
    const whole = calm.start();
    await live(calm, whole, "no crash");
    // From the first write on; what was only read before is read again.
    const from = whole.calls.findIndex((name) => !name.startsWith("GET"));
    const numbered = whole.calls.map((name, i) => ({ name, call: i + 1 }));
    // Of looks in a row one is enough: nothing happens between them.
    const isLast = (i: number): boolean => whole.calls[i] !== whole.calls[i + 1];
    const all = numbered.filter((_, i) => i >= from && isLast(i));
    const calls = all.filter((_, i) => i % stride === 0);
    for (const { name, call } of calls) {
      const world = await openWorld();
      world.model.addStranger("100");
      if (when === "after") beSlowAndForgetful(world);
      const first = world.start();
      first.crashAt = { call, when };
      await live(world, first, `crash ${when} call ${call} (${name})`);
    }
  });
}
