import assert from "node:assert/strict";
import test, { before, describe } from "node:test";
import { type Berth, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect, type Http } from "./support/http.ts";
import { findKubectls, runKubectl } from "./support/kubectl.ts";
import {
  api,
  apiVersion,
  create,
  declareHypervisor,
  declareImage,
  declareSecret,
  hypervisorOf,
  imageOf,
  machineOf,
  machines,
  patch,
  secretPath,
} from "./support/lab.ts";
import { type RecordingProxy, startRecordingProxy } from "./support/recording-proxy.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./support/simulator.ts";
import "./support/cleanup.ts";

/** What should be said of a machine that cannot be. */
interface Complaint {
  readonly category: string;
  /** What, where and why. */
  readonly says: RegExp;
  /** The first thing that `berth why` names: the deepest cause. */
  readonly deepest: RegExp;
  /** The first thing that it tells to do. */
  readonly todo: RegExp;
}

const hypervisors = `${api}/hypervisors`;
const images = `${api}/namespaces/default/vmimages`;
const wrongToken = "00000000-0000-4000-8000-000000000000";

let simulator: SimulatorProcess;
let door: RecordingProxy;
let berth: Berth;
let http: Http;

async function startAll(): Promise<void> {
  const folder = temporaryFolder("wrong");
  simulator = await startSimulatorProcess();
  door = await startRecordingProxy(simulator);
  berth = await startBerth({ data: folder.path });
  http = connect(berth);
}

async function stopAll(): Promise<void> {
  http.close();
  assert.equal(await berth.stop(), 0);
  await door.close();
  await simulator.stop();
  assertNoTrace(berth.output());
}

describe("a hypervisor that cannot be used", { timeout: 240_000 }, () => {
  before(startAll);

  test("that is not declared at all: named, and used as soon as it is", async () => {
    await declareImage(http, "debian-12", "lab");
    await create(http, machines, machineOf("early"));
    await expectComplaint("early", {
      category: "DependencyNotReady",
      says: /There is no Hypervisor lab\. Create it/,
      deepest: /^1\. hypervisor\.berth\.dev\/lab: NotFound$/,
      todo: /Create it/,
    });
    await declareSecret(http, "lab", { tokenId: simulator.tokenId, tokenSecret: wrongToken });
    await create(http, hypervisors, hypervisorOf("lab", door));
  });

  test("that refuses the token: asked once, and again when the Secret is another", async () => {
    await expectComplaint("early", {
      category: "DependencyNotReady",
      says: /The Hypervisor lab cannot be used: .*401 .*Check tokenId .* and tokenSecret/,
      deepest: /^1\. hypervisor\.berth\.dev\/lab: CredentialsRefused \(PermissionDenied\)$/,
      todo: /pveum user token list/,
    });
    await expectQuiet({ requestsMax: 2, forMs: 4_000 });
    await patch(http, secretPath("lab"), { stringData: { tokenSecret: simulator.tokenSecret } });
    await untilReady("early");
  });

  test("that shows another certificate: nothing is sent to it before that is confirmed", async () => {
    await door.close();
    const port = Number(new URL(door.url).port);
    door = await startRecordingProxy(simulator, port);
    await create(http, machines, machineOf("unproven"));
    await expectComplaint("unproven", {
      category: "DependencyNotReady",
      says: /did not prove who it is.*spec\.tls\.fingerprints/,
      deepest: /^1\. hypervisor\.berth\.dev\/lab: CertificateMismatch \(PermissionDenied\)$/,
      todo: /compare its fingerprint/,
    });
    assert.match(await why("unproven"), new RegExp(`shows the certificate ${door.fingerprint}`));
    assert.equal(door.exchanges.length, 0, "no request, and so no token, went to it");
    const tls = { fingerprints: [door.fingerprint] };
    await patch(http, `${hypervisors}/lab`, { spec: { tls } });
    await untilReady("unproven");
  });

  test("that does not answer: waited for, with growing patience", async () => {
    const dead = await startRecordingProxy(simulator);
    await dead.close();
    await declareSecret(http, "dead", simulator);
    await create(http, hypervisors, hypervisorOf("dead", dead));
    await create(http, machines, machineOf("far", { hypervisorRef: { name: "dead" } }));
    await expectComplaint("far", {
      category: "NetworkError",
      says: /The Hypervisor dead cannot be used: .*not reachable/,
      deepest: /^1\. hypervisor\.berth\.dev\/dead: NetworkError$/,
      todo: /Check that the hypervisor is up/,
    });
    assert.match(await why("far"), /next attempt in \d+s/);
    assert.match(await why("far"), /connect ECONNREFUSED/);
    await remove("far");
    await http.ask({ method: "DELETE", path: `${hypervisors}/dead` });
  });

  test("that another object stands for already: refused, and the other one is named", async () => {
    await declareSecret(http, "twin", simulator);
    await create(http, hypervisors, hypervisorOf("twin", simulator));
    await create(http, machines, machineOf("twice", { hypervisorRef: { name: "twin" } }));
    await expectComplaint("twice", {
      category: "DependencyNotReady",
      says: /The Hypervisor lab already stands for this system/,
      deepest: /^1\. hypervisor\.berth\.dev\/twin: SystemClaimedTwice \(IdentityConflict\)$/,
      todo: /Use the Hypervisor lab/,
    });
    await patch(http, `${machines}/twice`, { spec: { hypervisorRef: { name: "lab" } } });
    await untilReady("twice");
    const names = await machinesThere();
    assert.deepEqual(names, ["early", "twice", "unproven"], "nothing else was made");
  });

  test("and all of it ends without a trace of the program's own", stopAll);
});

