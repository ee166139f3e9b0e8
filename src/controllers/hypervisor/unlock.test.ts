import assert from "node:assert/strict";
import { test } from "node:test";
import { secretResource } from "../../api/builtin/index.ts";
import { hypervisorKind } from "../../api/index.ts";
import { openWorld, until, type World } from "../testing/world.ts";

async function write({ client }: World, name: string, data: Record<string, string>): Promise<void> {
  const encoded = Object.entries(data).map(([key, text]) => [key, btoa(text)]);
  const secret = { data: Object.fromEntries(encoded) as Record<string, string> };
  const namespace = "berth-system";
  const metadata = { namespace, name };
  const body = { apiVersion: "v1", kind: "Secret", metadata, ...secret };
  const secrets = client.of(secretResource);
  if (name === "root" && data["password"] === "first") await secrets.create(body);
  else await secrets.patch({ namespace, name }, { merge: secret });
}

test("the account for unlocking goes only to the endpoints that it was given for", async () => {
  const world = await openWorld();
  const given: (string | undefined)[] = [];
  await write(world, "root", { username: "root@pam", password: "first" });
  const secretRef = { namespace: "berth-system", name: "root" };
  const hypervisors = world.client.of(hypervisorKind);
  const change = (spec: object): Promise<unknown> => {
    return hypervisors.patch({ name: "model" }, { merge: { spec } });
  };
  await change({ unlockCredentials: { secretRef } });
  world.start({
    connect: (_, __, unlock) => {
      given.push(unlock?.["password"]);
      return world.model.driver();
    },
  });
  const last = (password: string | undefined, count: number): Promise<boolean> => {
    return until(world, () => given.length === count && given.at(-1) === password, 120_000);
  };
  assert.ok(await last("first", 1), given.join());
  await change({ endpoints: ["https://other.example:8006"] });
  await until(world, () => false, 60_000);
  assert.equal(given.length, 1, "nothing is sent there before the credentials are renewed");
  await write(world, "model", { tokenId: "u" });
  assert.ok(await last(undefined, 2), given.join());
  await write(world, "root", { password: "second" });
  assert.ok(await last("second", 3), given.join());
  const { status } = await hypervisors.get({ name: "model" });
  assert.deepEqual(status?.unlockCredentials?.endpoints, ["https://other.example:8006"]);
});

test("a Secret for unlocking that is not there keeps nobody from working", async () => {
  const world = await openWorld();
  const hypervisors = world.client.of(hypervisorKind);
  const secretRef = { namespace: "berth-system", name: "nowhere" };
  await hypervisors.patch(
    { name: "model" },
    { merge: { spec: { unlockCredentials: { secretRef } } } },
  );
  world.start();
  const isReady = await until(world, async () => {
    const { status } = await hypervisors.get({ name: "model" });
    return (
      status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") === true
    );
  });
  assert.ok(isReady);
});
