import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Shape, shapeDifferences } from "../../hypervisor/index.ts";
import { Bench } from "../../hypervisor/testing/stage.ts";
import { releases } from "../../sim/index.ts";
import { claim, data, driverOn, error, open, ScriptedServer, upid } from "./fixture.ts";
import { neededRights } from "./rights.ts";
import { simulatedStage } from "./testing/simulated-stage.ts";
import { pathPart, type PveRequest } from "./wire/wire.ts";

const at = `/nodes/pve1/qemu/${claim.externalId}`;

/** Failures that people met with other tools. Each is named after the thread that tells of it. */
describe("what went wrong elsewhere", () => {
  for (const release of releases) {
    it(`seed-1: what ${release} cannot do is known before anything is made`, async () => {
      const requests: PveRequest[] = [];
      const bench = new Bench(simulatedStage(release, (request) => requests.push(request)));
      const { driver, stage } = bench;
      const system = await stage.settle(driver.system());
      assert(system.ok);
      const canImport = system.value.capabilities.includes("ImportFromImage");
      assert.equal(canImport, release !== "7.4");
      const fill = { from: "volume", volume: "local:import/none.qcow2" } as const;
      const disk = { name: "root", storage: stage.storage, fill };
      const draft = { claim: await bench.claim(), node: stage.node, shape: {}, disks: [disk] };
      const { findings } = await stage.settle(driver.preflight(draft));
      const category = canImport ? "ImageNotFound" : "APINotSupported";
      assert.deepEqual(
        findings.map((finding) => finding.category),
        [category],
      );
      assert(requests.every(({ method, path }) => method === "GET" && !/importdisk/.test(path)));
    });

    it(`bpg-2059: shuffled disks, defaults and other spellings are no change on ${release}`, async () => {
      const bench = new Bench(simulatedStage(release));
      const { driver, stage } = bench;
      const disks = [
        { name: "root", cache: "WriteBack" },
        { name: "data", discard: true },
      ] as const;
      const macAddress = "BC:24:11:AA:BB:CC";
      const networks = [{ name: "lan", network: stage.network, macAddress }];
      const said: Shape = { disks, networks, memory: { sizeBytes: 3 * 1024 ** 3 } };
      const made = await bench.shell(said);
      for (const { name, ...options } of disks) {
        const disk = { ...bench.blank(name), ...options };
        await bench.succeed({ kind: "addDisk", claim: made, at: await bench.at(made), disk });
      }
      const again: Shape = {
        ...said,
        disks: [...disks].toReversed().map((disk) => ({ ssd: false, backup: true, ...disk })),
        networks: [{ name: "lan", network: stage.network, macAddress: macAddress.toLowerCase() }],
        cpu: { cores: 1, sockets: 1, limitMillicores: 0 },
        tags: [],
      };
      const { shape } = driver.fit(again);
      assert.deepEqual(shapeDifferences(shape, (await bench.ours(made)).shape), []);
      const begun = await bench.begin({
        kind: "configure",
        claim: made,
        at: await bench.at(made),
        shape,
      });
      assert.deepEqual(begun, { outcome: "done" });
    });

    it(`bpg-391: a machine that a person moved on ${release} is found where it is`, async () => {
      const bench = new Bench(simulatedStage(release));
      const made = await bench.machine();
      const { otherNode } = bench.stage;
      await bench.succeed({
        kind: "migrate",
        claim: made,
        at: await bench.at(made),
        to: otherNode,
      });
      assert.equal((await bench.ours({ ...made, node: bench.stage.node })).node, otherNode);
      assert.equal(bench.stage.behind.machines().length, 1);
    });

    it(`CAPMOX-856: a recycled id never costs a stranger's machine on ${release}`, async () => {
      const bench = new Bench(simulatedStage(release));
      const made = await bench.machine();
      const volumes = (await bench.ours(made)).volumes.map(({ id }) => id);
      const old = await bench.at(made);
      await bench.succeed({ kind: "destroy", claim: made, at: old, volumes });
      bench.stage.behind.strangerTakes(made.externalId);
      const begun = await bench.begin({ kind: "destroy", claim: made, at: old, volumes });
      assert(begun.outcome === "refused" && begun.failure.category === "IdentityConflict");
      assert.deepEqual(bench.stage.behind.machines(), [made.externalId]);
    });

    it(`Tel-1379: no right is asked for that ${release} does not know`, async () => {
      const { major, minor } = { major: Number(release[0]), minor: Number(release[2]) };
      const rights = neededRights({ text: release, major, minor }).map((right) => right.privilege);
      assert.equal(rights.includes("VM.Monitor"), major < 9);
      assert.equal(rights.includes("SDN.Use"), major >= 8);
    });
  }

  it("PXC-403: flags of a deletion travel in the query, and never sweep by name", async () => {
    const requests: PveRequest[] = [];
    const bench = new Bench(simulatedStage("9.2", (request) => requests.push(request)));
    const made = await bench.machine();
    const volumes = (await bench.ours(made)).volumes.map(({ id }) => id);
    await bench.succeed({ kind: "destroy", claim: made, at: await bench.at(made), volumes });
    const [removal] = requests.filter(({ method }) => method === "DELETE");
    assert.deepEqual(removal?.params, { purge: 1, "destroy-unreferenced-disks": 0 });
  });

  it("bpg-1330: a task that ended with warnings did its work", async () => {
    const task = upid("qmdestroy", claim.externalId);
    const path = `GET /nodes/pve1/tasks/${pathPart(task)}/status`;
    const ended = data({ status: "stopped", exitstatus: "WARNINGS: 1" });
    const view = await driverOn(new ScriptedServer({ [path]: ended })).look(task);
    assert.deepEqual(view, { state: "warned", cause: "WARNINGS: 1" });
  });

  it("bpg-1413: 599 is an outcome that nobody knows, and nothing is sent again", async () => {
    const server = new ScriptedServer({
      "POST /nodes/pve1/qemu": error(599, "Too many redirections"),
    });
    const operation = { kind: "create", claim, node: "pve1", shape: { name: "web" } } as const;
    const begun = await driverOn(server).begin(operation, open);
    assert(begun.outcome === "unknown" && begun.failure.category === "UnknownOutcome");
    assert.equal(server.writes.length, 1);
  });

  it("Tel-478: no failure repeats what was sent", async () => {
    const server = new ScriptedServer({
      "POST /nodes/pve1/qemu": error(400, "Parameter verification failed.", {
        ciuser: "value does not match the regex pattern",
      }),
    });
    const cloudInit = { userName: "ada", passwordHash: "$6$salt$verysecret" };
    const shape = { name: "web", cloudInit };
    const operation = { kind: "create", claim, node: "pve1", shape } as const;
    const begun = await driverOn(server).begin(operation, open);
    assert(begun.outcome === "refused");
    assert.doesNotMatch(JSON.stringify(begun), /verysecret/);
    assert.match(begun.failure.message, /ciuser: value does not match/);
  });

  it("Tel-1339: a dead agent is never asked while a machine is looked at", async () => {
    const requests: PveRequest[] = [];
    const bench = new Bench(simulatedStage("9.2", (request) => requests.push(request)));
    const made = await bench.machine({ guestAgent: true });
    await bench.succeed({ kind: "powerOn", claim: made, at: await bench.at(made) });
    await bench.ours(made);
    assert(requests.every(({ path }) => !path.includes("/agent")));
    const guest = await bench.stage.settle(bench.driver.guest(made));
    assert.deepEqual(guest, { ok: true, value: { agent: "Silent" } });
  });

  it("Tel-546: a machine that a person deleted is absent, and no error", async () => {
    const server = new ScriptedServer({
      [`GET ${at}/pending`]: error(
        500,
        `Configuration file 'nodes/pve1/qemu-server/${claim.externalId}.conf' does not exist`,
      ),
      "GET /cluster/nextid": data(claim.externalId),
      "GET /cluster/status": data([{ type: "cluster", quorate: 1 }]),
    });
    assert.deepEqual(await driverOn(server).observe(claim), { at: "absent" });
  });
});
