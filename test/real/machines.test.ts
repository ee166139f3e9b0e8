import assert from "node:assert/strict";
import test from "node:test";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import { eventually, pause } from "./support/eventually.ts";
import { bodyOf, connect, type Http } from "./support/http.ts";
import { create, declareHypervisor, declareImage, machineOf, machines } from "./support/lab.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./support/simulator.ts";
import "./support/cleanup.ts";

/** Generous: each of many kills delays what was under way. */
const patience = { withinMs: 120_000 };
const kills = process.env["BERTH_REQUIRE_REAL"] === "1" ? 50 : 10;
test(`kill -9 of berth up, ${kills} times during creations and deletions: as many machines as declared`, async (t) => {
  const folder = temporaryFolder("machines");
  t.after(() => folder.remove());
  const simulator = await startSimulatorProcess();
  t.after(() => simulator.stop());
  let berth = await startBerth({ data: folder.path });
  let http = connect(berth);
  await declareHypervisor(http, "lab", simulator);
  await declareImage(http, "debian-12", "lab");
  for (let round = 0; round < kills; round++) {
    // Twenty machines over the rounds; every third is deleted again while others come to be.
    if (round < 20) await create(http, machines, machineOf(`vm-${round}`));
    if (round % 3 === 2) await http.ask({ method: "DELETE", path: `${machines}/vm-${round - 2}` });
    await pause(100 + ((round * 137) % 900));
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
  const isNoneLeft = async (): Promise<boolean> => (await namesOf(http)).length === 0;
  await eventually(isNoneLeft, () => "the machines did not go", patience);
  await compare(simulator, { berth, declared: [] });
});

async function namesOf(http: Http): Promise<string[]> {
  const list = bodyOf(await http.ask({ path: machines }));
  return list.items.map((item: { metadata: { name: string } }) => item.metadata.name).toSorted();
}

/** Waits until every declared machine is Ready and every deleted one gone. */
async function settle(http: Http): Promise<string[]> {
  let shown = "";
  await eventually(
    async () => {
      const list = bodyOf(await http.ask({ path: machines }));
      const unready = list.items.filter((item: Listed) => !isReady(item));
      shown = JSON.stringify(unready.map((item: Listed) => [item.metadata.name, item.status]));
      return unready.length === 0;
    },
    () => `not all became Ready: ${shown}`,
    patience,
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
