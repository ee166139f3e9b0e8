import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { berthKinds } from "../../src/api/index.ts";
import { createSchemaRunners } from "../../src/apiserver/admission/index.ts";
import { cloneJson } from "../../src/kernel/json.ts";
import type { KubeObject } from "../../src/kernel/object.ts";
import { fieldErrorMessage } from "../../src/kernel/status.ts";
import { objectsOf as objectsOfCase, type Case } from "../kinds/case.ts";
import { cases } from "../kinds/cases.ts";
import { repository, runBerth } from "./support/berth.ts";
import { bodyOf, connect, type Http, type Reply } from "./support/http.ts";
import { type Audited, startKubeApiserver } from "./support/kube-apiserver.ts";
import {
  controllersUser,
  kubectlOf,
  lease,
  manifest,
  objectsOf,
  sleep,
  startWorld,
  until,
  type World,
} from "./support/kube-world.ts";
import "./support/cleanup.ts";

const isThorough = process.env["BERTH_REQUIRE_REAL"] === "1";
/** A takeover takes about a minute, so several worlds wait for theirs at the same time. */
const worldsMax = isThorough ? 3 : 1;
/** In each world: so often while machines come to be, and once more while they go. */
const killsMax = isThorough ? 3 : 1;
const machinesPerRound = 4;
const statusWritesMax = 12;
const restMs = 60_000;
const api = "/apis/berth.dev/v1alpha1";
const machines = `${api}/namespaces/default/virtualmachines`;

const runnerOf = createSchemaRunners();

describe("on a real kube-apiserver", { concurrency: true }, () => {
  test("every CRD is established without a warning, and every rule judges as ours does", async (t) => {
    const server = await startKubeApiserver();
    t.after(() => server.stop());
    const kubectl = kubectlOf(server);
    await kubectl(["apply", "-f", "-"], (await runBerth(["crds", "--all"])).stdout);
    await kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    const http = connect(server);
    t.after(() => http.close());
    await until("every kind is served", () => areServed(http));
    for (const one of cases) await judge(http, one);
    t.diagnostic(`${berthKinds.length} kinds, ${cases.length} cases`);
  });

  test("the controllers do all that they do with the rights of the manifest", async (t) => {
    const world = await startWorld();
    t.after(() => world.stop());
    await t.test("the README's first machine becomes Ready, in few writes", async (sub) => {
      await world.kubectl(["apply", "-f", join(repository, "examples", "first-vm.yaml")]);
      await untilReady(world, ["first"]);
      const writes = statusWrites(world, "first");
      sub.diagnostic(`${writes} status writes from apply to Ready`);
      assert.ok(writes > 0 && writes <= statusWritesMax, `${writes} status writes`);
    });
    await t.test("kubectl get and describe read well", () => readsWell(world));
    await t.test("at rest nothing is written but the Lease", () => restsWell(world));
    await t.test("a Secret of a machine is read where that was granted", () => readsSecret(world));
    await t.test("a deleted machine leaves nothing on the hypervisor", async () => {
      await world.kubectl(["delete", "vm", "first", "secretive"]);
      await compare(world, []);
    });
    await t.test("one that never came to be is deleted as well", () => deletesHomeless(world));
    await t.test("no right was missing, and none is idle", () => usesItsRights(world));
    await t.test("they go on when the server was away", async () => {
      await world.server.restart();
      await declare(world, [machine("later")]);
      await untilReady(world, ["later"]);
      await world.kubectl(["delete", "vm", "later"]);
    });
    await t.test("deleting the kind itself destroys no machine", () => survivesItsKind(world));
    await t.test("it goes on when the kind comes back, until all go", () => {
      return findsItsKindAgain(world);
    });
    await t.test("a replica that is asked to stop gives its lease back", () => handsOver(world));
  });

  for (let number = 1; number <= worldsMax; number++) {
    const name = `the leader is killed ${killsMax + 1} times: as many machines as declared`;
    test(`${name} (${number} of ${worldsMax})`, async (t) => {
      const world = await startWorld();
      t.after(() => world.stop());
      await survivesKills(world, number);
    });
  }
});

