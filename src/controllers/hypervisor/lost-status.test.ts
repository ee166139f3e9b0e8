import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretResource } from "../../api/builtin/index.ts";
import { hypervisorKind, type Hypervisor } from "../../api/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { forgetLease, type ControllersOptions } from "../index.ts";
import { createVm, getVm, isReady, openWorld, until, type World } from "../testing/world.ts";

const evil = "https://evil.example:8006";

async function hypervisorOf({ client }: World): Promise<Hypervisor> {
  return client.of(hypervisorKind).get({ name: "model" });
}

async function reasonOf(world: World): Promise<string | undefined> {
  const { conditions = [] } = (await hypervisorOf(world)).status ?? {};
  return conditions.find(({ type }) => type === "Ready")?.reason;
}

async function becomes(world: World, reason: string): Promise<void> {
  const isSo = await until(world, async () => (await reasonOf(world)) === reason, 120_000);
  assert.ok(isSo, JSON.stringify((await hypervisorOf(world)).status));
}

/** Somebody, or a restored export, takes the whole status away, and changes the spec as well. */
async function loseStatus(world: World, spec: object = {}): Promise<void> {
  const hypervisors = world.client.of(hypervisorKind);
  await hypervisors.patch({ name: "model" }, { merge: { spec } });
  for (let tries = 0; tries < 5; tries += 1) {
    const { status: _lost, ...rest } = await hypervisorOf(world);
    try {
      await hypervisors.updateStatus(rest);
      return;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 409) throw error;
    }
  }
}

interface Stage {
  readonly world: World;
  /** The endpoints that a driver was made for, and whether with the account for unlocking. */
  readonly connected: { readonly endpoint: string; readonly mayUnlock: boolean }[];
  readonly start: () => ReturnType<World["start"]>;
}

async function open(): Promise<Stage> {
  const world = await openWorld();
  const connected: { endpoint: string; mayUnlock: boolean }[] = [];
  const connect: ControllersOptions["connect"] = (hypervisor, _credentials, unlock) => {
    const [endpoint = ""] = hypervisor.spec.endpoints;
    connected.push({ endpoint, mayUnlock: unlock !== undefined });
    return world.model.driver();
  };
  return { world, connected, start: () => world.start({ connect, whenAbsent: "trust" }) };
}

describe("a Hypervisor that lost its status", () => {
  for (const isRestarted of [false, true]) {
    const how = isRestarted ? ", also after a restart" : "";
    it(`does not send its credentials to endpoints that they were not given for${how}`, async () => {
      const { world, connected, start } = await open();
      const first = start();
      await becomes(world, "Connected");
      if (isRestarted) {
        first.crash();
        await forgetLease(world.client);
      }
      await loseStatus(world, { endpoints: [evil] });
      if (isRestarted) start();
      await becomes(world, "CredentialsNotRenewed");
      assert.ok(!connected.some(({ endpoint }) => endpoint === evil));
    });
  }

  it("sends its credentials to new endpoints when their Secret was written again", async () => {
    const { world, connected, start } = await open();
    start();
    await becomes(world, "Connected");
    await loseStatus(world, { endpoints: [evil] });
    await becomes(world, "CredentialsNotRenewed");
    const at = { namespace: "berth-system", name: "model" };
    const data = { tokenId: Buffer.from("new").toString("base64") };
    await world.client.of(secretResource).patch(at, { merge: { data } });
    await becomes(world, "Connected");
    assert.equal(connected.at(-1)?.endpoint, evil);
  });

  it("does not use the account for unlocking at endpoints that it was not given for", async () => {
    const { world, connected, start } = await open();
    const { client } = world;
    const metadata = { namespace: "berth-system", name: "root" };
    const data = { password: Buffer.from("p").toString("base64") };
    const secret = { apiVersion: "v1", kind: "Secret", metadata, data };
    await client.of(secretResource).create(secret);
    const unlockCredentials = { secretRef: metadata };
    const merge = { spec: { unlockCredentials } };
    await client.of(hypervisorKind).patch({ name: "model" }, { merge });
    start();
    await becomes(world, "Connected");
    assert.deepEqual(connected.at(-1)?.mayUnlock, true);
    await loseStatus(world, { endpoints: [evil] });
    await becomes(world, "CredentialsNotRenewed");
    // The token is given for the new endpoints, and root's password is not.
    const token = { tokenId: Buffer.from("new").toString("base64") };
    const at = { namespace: "berth-system", name: "model" };
    await client.of(secretResource).patch(at, { merge: { data: token } });
    await becomes(world, "Connected");
    assert.deepEqual(connected.at(-1), { endpoint: evil, mayUnlock: false });
  });

  it("writes nothing to another system that answers meanwhile", async () => {
    const { world, start } = await open();
    start();
    await becomes(world, "Connected");
    const { systemId } = world.model;
    Object.assign(world.model, { systemId: "another" });
    await loseStatus(world, { limits: { pollSeconds: 11 } });
    await becomes(world, "SystemChanged");
    await createVm(world.client, "web");
    await until(world, () => false, 60_000);
    assert.equal(world.model.machines.size, 0);
    await loseStatus(world);
    await becomes(world, "SystemChanged");
    Object.assign(world.model, { systemId });
    const isMade = async (): Promise<boolean> => isReady(await getVm(world.client, "web"));
    assert.ok(await until(world, isMade, 30 * 60_000));
  });

  it("has all of it again after one tick, and a VM on it does not notice", async () => {
    const { world, start } = await open();
    start();
    await createVm(world.client, "web");
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    await until(world, () => false, 60_000);
    const before = await hypervisorOf(world);
    const vm = await getVm(world.client, "web");
    await loseStatus(world);
    await until(world, () => false, 60_000);
    const { sweep: _before, ...status } = before.status ?? {};
    const { sweep: _after, ...now } = (await hypervisorOf(world)).status ?? {};
    const timeless = (one: object): string => JSON.stringify(one).replaceAll(/"20[^"]*Z"/g, "");
    assert.equal(timeless(now), timeless(status));
    assert.deepEqual((await getVm(world.client, "web"))?.status, vm?.status);
  });
});
