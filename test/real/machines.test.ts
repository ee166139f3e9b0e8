import assert from "node:assert/strict";
import test from "node:test";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect, type Http } from "./support/http.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./support/simulator.ts";
import "./support/cleanup.ts";

const kills = process.env["BERTH_REQUIRE_REAL"] === "1" ? 50 : 10;
const api = "/apis/berth.dev/v1alpha1";
const machines = `${api}/namespaces/default/virtualmachines`;

function machine(name: string): Record<string, unknown> {
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name },
    spec: {
      hypervisorRef: { name: "lab" },
      source: { image: { name: "debian-12" } },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      disks: [{ name: "root", size: "4Gi" }],
      shutdown: { graceSeconds: 5, force: true },
    },
  };
}

async function declareLab(http: Http, simulator: SimulatorProcess): Promise<void> {
  const secret = { tokenId: simulator.tokenId, tokenSecret: simulator.tokenSecret };
  await create(http, "/api/v1/namespaces/berth-system/secrets", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "lab" },
    stringData: secret,
  });
  await create(http, `${api}/hypervisors`, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name: "lab" },
    spec: {
      type: "proxmox",
      endpoints: [simulator.url],
      credentials: { secretRef: { namespace: "berth-system", name: "lab" } },
      tls: { fingerprints: [simulator.fingerprint] },
      idRange: { first: 1000, last: 1999 },
      defaults: { storage: "local-zfs", imageStorage: "local" },
      limits: { pollSeconds: 1 },
    },
  });
  await create(http, `${api}/namespaces/default/vmimages`, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { name: "debian-12" },
    spec: {
      source: {
        volume: {
          hypervisorRef: { name: "lab" },
          id: "local:import/debian-12-generic-amd64.qcow2",
        },
      },
      format: "qcow2",
    },
  });
}

async function create(http: Http, path: string, body: unknown): Promise<void> {
  const reply = await http.ask({ method: "POST", path, body });
  assert.equal(reply.status, 201, reply.text);
}

test(`kill -9 of berth up, ${kills} times during creations and deletions: as many machines as declared`, async (t) => {
  const folder = temporaryFolder("machines");
  t.after(() => folder.remove());
  const simulator = await startSimulatorProcess();
  t.after(() => simulator.stop());
  let berth = await startBerth({ data: folder.path });
  let http = connect(berth);
  await declareLab(http, simulator);
  for (let round = 0; round < kills; round++) {
    // Twenty machines over the rounds; every third is deleted again while others come to be.
    if (round < 20) await create(http, machines, machine(`vm-${round}`));
    if (round % 3 === 2) await http.ask({ method: "DELETE", path: `${machines}/vm-${round - 2}` });
    await sleep(100 + ((round * 137) % 900));
    http.close();
    await berth.kill();
    berth = await startBerth({ data: folder.path });
    http = connect(berth);
  }
  t.after(async () => {
    http.close();
    await berth.stop();
  });
  const declared = await settle(http);
  await compare(simulator, { berth, declared });
  // Everything goes away cleanly: not a machine, not a disk stays.
  await http.ask({ method: "DELETE", path: machines });
  await until(async () => (await namesOf(http)).length === 0, "the machines did not go");
  await compare(simulator, { berth, declared: [] });
});

async function namesOf(http: Http): Promise<string[]> {
  const list = bodyOf(await http.ask({ path: machines }));
  return list.items.map((item: { metadata: { name: string } }) => item.metadata.name).toSorted();
}

/** Waits until every declared machine is Ready and every deleted one gone. */
async function settle(http: Http): Promise<string[]> {
  let shown = "";
  await until(
    async () => {
      const list = bodyOf(await http.ask({ path: machines }));
      const unready = list.items.filter((item: Listed) => !isReady(item));
      shown = JSON.stringify(unready.map((item: Listed) => [item.metadata.name, item.status]));
      return unready.length === 0;
    },
    () => `not all became Ready: ${shown}`,
  );
  return await namesOf(http);
}

interface Listed {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status?: { readonly conditions?: readonly { type: string; status: string }[] };
}

function isReady({ metadata, status }: Listed): boolean {
  if (metadata.deletionTimestamp !== undefined) return false;
  const ready = status?.conditions?.find((condition) => condition.type === "Ready");
  return ready?.status === "True";
}

/** What stands on the hypervisor is what is declared: no more machines, no more volumes. */
async function compare(
  simulator: SimulatorProcess,
  wanted: { readonly berth: Berth; readonly declared: readonly string[] },
): Promise<void> {
  const names: string[] = [];
  const volumes: string[] = [];
  for (const node of ["pve1", "pve2", "pve3"]) {
    // Asked of each node: the cluster's own list may lag behind by ten seconds.
    const rows = await simulator.get(`/nodes/${node}/qemu`);
    names.push(...rows.map((row: { name: string }) => row.name));
    const content = await simulator.get(`/nodes/${node}/storage/local-zfs/content?content=images`);
    volumes.push(...content.map((volume: { volid: string }) => volume.volid));
  }
  assert.deepEqual(names.toSorted(), wanted.declared);
  assert.equal(volumes.length, wanted.declared.length, `volumes: ${volumes.join(", ")}`);
}

async function until(
  condition: () => Promise<boolean>,
  complaint: string | (() => string),
): Promise<void> {
  const deadlineMs = Date.now() + 120_000;
  while (!(await condition())) {
    const text = typeof complaint === "string" ? complaint : complaint();
    assert.ok(Date.now() < deadlineMs, text);
    await sleep(200);
  }
}

function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
