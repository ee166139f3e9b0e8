import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { isOldClaim, type Claim, type VirtualMachine } from "../../src/api/index.ts";
import { systemClock, systemRandom } from "../../src/app/system.ts";
import { isJsonObject, type JsonObject } from "../../src/kernel/json.ts";
import { startProxmoxSimulator, type Simulator } from "../../src/sim/index.ts";
import { assertSame, extraWrites } from "../upgrade/compare.ts";
import { crdsOf, openKept } from "../upgrade/kept.ts";
import { moved, type Move } from "../upgrade/moved.ts";
import { runBerth } from "./support/berth.ts";
import { startReplica, type Replica } from "./support/controllers.ts";
import { connectEtcd, type Etcd } from "./support/etcd.ts";
import { bodyOf, connect, type Http } from "./support/http.ts";
import { startKubeApiserver, type KubeApiserver } from "./support/kube-apiserver.ts";
import {
  controllersUser,
  kubectlOf,
  manifest,
  sleep,
  writeKubeconfig,
} from "./support/kube-world.ts";
import { startRecordingProxy, type RecordingProxy } from "./support/recording-proxy.ts";
import "./support/cleanup.ts";

const api = "/apis/berth.dev/v1alpha1";
/** A new leader lets the old one's requests pass, and what 0.1 had sent has its window. */
const patienceMs = 10 * 60_000;
/** Nothing more comes after it was quiet for so long. */
const quietMs = 30_000;
const tokenId = "berth@pve!berth";
const tokenSecret = "00000000-0000-4000-8000-0000000000aa";

const wellAtTheEnd = [
  "adopted",
  "arriving",
  "from-image",
  "growing",
  "paused",
  "steady",
  "stopping",
];

const kept = await openKept("0.1");
const move: Move = {
  nowMs: kept.nowMs,
  byMs: Math.floor((Date.now() - kept.nowMs) / 1000) * 1000,
};

/** An object of the kept folder, as it was when the power failed. */
interface Old {
  readonly group: string;
  readonly plural: string;
  readonly id: string;
  readonly object: JsonObject;
}

const olds: readonly Old[] = kept.records.map(({ bucket, id, value }) => {
  const [group = "", plural = ""] = bucket.split("/");
  const object = moved(JSON.parse(Buffer.from(value).toString()), move);
  assert.ok(isJsonObject(object));
  return { group, plural, id, object };
});
const own = olds.filter(({ group }) => group === "berth.dev");

/** As an apiserver names it in its etcd. */
function keyOf({ group, plural, id }: Old): string {
  return `/registry/${group}/${plural}/${id}`;
}

/** Kubernetes, the cluster of 0.1, and what stands between. */
interface Stage {
  readonly server: KubeApiserver;
  readonly etcd: Etcd;
  readonly http: Http;
  readonly kubectl: ReturnType<typeof kubectlOf>;
  readonly simulator: Simulator;
  readonly proxy: RecordingProxy;
  stop(): Promise<void>;
}

async function openStage(): Promise<Stage> {
  const server = await startKubeApiserver();
  const simulator = await startCluster(join(server.folder, "cluster.json"));
  const proxy = await startRecordingProxy(simulator);
  const http = connect(server);
  return {
    server,
    simulator,
    proxy,
    http,
    etcd: connectEtcd(server.etcdUrl),
    kubectl: kubectlOf(server),
    stop: async () => {
      http.close();
      await proxy.close();
      await simulator.close();
      await server.stop();
    },
  };
}

/** The cluster of the kept folder behind real HTTPS: a new one, with the state of the old. */
async function startCluster(dataFile: string): Promise<Simulator> {
  const options = { port: 0, version: "8.4", clock: systemClock, random: systemRandom } as const;
  await (await startProxmoxSimulator({ ...options, dataFile })).close();
  const file = JSON.parse(readFileSync(dataFile, "utf8"));
  const state = moved(JSON.parse(kept.cluster), move);
  writeFileSync(dataFile, JSON.stringify({ ...file, state }));
  return startProxmoxSimulator({ ...options, dataFile });
}

/** The installation as 0.1 left it: its CRDs, and its objects as its apiserver stored them. */
async function restore({ kubectl, etcd, proxy }: Stage): Promise<void> {
  await kubectl(["apply", "-f", "-"], crdsOf("0.1"));
  await kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await kubectl(["apply", "-f", manifest]);
  const metadata = { namespace: "berth-system", name: "model" };
  const secret = { apiVersion: "v1", kind: "Secret", metadata };
  const installation = olds.find(({ id }) => id === "berth-system/installation")?.object["data"];
  const map = { ...secret, kind: "ConfigMap", metadata: { ...metadata, name: "installation" } };
  const objects = [
    { ...secret, stringData: { tokenId, tokenSecret } },
    { ...map, data: installation },
  ];
  await kubectl(["apply", "-f", "-"], objects.map((one) => JSON.stringify(one)).join("\n---\n"));
  for (const old of own) await etcd.put(keyOf(old), storedText(old, proxy));
}