/** A machine that cannot be made, and how somebody mends it. */
interface Wrong extends Complaint {
  readonly name: string;
  readonly spec: object;
  mend(): Promise<unknown>;
}

const wrongs: readonly Wrong[] = [
  {
    name: "taken",
    spec: { externalId: "500" },
    category: "IdentityConflict",
    says: /under the id 500 on lab is not provably this object's.*Choose another spec\.externalId/,
    deepest: /^1\. virtualmachine\.berth\.dev\/taken: IdentityConflict$/,
    todo: /Choose another spec\.externalId, or move what stands there/,
    mend: () => simulator.write("DELETE", "/nodes/pve1/qemu/500"),
  },
  {
    name: "leftover",
    spec: { externalId: "501", placement: { node: "pve1" } },
    category: "OrphanedVolumes",
    says: /^Volumes of an earlier machine stand under the id 501: local-zfs:vm-501-disk-0\. /,
    deepest: /^1\. virtualmachine\.berth\.dev\/leftover: OrphanedVolumes$/,
    todo: /berth orphans destroy local-zfs:vm-501-disk-0/,
    mend: async () => {
      const volume = "local-zfs:vm-501-disk-0";
      const path = `/nodes/pve1/storage/local-zfs/content/${encodeURIComponent(volume)}`;
      await simulator.write("DELETE", path);
      await until(async () => !(await volumesThere()).includes(volume), "the end of the volume");
      // Without a person's word that it is gone, it is believed after ten minutes.
      const annotations = { "berth.dev/reconcile-at": "now" };
      await patch(http, `${api}/namespaces/default/virtualmachines/leftover`, {
        metadata: { annotations },
      });
    },
  },
  {
    name: "imageless",
    spec: { source: { image: { name: "unknown" } } },
    category: "ImageNotFound",
    says: /There is no VMImage unknown in the namespace default/,
    deepest: /^1\. vmimage\.berth\.dev\/unknown: NotFound$/,
    todo: /Create it/,
    mend: () => declareImage(http, "unknown", "lab"),
  },
  {
    name: "fileless",
    spec: { source: { image: { name: "gone" } }, placement: { node: "pve1" } },
    category: "ImageNotFound",
    says: /disks\[root\]: local:import\/gone\.qcow2 is not on pve1\. Put it there, correct its name/,
    deepest: /^1\. virtualmachine\.berth\.dev\/fileless: ImageNotFound$/,
    todo: /Put it there, correct its name, or place the machine on the node/,
    mend: () => {
      const sizes = { size: 2 ** 28, virtualSize: 2 ** 30, sha256: "" };
      const file = { storage: "local", filename: "gone.qcow2", ...sizes };
      return simulator.hook("fixture", { imports: [file] });
    },
  },
  {
    name: "storageless",
    spec: { disks: [{ name: "root", size: "4Gi", storage: "fast" }] },
    category: "ConfigurationError",
    says: /has the storage fast\. .*The storages are: local, local-zfs, shared\.$/,
    deepest: /^1\. virtualmachine\.berth\.dev\/storageless: ConfigurationError$/,
    todo: /Correct spec\.disks\[\]\.storage, or make it there/,
    mend: () => {
      const storage = { storage: "fast", type: "dir", path: "/mnt/fast", content: "images" };
      return simulator.write("POST", "/storage", storage);
    },
  },
  {
    name: "bridgeless",
    spec: { networks: [{ name: "eth0", networkRef: { name: "lan" } }] },
    category: "ConfigurationError",
    says: /^The bridge vmbr9 does not exist on pve\d, or the token may not use it\. /,
    deepest: /^1\. virtualmachine\.berth\.dev\/bridgeless: ConfigurationError$/,
    todo: /Name a bridge of the node/,
    mend: () => patch(http, `${api}/vmnetworks/lan`, { spec: { bridge: "vmbr0" } }),
  },
];

