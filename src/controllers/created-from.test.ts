import assert from "node:assert/strict";
import { it } from "node:test";
import { secretResource } from "../api/builtin/index.ts";
import { vmImageKind } from "../api/index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import { openProxmox } from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const minuteMs = 60_000;

it("a VM's Claim keeps digests of its image and Secrets, and a change of them is reported", async () => {
  const { world, requests } = await openProxmox("9.2", nodesWeb);
  const { client } = world;
  world.start();
  const text = "$6$salt$hash";
  await client.of(secretResource).create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "account" },
    data: { hash: Buffer.from(text).toString("base64") },
  });
  const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
  await client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: "own" },
    spec: { source: { http } },
  });
  await createVm(client, "web", {
    source: { image: { name: "own" } },
    disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
    cloudInit: { user: { name: "ada", passwordHashSecretRef: { name: "account", key: "hash" } } },
  });
  const isThere = await until(world, async () => isReady(await getVm(client, "web")));
  assert.ok(isThere, JSON.stringify((await getVm(client, "web"))?.status));
  const [claim] = (await listClaims(client)).filter(({ spec }) => spec.target === "VM");
  const fields = claim?.spec.createdFrom?.map(({ field }) => field) ?? [];
  assert.ok(fields.includes("image") && fields.includes("secret.passwordHash"), fields.join());
  await until(world, () => false, 30 * minuteMs);
  const sent = requests.filter(({ method }) => method !== "GET").length;
  const other = { ...http, checksum: `sha512:${"b".repeat(128)}` };
  const merge = { spec: { source: { http: other } } };
  await client.of(vmImageKind).patch({ namespace: "default", name: "own" }, { merge });
  const isTold = await until(world, async () => {
    const { conditions = [] } = (await getVm(client, "web"))?.status ?? {};
    const synced = conditions.find(({ type }) => type === "Synced");
    return synced?.message.includes("its VMImage") === true;
  });
  assert.ok(isTold, JSON.stringify((await getVm(client, "web"))?.status?.conditions));
  assert.ok(isReady(await getVm(client, "web")));
  const changes = requests.filter(({ method }) => method !== "GET").slice(sent);
  assert.deepEqual(
    changes.filter(({ path }) => path.includes("/qemu/")),
    [],
  );
});
