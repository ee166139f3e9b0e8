import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, hypervisorKind, vmImageKind, type VMImage } from "../api/index.ts";
import type { PveRequest } from "../drivers/proxmox/index.ts";
import { nodesWeb } from "./testing/saga-image.ts";
import {
  openProxmox,
  type SimulatedWorld,
  type StageOptions,
} from "./testing/simulated-proxmox.ts";
import { sha256 } from "./testing/small-disk.ts";
import { until } from "./testing/world.ts";

const minutesMs = 60_000;
const at = { namespace: "default", name: "remote" };

async function declare({ world }: SimulatedWorld, spec: object = {}): Promise<void> {
  const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
  await world.client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: at,
    spec: { source: { http }, prefetch: [{ hypervisor: "model" }], ...spec },
  });
}

function imageOf({ world }: SimulatedWorld): Promise<VMImage> {
  return world.client.of(vmImageKind).get(at);
}

function pass({ world }: SimulatedWorld, ms: number): Promise<boolean> {
  return until(world, () => false, ms);
}

function sent({ requests }: SimulatedWorld, path: string): PveRequest[] {
  return requests.filter((one) => one.method !== "GET" && one.path.endsWith(path));
}

function writesOf({ world }: SimulatedWorld): number {
  return world.statusWrites.filter((path) => path.includes("/vmimages/remote")).length;
}

async function readyOf(stage: SimulatedWorld): Promise<string | undefined> {
  const { conditions = [] } = (await imageOf(stage)).status ?? {};
  return conditions.find(({ type }) => type === "Ready")?.status;
}

function filesOf({ proxmox }: SimulatedWorld): string[] {
  const volumes = Object.values(proxmox.cluster.state.volumes).flat();
  return volumes.filter(({ vmid }) => vmid === undefined).map(({ name }) => name);
}

const timeOut = { type: "answered", status: 596, reason: "Connection timed out" } as const;

/** Answers downloads with 596: they are begun, or never arrive. */
function timesOut(isBegun: boolean): NonNullable<StageOptions["between"]> {
  return async (request, send) => {
    if (!request.path.endsWith("/download-url")) return send(request);
    if (isBegun) await send(request);
    return { ...timeOut, body: "" } as never;
  };
}

describe("a download whose request is answered by a time-out", () => {
  it("is found by its file name and not begun again", async () => {
    const stage = await openProxmox("9.2", { ...nodesWeb, between: timesOut(true) });
    stage.world.start();
    await declare(stage);
    const isThere = await until(stage.world, async () => (await readyOf(stage)) === "True");
    assert.ok(isThere, JSON.stringify((await imageOf(stage)).status));
    assert.equal(sent(stage, "/download-url").length, 1);
  });

  for (const clockAheadMs of [-300_000, -3_000, 0, 3_000, 300_000]) {
    it(`fails five times where the file is wrong, by a clock ${clockAheadMs} ms ahead`, async () => {
      const between = timesOut(true);
      const stage = await openProxmox("9.2", { ...nodesWeb, between, clockAheadMs });
      stage.world.start();
      const url = "https://images.example/own.qcow2";
      const http = { url, checksum: `sha256:${"a".repeat(64)}` };
      await declare(stage, { source: { http } });
      await pass(stage, 120 * minutesMs);
      assert.equal(sent(stage, "/download-url").length, 5);
      assert.match((await imageOf(stage)).status?.failure?.cause ?? "", /checksum/);
    });
  }

  it("is asked for ever more seldom where it never arrives, and is not called Ready", async () => {
    const stage = await openProxmox("9.2", { ...nodesWeb, between: timesOut(false) });
    stage.world.start();
    await declare(stage);
    await pass(stage, 10 * minutesMs);
    const downloads = sent(stage, "/download-url").length;
    assert.ok(downloads >= 2 && downloads <= 10, `${downloads} downloads in ten minutes`);
    assert.ok(writesOf(stage) <= 3 * downloads, `${writesOf(stage)} status writes`);
    assert.equal(await readyOf(stage), "False");
    assert.equal((await imageOf(stage)).status?.failure?.category, "UnknownOutcome");
  });
});

const denied = { type: "answered", status: 403, reason: "Permission check failed" } as const;

/** Refuses to list files while it is told so; and to remove them, always. */
function failsLooks(looks: { fail: boolean }): NonNullable<StageOptions["between"]> {
  return async (request, send) => {
    const isLook = looks.fail && request.path.endsWith("/storage/local/content");
    const isRefused = isLook || request.method === "DELETE";
    return isRefused ? ({ ...denied, body: "" } as never) : send(request);
  };
}

/** Two hours in which looks fail again and again. */
async function failBetween(stage: SimulatedWorld, looks: { fail: boolean }): Promise<void> {
  for (let times = 0; times < 30; times += 1) {
    looks.fail = true;
    await pass(stage, 2 * minutesMs);
    looks.fail = false;
    await pass(stage, 2 * minutesMs);
  }
}