/** What has to be otherwise here: where the cluster is, and how long a guest may take. */
function otherwiseOf({ plural, id }: Old, { fingerprint }: RecordingProxy): JsonObject {
  if (plural === "hypervisors") return { tls: { fingerprints: [fingerprint] } };
  return id === "default/stopping" ? { shutdown: { graceSeconds: 20, force: true } } : {};
}

function storedText(old: Old, proxy: RecordingProxy): string {
  const { object } = old;
  const otherwise = otherwiseOf(old, proxy);
  const { metadata, spec, ...rest } = object;
  assert.ok(isJsonObject(metadata) && isJsonObject(spec));
  const { resourceVersion: _version, ...kubeMetadata } = metadata;
  const stored = { ...rest, metadata: kubeMetadata, spec: { ...spec, ...otherwise } };
  return JSON.stringify(stored).replaceAll("https://model.example:8006", proxy.url);
}

async function listOf<Item>({ http }: Stage, plural: string): Promise<Item[]> {
  const deadlineMs = Date.now() + patienceMs;
  for (;;) {
    const reply = await http.ask({ path: `${api}/${plural}` });
    if (reply.status === 200) return bodyOf(reply).items;
    // A server says so for a moment when a CRD has changed.
    const isSoon = reply.status === 429 && Date.now() < deadlineMs;
    assert.ok(isSoon, `${reply.status} ${reply.text}`);
    await sleep(250);
  }
}

async function within(
  wanted: string,
  holds: () => Promise<boolean>,
  found: () => Promise<unknown> = async () => "",
): Promise<void> {
  const deadlineMs = Date.now() + patienceMs;
  while (!(await holds())) {
    if (Date.now() > deadlineMs) assert.fail(`${wanted}: ${JSON.stringify(await found())}`);
    await sleep(500);
  }
}

/** The first form in which an object was stored after 0.1, and when. */
async function firstRewrite(etcd: Etcd, key: string): Promise<JsonObject> {
  let stored = await etcd.get(key);
  while (stored !== undefined && stored.version > 2) {
    stored = await etcd.get(key, stored.revision - 1);
  }
  const object: unknown = JSON.parse(stored?.text ?? "{}");
  assert.ok(stored?.version === 2 && isJsonObject(object), `${key}: ${stored?.version}`);
  return object;
}

/** Nothing may be lost, and nothing acted on, before every Claim was rewritten. */
async function assertClaimsRewritten(stage: Stage): Promise<void> {
  const old = own.filter(({ plural }) => plural === "claims");
  await within("every Claim is rewritten", async () => {
    const claims = await listOf<Claim>(stage, "claims");
    return claims.length >= old.length && !claims.some(({ spec }) => isOldClaim(spec));
  });
  for (const one of old) {
    const rewritten = await firstRewrite(stage.etcd, keyOf(one));
    // cast: Claims, as they are stored.
    assertSame(one.object["spec"] as never, rewritten["spec"] as never);
  }
}

/** Rewriting comes before the first request to the hypervisor that is no read. */
function assertRewrittenFirst({ server, proxy }: Stage): void {
  const claims = new Set(own.filter(({ plural }) => plural === "claims").map(({ id }) => id));
  const updates = server.audited().filter(({ verb, user, objectRef }) => {
    const isClaim = objectRef?.resource === "claims" && claims.has(objectRef.name ?? "");
    return isClaim && verb === "update" && user.username === controllersUser;
  });
  const firsts = [...claims].map((name) => {
    const first = updates.find(({ objectRef }) => objectRef?.name === name);
    return Date.parse(first?.stageTimestamp ?? "");
  });
  const writes = proxy.exchanges.filter(({ method }) => method !== "GET");
  const firstWriteMs = Math.min(...writes.map(({ beginMs }) => beginMs));
  assert.ok(
    Math.max(...firsts) <= firstWriteMs,
    "every Claim is rewritten before anything is done",
  );
}

/** What was sent to the cluster and changes a VM or a volume, as the kept folder has it. */
function writesTo({ exchanges }: RecordingProxy): string[] {
  return exchanges
    .map(({ method, path }) => ({ method, path: path.replaceAll(/^\/api2\/json|\?.*$/g, "") }))
    .filter(({ method, path }) => method !== "GET" && !path.startsWith("/pools"))
    .map(({ method, path }) => `${method} ${path}`);
}