// Rules

async function areServed(http: Http): Promise<boolean> {
  const replies = await Promise.all(
    berthKinds.map(({ plural }) => http.ask({ path: `${api}/${plural}` })),
  );
  return replies.every(({ status }) => status === 200);
}

/** Asks the real server for the verdict that our own gives in the suite of the kinds. */
async function judge(http: Http, one: Case): Promise<void> {
  const { object, previous } = objectsOfCase(one);
  const collection = collectionOf(object);
  const at = `${collection}/${object.metadata.name ?? ""}`;
  const options = "dryRun=All&fieldValidation=Strict";
  const label = `${object.kind}: ${one.name}`;
  if (previous === undefined) {
    const path = `${collection}?${options}`;
    return compareVerdict(label, one, await http.ask({ method: "POST", path, body: object }));
  }
  const { metadata } = bodyOf(await stored(http, previous, collection));
  const body = { ...object, metadata: { ...object.metadata, ...metadata } };
  // Only one of the two ways of writing shows a change of the status.
  const isStatus = JSON.stringify(object["status"]) !== JSON.stringify(previous["status"]);
  const path = `${at}${isStatus ? "/status" : ""}?${options}`;
  const reply = await http.ask({ method: "PUT", path, body });
  await http.ask({ method: "DELETE", path: at });
  compareVerdict(label, one, reply);
}

async function stored(http: Http, previous: KubeObject, collection: string): Promise<Reply> {
  const created = await http.ask({ method: "POST", path: collection, body: previous });
  assert.equal(created.status, 201, created.text);
  if (previous["status"] === undefined) return created;
  const { metadata } = bodyOf(created);
  const path = `${collection}/${metadata.name}/status`;
  const written = await http.ask({ method: "PUT", path, body: { ...previous, metadata } });
  assert.equal(written.status, 200, written.text);
  return written;
}

/** The whole refusal, sentence by sentence and in the same order. */
function compareVerdict(label: string, one: Case, reply: Reply): void {
  const expected = verdictOf(one);
  assert.equal(reply.status < 300, expected.length === 0, `${label}: ${reply.text}`);
  const causes: { field: string; message: string }[] = bodyOf(reply).details?.causes ?? [];
  const found = causes.map(({ field, message }) => `${field}: ${message}`);
  assert.deepEqual(found, expected, label);
}