describe("a download", () => {
  it("goes on when Berth is restarted in the middle of it", async () => {
    const timing = { downloadPerGibMs: 300_000 } as never;
    const stage = await openProxmox("9.2", { ...nodesWeb, timing });
    const first = stage.world.start();
    await declare(stage);
    await until(stage.world, () => sent(stage, "/download-url").length > 0);
    first.crash();
    stage.world.start();
    const isThere = await until(stage.world, async () => (await readyOf(stage)) === "True");
    assert.ok(isThere, JSON.stringify((await imageOf(stage)).status));
    assert.equal(sent(stage, "/download-url").length, 1);
  });

  it("of the wrong file fails five times, and then it stalls and says so", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    stage.world.start();
    const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${"0".repeat(64)}` };
    await declare(stage, { source: { http } });
    await pass(stage, 60 * minutesMs);
    assert.equal(sent(stage, "/download-url").length, 5);
    const { conditions = [], failure } = (await imageOf(stage)).status ?? {};
    assert.equal(conditions.find(({ type }) => type === "Stalled")?.status, "True");
    assert.match(failure?.cause ?? "", /checksum/i);
  });

  it("fails five times also where looks fail in between, and five more if a person asks", async () => {
    const looks = { fail: false };
    const stage = await openProxmox("9.2", { ...nodesWeb, between: failsLooks(looks) });
    stage.world.start();
    const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${"0".repeat(64)}` };
    await declare(stage, { source: { http } });
    await failBetween(stage, looks);
    assert.equal(sent(stage, "/download-url").length, 5);
    const merge = { metadata: { annotations: { [annotations.reconcileAt]: "once more" } } };
    await stage.world.client.of(vmImageKind).patch(at, { merge });
    await failBetween(stage, looks);
    assert.equal(sent(stage, "/download-url").length, 10);
    const { step, attempts } = (await imageOf(stage)).status?.copies?.[0]?.failure ?? {};
    assert.deepEqual([step, attempts], ["Download", 5]);
  });

  it("waits for its next retry also when Berth is restarted meanwhile", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    const first = stage.world.start();
    const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${"0".repeat(64)}` };
    await declare(stage, { source: { http } });
    await until(stage.world, async () => (await imageOf(stage)).status?.failure !== undefined);
    for (let times = 0; times < 5; times += 1) {
      await first.stop();
      const next = stage.world.start();
      await pass(stage, 3_000);
      await next.stop();
    }
    assert.equal(sent(stage, "/download-url").length, 1);
    assert.equal((await imageOf(stage)).status?.failure?.attempts, 1);
  });

  it("in front of a storage's lock is asked for ever more seldom", async () => {
    const blocked = {
      type: "answered",
      status: 500,
      reason: "cfs-lock 'storage-local' error: got lock request timeout",
    };
    const between: StageOptions["between"] = async (request, send) => {
      const isIt = request.path.endsWith("/download-url");
      return isIt ? ({ ...blocked, body: "" } as never) : send(request);
    };
    const stage = await openProxmox("9.2", { ...nodesWeb, between });
    stage.world.start();
    await declare(stage);
    await pass(stage, 10 * minutesMs);
    const tries = sent(stage, "/download-url").length;
    assert.ok(tries >= 2 && tries <= 20, `${tries} requests in ten minutes`);
    assert.ok(writesOf(stage) <= 2 * tries + 2, `${writesOf(stage)} status writes`);
  });

  it("onto a full storage is tried ever more seldom, and counted", async () => {
    const full = { type: "answered", status: 500, reason: "not enough free space: 1000 > 0" };
    const between: StageOptions["between"] = async (request, send) => {
      const isIt = request.path.endsWith("/download-url");
      return isIt ? ({ ...full, body: "" } as never) : send(request);
    };
    const stage = await openProxmox("9.2", { ...nodesWeb, between });
    stage.world.start();
    await declare(stage);
    await pass(stage, 30 * minutesMs);
    const tries = sent(stage, "/download-url").length;
    assert.ok(tries >= 3 && tries <= 8, `${tries} requests in half an hour`);
    assert.ok(((await imageOf(stage)).status?.failure?.attempts ?? 0) >= 3);
  });

  it("that failed where nobody needs it any more does not keep the image from Ready", async () => {
    let failing = "";
    const refused = { type: "answered", status: 500, reason: "no", body: "" };
    const stage = await openProxmox("9.2", {
      ...nodesWeb,
      between: async (request, send) => {
        if (!request.path.endsWith("/download-url")) return send(request);
        failing ||= request.path.split("/")[2] ?? "";
        return request.path.includes(`/${failing}/`) ? (refused as never) : send(request);
      },
    });
    const { world, proxmox } = stage;
    world.start();
    await declare(stage);
    assert.ok(await until(world, async () => (await imageOf(stage)).status?.failure !== undefined));
    proxmox.crashNode(failing);
    const copies = async (): Promise<string[]> => {
      return ((await imageOf(stage)).status?.copies ?? []).map(({ state }) => state);
    };
    const hasOther = await until(world, async () => (await copies()).includes("Present"));
    assert.ok(hasOther, JSON.stringify(await imageOf(stage)));
    proxmox.startNode(failing);
    const isReady = await until(world, async () => (await readyOf(stage)) === "True");
    assert.ok(isReady, JSON.stringify((await imageOf(stage)).status));
    assert.deepEqual(await copies(), ["Present"]);
  });
});

describe("a file that Berth downloaded under a name that a person chose", () => {
  it("is verified, and goes with its image", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    stage.world.start();
    await declare(stage, { fileName: "mine.qcow2" });
    const isThere = await until(stage.world, async () => (await readyOf(stage)) === "True");
    const { status } = await imageOf(stage);
    assert.ok(isThere, JSON.stringify(status));
    assert.deepEqual(
      status?.copies?.map(({ brought, verified }) => [brought, verified]),
      [[true, true]],
    );
    assert.ok(!status?.conditions?.some(({ type }) => type === "ChecksumUnverified"));
    await stage.world.client.of(vmImageKind).delete(at);
    const isGone = await until(
      stage.world,
      () => !filesOf(stage).some((name) => name.includes("mine.qcow2")),
    );
    assert.ok(isGone, filesOf(stage).join());
  });

  it("is asked to go as seldom as its refusals say, also where looks fail in between", async () => {
    const looks = { fail: false };
    const stage = await openProxmox("9.2", { ...nodesWeb, between: failsLooks(looks) });
    stage.world.start();
    await declare(stage);
    await until(stage.world, async () => (await readyOf(stage)) === "True");
    await stage.world.client.of(vmImageKind).delete(at);
    await failBetween(stage, looks);
    const removals = stage.requests.filter(({ method }) => method === "DELETE").length;
    assert.ok(removals >= 3 && removals <= 4, `${removals} removals in two hours`);
    const { step, attempts } = (await imageOf(stage)).status?.copies?.[0]?.failure ?? {};
    assert.deepEqual([step, attempts], ["Remove", removals]);
  });
});

describe("a file that somebody removes", () => {
  it("is missed, and brought again where it is needed", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    stage.world.start();
    await declare(stage);
    await until(stage.world, async () => (await readyOf(stage)) === "True");
    const {
      volume = "",
      node = "pve1",
      storage = "local",
    } = (await imageOf(stage)).status?.copies?.[0] ?? {};
    await stage.byHand({
      method: "DELETE",
      path: `/nodes/${node}/storage/${storage}/content/${encodeURIComponent(volume)}`,
      params: {},
    });
    await pass(stage, 20 * minutesMs);
    assert.equal(sent(stage, "/download-url").length, 2);
    assert.equal(await readyOf(stage), "True");
    assert.ok(filesOf(stage).some((name) => name.includes(sha256)));
  });
});

describe("an image of a hypervisor that is not there", () => {
  it("is not Ready while nothing can bring it", async () => {
    const stage = await openProxmox("9.2", nodesWeb);
    stage.world.start();
    await declare(stage, { prefetch: [{ hypervisor: "nowhere" }] });
    await pass(stage, minutesMs);
    assert.notEqual(await readyOf(stage), "True");
    assert.ok(await stage.world.client.of(hypervisorKind).get({ name: "model" }));
  });
});

describe("an image whose hypervisor does not answer", () => {
  async function openAway(more: Partial<StageOptions> = {}) {
    const line = { isCut: false };
    const stage = await openProxmox("8.4", {
      ...nodesWeb,
      ...more,
      between: (request, send) => {
        return line.isCut ? Promise.resolve({ type: "lost", detail: "no route" }) : send(request);
      },
    });
    stage.world.start();
    return { ...stage, line };
  }

  async function saidOf(stage: SimulatedWorld): Promise<unknown[]> {
    const { copies = [], conditions = [] } = (await imageOf(stage)).status ?? {};
    const ready = conditions.find(({ type }) => type === "Ready");
    return [copies.map(({ state }) => state), ready?.status, ready?.reason];
  }

  it("is neither called present nor missing", async () => {
    const stage = await openAway();
    await declare(stage);
    assert.ok(await until(stage.world, async () => (await readyOf(stage)) === "True"));
    stage.line.isCut = true;
    await pass(stage, 5 * minutesMs);
    assert.deepEqual(await saidOf(stage), [["Present"], "Unknown", "Unreachable"]);
    stage.line.isCut = false;
    assert.ok(await until(stage.world, async () => (await readyOf(stage)) === "True"));
  });

  it("goes on with a download that was under way, which has not failed", async () => {
    const stage = await openAway();
    stage.proxmox.cluster.slowStorageMs = 30 * minutesMs;
    await declare(stage);
    assert.ok(await until(stage.world, () => sent(stage, "/download-url").length > 0));
    await pass(stage, 20_000);
    stage.line.isCut = true;
    await pass(stage, 5 * minutesMs);
    assert.deepEqual(await saidOf(stage), [["Downloading"], "Unknown", "Unreachable"]);
    stage.line.isCut = false;
    await pass(stage, 10 * minutesMs);
    assert.deepEqual(await saidOf(stage), [["Downloading"], "False", "Downloading"]);
    const isReady = async (): Promise<boolean> => (await readyOf(stage)) === "True";
    assert.ok(await until(stage.world, isReady, 60 * minutesMs));
    assert.equal(sent(stage, "/download-url").length, 1);
  });
});
