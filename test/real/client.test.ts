import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { builtinResources } from "../../src/api/builtin/index.ts";
import { systemClock, systemRandom } from "../../src/app/index.ts";
import {
  type Connection,
  createClient,
  createHttpsTransport,
  createInformer,
  type Kind,
  loadKubeconfig,
  NetworkError,
  type ObjectClient,
} from "../../src/client/index.ts";
import type { KubeObject, ObjectMeta } from "../../src/kernel/object.ts";
import { ApiError } from "../../src/kernel/status.ts";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import "./support/cleanup.ts";

/** Our own client over TLS against the real process, and what the server does with owners. */

const configMaps = builtin("configmaps");
const namespaces = builtin("namespaces");

test("our informer survives kill -9, and follows owners and namespaces as they go", async (t) => {
  const folder = temporaryFolder("client");
  let berth: Berth = await startBerth({ data: folder.path });
  const transport = createHttpsTransport(loadKubeconfig(readFileSync(berth.kubeconfig, "utf8")));
  const client = createClient({ transport: transport.send, clock: systemClock });
  const objects = client.of(configMaps);
  const informer = createInformer({
    client,
    kind: configMaps,
    clock: systemClock,
    random: systemRandom,
  });
  t.after(async () => {
    await informer.stop();
    transport.close();
    await berth.stop();
    folder.remove();
  });
  await informer.synced;

  const owner = await make(objects, { name: "owner" });
  const reference = {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "owner",
    uid: owner.metadata.uid ?? "",
    blockOwnerDeletion: true,
  };
  await make(objects, { name: "child", ownerReferences: [reference], finalizers: ["test/hold"] });
  await until(() => informer.get("default/child") !== undefined);

  await berth.kill();
  berth = await startBerth({ data: folder.path, port: Number(new URL(berth.url).port) });
  await objects.delete(at("owner"), { propagationPolicy: "Foreground" });
  await until(() => informer.get("default/child")?.metadata.deletionTimestamp !== undefined);
  assert.ok(informer.get("default/owner"), "the owner waits for its dependent");
  await objects.patch(at("child"), { merge: { metadata: { finalizers: null } } });
  await until(() => informer.get("default/owner") === undefined);

  const team = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } };
  await client.of(namespaces).create(team);
  await make(objects, { name: "inside", namespace: "team" });
  await client.of(namespaces).delete({ name: "team" });
  await until(() => informer.get("team/inside") === undefined);
  await untilRefused(() => client.of(namespaces).get({ name: "team" }), 404);
});

test("TLS and credentials are checked, and the errors say which", async (t) => {
  const folder = temporaryFolder("client-tls");
  const berth = await startBerth({ data: folder.path });
  const connection = loadKubeconfig(readFileSync(berth.kubeconfig, "utf8"));
  t.after(async () => {
    await berth.stop();
    folder.remove();
  });
  const { ca: _ca, ...strange } = connection;
  await assert.rejects(getDefault(strange), (error) => {
    return error instanceof NetworkError && error.code === "Unreachable";
  });
  await assert.rejects(getDefault({ ...connection, token: "wrong" }), (error) => {
    return error instanceof ApiError && error.code === 401;
  });
  assert.equal((await getDefault(connection)).metadata.name, "default");
});

async function getDefault(connection: Connection): Promise<KubeObject> {
  const transport = createHttpsTransport(connection);
  try {
    const client = createClient({ transport: transport.send, clock: systemClock });
    return await client.of(namespaces).get({ name: "default" });
  } finally {
    transport.close();
  }
}

function builtin(plural: string): Kind {
  const found = builtinResources.find((resource) => resource.plural === plural);
  assert.ok(found);
  return found;
}

function at(name: string): { name: string; namespace: string } {
  return { name, namespace: "default" };
}

function make(objects: ObjectClient, metadata: ObjectMeta): Promise<KubeObject> {
  const placed = { namespace: "default", ...metadata };
  return objects.create({ apiVersion: "v1", kind: "ConfigMap", metadata: placed });
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !condition(); i++) await pause();
  assert.ok(condition(), "it came within ten seconds");
}

async function untilRefused(ask: () => Promise<unknown>, code: number): Promise<void> {
  for (let i = 0; i < 500; i++) {
    try {
      await ask();
    } catch (error) {
      if (error instanceof ApiError && error.code === code) return;
      throw error;
    }
    await pause();
  }
  assert.fail(`the answer became ${code} within ten seconds`);
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 20));
}