/** As the embedded server judges. */
function verdictOf(one: Case): string[] {
  const { object, previous } = objectsOfCase(one);
  const runner = runnerOf(kindOf(object));
  const admitted = (given: KubeObject): KubeObject => {
    const copy = cloneJson(given);
    runner.prune(copy);
    runner.applyDefaults(copy);
    return copy;
  };
  const errors = runner.validate(admitted(object), previous && admitted(previous));
  return errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`);
}

function collectionOf(object: KubeObject): string {
  const { namespaced, plural } = kindOf(object);
  return `${api}${namespaced ? "/namespaces/default" : ""}/${plural}`;
}

function kindOf(object: KubeObject): (typeof berthKinds)[number] {
  const found = berthKinds.find((candidate) => candidate.kind === object.kind);
  assert.ok(found, `${object.kind} is a kind of ours`);
  return found;
}

// One machine

function statusWrites({ server }: World, name: string): number {
  return server.audited().filter(({ user, objectRef }) => {
    const isStatus =
      objectRef?.resource === "virtualmachines" && objectRef.subresource === "status";
    return isStatus && objectRef.name === name && user.username === controllersUser;
  }).length;
}

async function readsWell(world: World): Promise<void> {
  const [head = "", row = ""] = (await world.kubectl(["get", "vm"])).split("\n");
  assert.match(head, /^NAME +HYPERVISOR +NODE +ID +POWER +ADDRESS +SYNCED +READY +REASON +AGE$/);
  assert.match(row, /^first +demo +pve\d +1\d{3} +Running +True +True +Succeeded +\S+$/);
  const described = await world.kubectl(["describe", "vm", "first"]);
  assert.match(described, /Message: +The machine stands and runs\./);
  assert.match(described, /Normal +Succeeded .* The machine is as declared\./);
}

/** Only what the controllers write: the server has Leases and Events of its own. */
async function restsWell(world: World): Promise<void> {
  // A guest answers some seconds after it was started: what it says is written once more.
  await until("the guest's agent has answered", async () => {
    const { status } = bodyOf(await world.http.ask({ path: `${machines}/first` }));
    return status?.addresses?.length > 0;
  });
  const before = world.server.audited().length;
  await sleep(restMs);
  const written = world.server.audited().slice(before).filter(isOfControllers).filter(isWrite);
  assert.ok(written.length > 0, "the lease is renewed");
  const others = written.filter(({ objectRef }) => objectRef?.resource !== "leases");
  assert.deepEqual(others.map(rightOf), []);
}

const secretOfMachine = {
  apiVersion: "v1",
  kind: "Secret",
  metadata: { namespace: "default", name: "password" },
  stringData: { passwordHash: "$6$rounds=5000$salt$hash" },
};

async function readsSecret(world: World): Promise<void> {
  await world.kubectl(["apply", "-f", "-"], JSON.stringify(secretOfMachine));
  const user = { name: "debian", passwordHashSecretRef: { name: "password" } };
  const spec = { ...machine("secretive").spec, cloudInit: { user }, externalId: "1042" };
  await declare(world, [{ ...machine("secretive"), spec }]);
  await untilReason(world, "secretive", /may not read the Secret default\/password: .*cannot get/);
  const account = "--serviceaccount=berth-system:berth-controller";
  const binding = ["rolebinding", "berth-machine-secrets", "--clusterrole=berth-machine-secrets"];
  await world.kubectl(["create", ...binding, "-n", "default", account]);
  await untilReady(world, ["secretive"]);
}

async function deletesHomeless(world: World): Promise<void> {
  const spec = { ...machine("homeless").spec, hypervisorRef: { name: "nowhere" } };
  await declare(world, [{ ...machine("homeless"), spec }]);
  await untilReason(world, "homeless", /nowhere/);
  await world.kubectl(["delete", "vm", "homeless"]);
}

// Rights

function isOfControllers({ user }: Audited): boolean {
  return user.username === controllersUser;
}

function isWrite({ verb }: Audited): boolean {
  return !["get", "list", "watch"].includes(verb);
}

function forbidden({ server }: World): string[] {
  return server
    .audited()
    .filter((request) => isOfControllers(request) && request.responseStatus?.code === 403)
    .map((request) => `${rightOf(request)} in ${request.objectRef?.namespace ?? "the cluster"}`);
}

/** "berth.dev/claims update" */
function rightOf({ verb, objectRef }: Audited): string {
  const { apiGroup = "", resource = "", subresource } = objectRef ?? {};
  return `${apiGroup}/${resource}${subresource === undefined ? "" : `/${subresource}`} ${verb}`;
}

/** Rights for what a quiet run does not meet, and what that is. */
const rarelyUsed: Record<string, string> = {
  "berth.dev/hypervisors get": "a finalizer was added by somebody else at the same moment",
  "berth.dev/vmimages get": "the same",
  "berth.dev/claims get": "a reply was lost, or the copy of the ledger may be old",
  "berth.dev/orphans create": "something was found that nothing declares",
  "berth.dev/orphans delete": "it is gone, or declared",
  "berth.dev/orphans/status update": "what is known of it, and what was decided about it",
  "berth.dev/virtualmachines create": "a person adopts a machine that nothing declares",
  "/events patch": "the same thing happened to an object again",
};

function usesItsRights(world: World): void {
  assert.deepEqual([...new Set(forbidden(world))], ["/secrets get in default"]);
  const used = new Set(world.server.audited().filter(isOfControllers).map(rightOf));
  const rules = objectsOf(manifest).flatMap((object) => object.rules ?? []);
  const granted: string[] = rules.flatMap(({ apiGroups, resources, verbs }) => {
    return apiGroups.flatMap((group: string) =>
      resources.flatMap((resource: string) => {
        return verbs.map((verb: string) => `${group}/${resource} ${verb}`);
      }),
    );
  });
  const idle = granted.filter((right) => !used.has(right) && rarelyUsed[right] === undefined);
  assert.deepEqual(idle, []);
}

// The kind goes

async function survivesItsKind(world: World): Promise<void> {
  const names = ["one", "two"];
  await declare(world, names.map(machine));
  await untilReady(world, names);
  const before = await standing(world);
  await world.kubectl(["delete", "crd", "virtualmachines.berth.dev"]);
  assert.deepEqual(await standing(world), before, "they stand and run as before");
  const claims = bodyOf(await world.http.ask({ path: `${api}/claims` })).items;
  const states = claims.map((claim: { spec: { owner: { name: string }; state: string } }) => {
    return [claim.spec.owner.name, claim.spec.state];
  });
  const kept = states.filter(([name]: [string]) => names.includes(name));
  assert.deepEqual(kept.toSorted(), [
    ["one", "Released"],
    ["two", "Released"],
  ]);
}

/** The controllers are not restarted: they find the kind again by themselves. */
async function findsItsKindAgain(world: World): Promise<void> {
  const crds = (await runBerth(["crds"])).stdout;
  await world.kubectl(["apply", "-f", "-"], crds);
  await world.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await declare(world, [machine("three")]);
  await untilReady(world, ["three"]);
  const before = await standing(world);
  await world.kubectl(["delete", "-f", "-"], crds);
  assert.deepEqual(await standing(world), before, "it stands and runs without any kind of ours");
  const path = "/api/v1/namespaces/berth-system/secrets/demo";
  const { metadata } = bodyOf(await world.http.ask({ path }));
  assert.equal(metadata.finalizers, undefined, "the Secret is not held any more");
}

async function handsOver(world: World): Promise<void> {
  const leader = await world.leader();
  assert.equal(await leader.stop(), 0, leader.output());
  const [other] = world.replicas.filter((replica) => replica !== leader);
  assert.equal(await world.leader(), other);
}

// Kills

async function survivesKills(world: World, seed: number): Promise<void> {
  const watching = watchForDoubles(world);
  let declared: string[] = [];
  for (let round = 0; round < killsMax; round++) {
    const fresh = Array.from({ length: machinesPerRound }, (_, at) => `vm-${round}-${at}`);
    await declare(world, fresh.map(machine));
    const gone = declared.slice(0, machinesPerRound / 2);
    for (const name of gone)
      await world.http.ask({ method: "DELETE", path: `${machines}/${name}` });
    declared = [...declared.slice(gone.length), ...fresh];
    await untilWorking(world);
    // Another moment in each world and round, over the few seconds that the work takes.
    await sleep((seed * 700 + round * 1100) % 3000);
    await world.killLeader();
  }
  await untilReady(world, declared);
  await until("what was deleted is gone", async () => {
    return (await listed(world)).length === declared.length;
  });
  await compare(world, declared);
  await world.http.ask({ method: "DELETE", path: machines });
  await untilWorking(world);
  await world.killLeader();
  await until("all machines are gone", async () => (await listed(world)).length === 0);
  await compare(world, []);
  assert.deepEqual(await watching.end(), [], "never two machines of one name");
  assert.deepEqual(forbidden(world), []);
  const { spec } = bodyOf(await world.http.ask({ path: lease }));
  assert.ok(spec.leaseTransitions > killsMax, `${spec.leaseTransitions} takeovers`);
}

/** Something has begun to happen on the hypervisor since now. */
async function untilWorking(world: World): Promise<void> {
  const before = JSON.stringify(await standing(world));
  await until("the leader works", async () => JSON.stringify(await standing(world)) !== before);
}

/** Looks all the time whether two machines of one name stand. */
function watchForDoubles(world: World): { end(): Promise<string[]> } {
  const doubles = new Set<string>();
  const ending = new AbortController();
  const watch = async (): Promise<void> => {
    while (!ending.signal.aborted) {
      const names = (await standing(world)).map(({ name }) => name);
      for (const name of names) {
        if (names.indexOf(name) !== names.lastIndexOf(name)) doubles.add(name);
      }
      await sleep(500);
    }
  };
  const watching = watch();
  return {
    end: async () => {
      ending.abort();
      await watching;
      return [...doubles];
    },
  };
}

// Machines, declared and real

interface Listed {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status?: { readonly conditions?: readonly { type: string; status: string }[] };
}

function machine(name: string): { metadata: { name: string }; spec: Record<string, unknown> } {
  const object = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name },
    spec: {
      hypervisorRef: { name: "demo" },
      source: { image: { name: "debian-12" } },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      disks: [{ name: "root", size: "4Gi" }],
      shutdown: { graceSeconds: 5, force: true },
    },
  };
  return object;
}

/** With the image that they come from, which may be there already. */
async function declare(world: World, objects: readonly object[]): Promise<void> {
  const [image] = objectsOf(join(repository, "examples", "first-vm.yaml"));
  const texts = [image, ...objects].map((object) => JSON.stringify(object));
  await world.kubectl(["apply", "-f", "-"], texts.join("\n---\n"));
}

async function listed({ http }: World): Promise<Listed[]> {
  return bodyOf(await http.ask({ path: machines })).items;
}

async function untilReady(world: World, names: readonly string[]): Promise<void> {
  let unready: unknown[] = [];
  const areReady = async (): Promise<boolean> => {
    const items = await listed(world);
    const ready = items.filter(isReady).map(({ metadata }) => metadata.name);
    unready = items
      .filter((item) => !isReady(item))
      .map(({ metadata, status }) => [metadata, status]);
    return names.every((name) => ready.includes(name));
  };
  await until(`${names.join(", ")} become Ready`, areReady, () => JSON.stringify(unready));
}

/** Waits until somebody who looks at the machine is told why it is not Ready. */
async function untilReason(world: World, name: string, why: RegExp): Promise<void> {
  let told = "";
  const isTold = async (): Promise<boolean> => {
    const { status } = bodyOf(await world.http.ask({ path: `${machines}/${name}` }));
    told = JSON.stringify(status?.conditions ?? []);
    return why.test(told);
  };
  await until(`${name} says why: ${why}`, isTold, () => told);
}

function isReady({ metadata, status }: Listed): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  const ready = status?.conditions?.find((condition) => condition.type === "Ready");
  return ready?.status === "True";
}

interface Standing {
  readonly node: string;
  readonly vmid: number;
  readonly name: string;
  readonly status: string;
}

/** Asked of each node: the cluster's own list may lag behind by ten seconds. */
async function standing({ simulator }: World): Promise<Standing[]> {
  const found: Standing[] = [];
  for (const node of ["pve1", "pve2", "pve3"]) {
    for (const { vmid, name, status } of await simulator.get(`/nodes/${node}/qemu`)) {
      found.push({ node, vmid, name, status });
    }
  }
  return found;
}

/** What stands on the hypervisor is what is declared: no more machines, no more volumes. */
async function compare(world: World, declared: readonly string[]): Promise<void> {
  const names = (await standing(world)).map(({ name }) => name);
  const volumes: string[] = [];
  for (const node of ["pve1", "pve2", "pve3"]) {
    const path = `/nodes/${node}/storage/local-zfs/content?content=images`;
    const content = await world.simulator.get(path);
    volumes.push(...content.map((volume: { volid: string }) => volume.volid));
  }
  assert.deepEqual(names.toSorted(), declared.toSorted());
  assert.equal(volumes.length, declared.length, `volumes: ${volumes.join(", ")}`);
}