describe("a machine that cannot be made", { timeout: 300_000 }, () => {
  before(async () => {
    await startAll();
    await declareHypervisor(http, "lab", { ...simulator, ...placeOf(door) });
    await declareImage(http, "debian-12", "lab");
    await create(http, images, imageOf("gone", "lab", "local:import/gone.qcow2"));
    const lan = { apiVersion, kind: "VMNetwork", metadata: { name: "lan" } };
    await create(http, `${api}/vmnetworks`, { ...lan, spec: { bridge: "vmbr9" } });
    await simulator.write("POST", "/nodes/pve1/qemu", { vmid: "500", name: "stranger" });
    const earlier = { vmid: "501", name: "earlier", scsi0: "local-zfs:1" };
    await simulator.write("POST", "/nodes/pve1/qemu", earlier);
    await until(async () => (await volumesThere()).length === 1, "the earlier machine's disk");
    await simulator.hook("orphan-volumes", { vmid: 501 });
    for (const { name, spec } of wrongs) await create(http, machines, machineOf(name, spec));
  });

  for (const wrong of wrongs) {
    test(`${wrong.name}: one clear complaint, and what to do`, async () => {
      await expectComplaint(wrong.name, wrong);
    });
  }

  test("nothing was touched meanwhile, and nobody is asked over and over", async () => {
    await expectQuiet({ requestsMax: 60, forMs: 4_000 });
    assert.deepEqual(
      door.exchanges.filter(({ method }) => method !== "GET").map(({ path }) => path),
      ["/api2/json/pools"],
      "nothing was written but which run may act",
    );
    assert.deepEqual(await machinesThere(), ["stranger"]);
    assert.deepEqual(await volumesThere(), ["local-zfs:vm-501-disk-0"]);
  });

  test("all go on by themselves once they are mended", async () => {
    for (const wrong of wrongs) await wrong.mend();
    for (const { name } of wrongs) await untilReady(name);
    const names = wrongs.map(({ name }) => name).toSorted();
    assert.deepEqual(await machinesThere(), names);
  });

  test("a node that is down is waited for", async () => {
    await simulator.hook("crash-node", { node: "pve3" });
    await until(async () => (await healthOf("pve3")) !== "Healthy", "the node is still healthy");
    await create(http, machines, machineOf("down", { placement: { node: "pve3" } }));
    await expectComplaint("down", {
      category: "NodeUnhealthy",
      says: /No node can take the machine now \(not healthy: pve3\)/,
      deepest: /^1\. virtualmachine\.berth\.dev\/down: NodeUnhealthy$/,
      todo: /See to the node/,
    });
    assert.match(await why("down"), /in its own words: pve3: 595/);
    assert.match(await why("down"), /next attempt in \d+s/);
    await simulator.hook("start-node", { node: "pve3" });
    await untilReady("down");
  });

  test("a disk that is smaller than what fills it: said, kept, and mended by a larger one", async () => {
    const disks = (size: string): object => ({ disks: [{ name: "root", size }] });
    await create(http, machines, machineOf("small", disks("2Gi")));
    await expectComplaint("small", {
      category: "ConfigurationError",
      says: /A disk cannot be smaller than what fills it: spec\.disks\[root\]\.size/,
      deepest: /^1\. virtualmachine\.berth\.dev\/small: ConfigurationError$/,
      todo: /Declare it at least so large/,
    });
    await patch(http, `${machines}/small`, { spec: disks("5Gi") });
    await untilReady("small");
    const type = "application/merge-patch+json";
    const path = `${machines}/small`;
    const refused = await http.ask({ method: "PATCH", path, type, body: { spec: disks("3Gi") } });
    assert.equal(refused.status, 422);
    assert.match(bodyOf(refused).message, /a disk cannot shrink/);
  });

  test("and all of it ends without a trace of the program's own", stopAll);
});

function placeOf({ url, fingerprint }: RecordingProxy): { url: string; fingerprint: string } {
  return { url, fingerprint };
}