async function openOperations(stage: Stage): Promise<string[]> {
  const vms = await listOf<VirtualMachine>(stage, "virtualmachines");
  const images = await listOf<{ metadata: { name: string }; status?: ImageStatus }>(
    stage,
    "vmimages",
  );
  return [
    ...vms
      .filter(({ status, metadata }) => status?.operation ?? metadata.deletionTimestamp)
      .map(({ metadata }) => metadata.name ?? ""),
    ...images
      .filter(({ status }) => status?.operation ?? status?.copies?.some((one) => one.operation))
      .map(({ metadata }) => metadata.name),
  ];
}

interface ImageStatus {
  readonly operation?: object;
  readonly copies?: readonly { readonly operation?: object }[];
}

async function settle(stage: Stage): Promise<void> {
  const told = (): Promise<VirtualMachine[]> => listOf<VirtualMachine>(stage, "virtualmachines");
  let quietSinceMs = Date.now();
  let writes = -1;
  await within(
    "all open operations are settled",
    async () => {
      const now = writesTo(stage.proxy).length;
      const isOpen = (await openOperations(stage)).length > 0;
      if (isOpen || now !== writes) quietSinceMs = Date.now();
      writes = now;
      return Date.now() - quietSinceMs > quietMs;
    },
    told,
  );
}

async function assertEnd(stage: Stage): Promise<void> {
  assert.deepEqual(extraWrites(writesTo(stage.proxy), kept), []);
  const vms = await listOf<VirtualMachine>(stage, "virtualmachines");
  const failing = (name: string): string | undefined => {
    return vms.find(({ metadata }) => metadata.name === name)?.status?.failure?.category;
  };
  const ready = vms.filter(({ status }) => {
    return status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
  });
  assert.deepEqual(ready.map(({ metadata }) => metadata.name ?? "").toSorted(), wellAtTheEnd);
  assert.equal(failing("missing"), "Missing");
  assert.equal(failing("blocked"), "OrphanedVolumes");
  const names = vms.map(({ metadata }) => metadata.name);
  assert.ok(!names.includes("handing-over") && !names.includes("leaving"), names.join());
  assert.equal(vms.length, 9);
  const claims = await listOf<Claim>(stage, "claims");
  const lost = own
    .filter(({ plural }) => plural === "claims")
    .filter(({ object }) => !claims.some(({ metadata }) => metadata.uid === uidOf(object)));
  assert.deepEqual(
    lost.map(({ object }) => object["spec"]),
    [],
    "no Claim is lost",
  );
}

function uidOf({ metadata }: JsonObject): unknown {
  return isJsonObject(metadata) ? metadata["uid"] : undefined;
}

/** Whoever installs the new program first loses nothing: a field that is unknown is dropped. */
async function assertNothingDone(stage: Stage, replicas: readonly Replica[]): Promise<void> {
  await within("it says that the CRDs are old", async () => {
    return replicas.some((replica) => replica.output().includes("berth crds"));
  });
  await sleep(3_000);
  for (const old of own) {
    assert.equal((await stage.etcd.get(keyOf(old)))?.version, 1, `${old.id} is as 0.1 left it`);
  }
  assert.deepEqual(stage.proxy.exchanges, []);
}

describe("an installation of 0.1 on a real kube-apiserver, in the middle of work", () => {
  test("is upgraded by two replicas without an effect on any VM", async (t) => {
    const stage = await openStage();
    t.after(() => stage.stop());
    await restore(stage);
    await t.test("its objects are what 0.1 stored: its CRDs drop nothing", async () => {
      for (const claim of await listOf<Claim>(stage, "claims")) {
        const old = own.find(({ object }) => uidOf(object) === claim.metadata.uid);
        assert.deepEqual(claim.spec, old?.object["spec"]);
      }
    });
    const kubeconfig = await writeKubeconfig(stage.server, stage.kubectl);
    const replicas = [startReplica(kubeconfig), startReplica(kubeconfig)];
    t.after(() => Promise.all(replicas.map((replica) => replica.kill())));
    await t.test("nothing is done while the CRDs are those of 0.1", () => {
      return assertNothingDone(stage, replicas);
    });
    await stage.kubectl(["apply", "-f", "-"], (await runBerth(["crds"])).stdout);
    await t.test("every Claim is rewritten, and nothing of it is lost", () => {
      return assertClaimsRewritten(stage);
    });
    await t.test("all open operations are settled", () => settle(stage));
    await t.test("the Claims came first", () => assertRewrittenFirst(stage));
    await t.test("nothing was written but what 0.1 itself would have", () => assertEnd(stage));
  });
});
