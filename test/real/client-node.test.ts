import assert from "node:assert/strict";
import test from "node:test";
import {
  CoreV1Api,
  CustomObjectsApi,
  type KubernetesListObject,
  KubeConfig,
  type KubernetesObject,
  makeInformer,
  type V1ConfigMap,
} from "@kubernetes/client-node";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import "./support/cleanup.ts";

const group = { group: "berth.dev", version: "v1alpha1", plural: "vmclasses" };

test("somebody else's client library works against the embedded API", async (t) => {
  const folder = temporaryFolder("client-node");
  const berth = await startBerth({ data: folder.path });
  t.after(async () => {
    await berth.stop();
    folder.remove();
  });
  const config = new KubeConfig();
  config.loadFromFile(berth.kubeconfig);

  await t.test("an informer follows built-in objects", () => followConfigMaps(config));
  await t.test("custom objects are created, patched by PUT, listed and deleted", () =>
    useCustomObjects(config),
  );
});

test("an informer survives kill -9 and restart of the server", async (t) => {
  const folder = temporaryFolder("client-node-restart");
  let berth: Berth = await startBerth({ data: folder.path });
  t.after(async () => {
    await berth.stop();
    folder.remove();
  });
  const config = new KubeConfig();
  config.loadFromFile(berth.kubeconfig);
  const core = config.makeApiClient(CoreV1Api);
  const informer = configMapInformer(config);
  const seen = new Set<string>();
  informer.on("add", (object) => seen.add(object.metadata?.name ?? ""));
  let isOver = false;
  informer.on("error", () => {
    if (!isOver) setTimeout(() => void informer.start(), 100);
  });
  await informer.start();
  await core.createNamespacedConfigMap({ namespace: "default", body: configMap("before") });
  await until(() => seen.has("before"));
  const port = Number(new URL(berth.url).port);
  await berth.kill();
  berth = await startBerth({ data: folder.path, port });
  await core.createNamespacedConfigMap({ namespace: "default", body: configMap("after") });
  await until(() => seen.has("after"));
  isOver = true;
  await informer.stop();
});

function configMap(name: string, data: Record<string, string> = {}): V1ConfigMap {
  return { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
}

function configMapInformer(config: KubeConfig): ReturnType<typeof makeInformer<V1ConfigMap>> {
  const core = config.makeApiClient(CoreV1Api);
  return makeInformer<V1ConfigMap>(config, "/api/v1/namespaces/default/configmaps", async () => {
    const list = await core.listNamespacedConfigMap({ namespace: "default" });
    return list satisfies KubernetesListObject<KubernetesObject>;
  });
}

async function followConfigMaps(config: KubeConfig): Promise<void> {
  const core = config.makeApiClient(CoreV1Api);
  const events: string[] = [];
  const informer = configMapInformer(config);
  informer.on("add", (object) => events.push(`add ${object.metadata?.name}`));
  informer.on("update", (object) => events.push(`update ${object.metadata?.name}`));
  informer.on("delete", (object) => events.push(`delete ${object.metadata?.name}`));
  await core.createNamespacedConfigMap({ namespace: "default", body: configMap("a") });
  await informer.start();
  await core.createNamespacedConfigMap({ namespace: "default", body: configMap("b") });
  await until(() => events.includes("add b"));
  const stored = await core.readNamespacedConfigMap({ namespace: "default", name: "b" });
  stored.data = { changed: "yes" };
  await core.replaceNamespacedConfigMap({ namespace: "default", name: "b", body: stored });
  await until(() => events.includes("update b"));
  await core.deleteNamespacedConfigMap({ namespace: "default", name: "b" });
  await until(() => events.includes("delete b"));
  await informer.stop();
  assert.deepEqual(events, ["add a", "add b", "update b", "delete b"]);
}

async function useCustomObjects(config: KubeConfig): Promise<void> {
  const custom = config.makeApiClient(CustomObjectsApi);
  const where = { ...group, namespace: "default" };
  const created = await custom.createNamespacedCustomObject({
    ...where,
    body: {
      apiVersion: "berth.dev/v1alpha1",
      kind: "VMClass",
      metadata: { name: "small" },
      spec: { cpu: { cores: 2 }, memory: { size: "2Gi" } },
    },
  });
  assert.equal(created.metadata.generation, 1);
  created.spec.cpu.cores = 4;
  const name = "small";
  const body = created;
  const replaced = await custom.replaceNamespacedCustomObject({ ...where, name, body });
  assert.equal(replaced.metadata.generation, 2);
  const list = await custom.listNamespacedCustomObject(where);
  assert.equal(list.items.length, 1);
  await custom.deleteNamespacedCustomObject({ ...where, name });
  await assert.rejects(custom.getNamespacedCustomObject({ ...where, name }), /404/);
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = Date.now() + 15_000;
  while (!condition()) {
    assert.ok(Date.now() < deadlineMs, "it did not happen within 15 seconds");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