/** One complaint, the same wherever one looks, with the deepest cause first and what to do. */
async function expectComplaint(name: string, complaint: Complaint): Promise<void> {
  const { category, says, deepest, todo } = complaint;
  let found: Shown | undefined;
  await until(
    async () => {
      found = await read(name);
      const { failure, conditions = [] } = found.status ?? {};
      const message = conditions.find(({ type }) => type === "Ready")?.message ?? "";
      return failure?.category === category && says.test(message);
    },
    () => `${name}: ${JSON.stringify(found?.status?.conditions)}`,
  );
  const { conditions = [] } = found?.status ?? {};
  const summaries = ["Ready", "Synced", "Reconciling", "Stalled"];
  const told = conditions.filter(({ type }) => summaries.includes(type));
  assert.equal(new Set(told.map(({ message }) => message)).size, 1, JSON.stringify(told));
  const text = await why(name);
  const lines = text.split("\n");
  assert.match(lines.find((line) => /^\d\. /.test(line)) ?? "", deepest, text);
  assert.match(lines.find((line) => line.includes("What to do:")) ?? "", todo, text);
  assert.match(text, /More about it: docs\/troubleshooting\/[a-z-]+\.md|: NotFound/, text);
  for (const shown of [text, ...(await descriptions(name))]) {
    assert.match(shown, new RegExp(category));
    assertNoTrace(shown);
  }
}

/** As `berth` and as a kubectl on this machine describe it. */
async function descriptions(name: string): Promise<string[]> {
  const { stdout } = await berthSays("describe", "vm", name);
  const [kubectl] = findKubectls();
  if (kubectl === undefined) return [stdout];
  const flags = ["--kubeconfig", berth.kubeconfig, "--cache-dir", `${berth.data}/kubectl`];
  const ran = await runKubectl(kubectl, [...flags, "describe", "vm", name]);
  return [stdout, ran.stdout];
}

async function why(name: string): Promise<string> {
  const { code, stdout, stderr } = await berthSays("why", `vm/${name}`);
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
}

function berthSays(...args: string[]): ReturnType<typeof runBerth> {
  return runBerth([...args, "--kubeconfig", berth.kubeconfig]);
}

function assertNoTrace(text: string): void {
  assert.doesNotMatch(text, /\n\s+at .*:\d+:\d+|\[object |\bundefined\b|\bNaN\b/);
}

/** For a while, few requests come but for the look at everything that each tick makes. */
async function expectQuiet(limit: { requestsMax: number; forMs: number }): Promise<void> {
  const asked = (): number => {
    return door.exchanges.filter(({ path }) => !path.endsWith("/cluster/resources")).length;
  };
  const earlier = asked();
  await sleep(limit.forMs);
  const count = asked() - earlier;
  assert.ok(count <= limit.requestsMax, `${count} requests in ${limit.forMs} ms`);
}

interface Shown {
  readonly status?: {
    readonly failure?: { readonly category: string };
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly message: string;
    }[];
  };
}

async function read(name: string): Promise<Shown> {
  return bodyOf(await http.ask({ path: `${machines}/${name}` }));
}

async function untilReady(name: string): Promise<void> {
  let found: Shown | undefined;
  await until(
    async () => {
      found = await read(name);
      const ready = found.status?.conditions?.find(({ type }) => type === "Ready");
      return ready?.status === "True" && found.status?.failure === undefined;
    },
    () => `${name} did not become Ready: ${JSON.stringify(found?.status)}`,
  );
}

async function remove(name: string): Promise<void> {
  const path = `${machines}/${name}`;
  await http.ask({ method: "DELETE", path });
  await until(async () => (await http.ask({ path })).status === 404, `${name} did not go`);
}

/** The names of all machines on the hypervisor, as its nodes say. */
async function machinesThere(): Promise<string[]> {
  const nodes = await Promise.all(
    ["pve1", "pve2", "pve3"].map((node) => simulator.get(`/nodes/${node}/qemu`)),
  );
  return nodes
    .flat()
    .map(({ name }: { name: string }) => name)
    .toSorted();
}

async function healthOf(node: string): Promise<string | undefined> {
  const { status } = bodyOf(await http.ask({ path: `${hypervisors}/lab` }));
  return status.nodes.find(({ name }: { name: string }) => name === node)?.health;
}

async function volumesThere(): Promise<string[]> {
  const nodes = await Promise.all(
    ["pve1", "pve2", "pve3"].map((node) => {
      return simulator.get(`/nodes/${node}/storage/local-zfs/content?content=images`);
    }),
  );
  return nodes.flat().map(({ volid }: { volid: string }) => volid);
}

async function until(
  condition: () => Promise<boolean>,
  complaint: string | (() => string),
): Promise<void> {
  const deadlineMs = Date.now() + 90_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadlineMs, typeof complaint === "string" ? complaint : complaint());
    await sleep(200);
  }
}

function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
