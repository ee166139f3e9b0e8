import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type {
  Claim,
  ClaimSpec,
  Hypervisor,
  HypervisorStatus,
  Orphan,
  VirtualMachine,
} from "../../api/index.ts";
import type { Mark, Seen, Survey, SurveyedMachine } from "../../hypervisor/index.ts";
import { ApiError } from "../../kernel/status.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { Outcome } from "../../runtime/index.ts";
import { Sweeps } from "./memory.ts";
import { orphanName } from "./orphan-name.ts";
import type { SweepDeps } from "./sweep-deps.ts";
import { reconcileSweep } from "./sweep.ts";

// One hypervisor, seen through a survey that each test chooses, and a server with one Claim.

const identity = "00000000-0000-4000-8000-00000000f00d";
const mark: Mark = {
  state: "Owned",
  installation: "i",
  owner: { namespace: "default", name: "web" },
  identity,
  externalId: "200",
  disks: {},
  networks: {},
};
const machine: SurveyedMachine = {
  externalId: "200",
  node: "n1",
  content: "Machine",
  power: "Stopped",
  identity,
  mark,
  sizeBytes: 1,
};
const whole: Survey = {
  machines: [machine],
  volumes: [],
  files: [],
  nodes: ["n1"],
  storages: ["s"],
  missing: [],
};

const spec: ClaimSpec = {
  target: "VM",
  hypervisor: { name: "lab", systemId: "s" },
  externalId: "200",
  idChosenBy: "Berth",
  state: "Bound",
  role: "VM",
  origin: "Created",
  everExisted: true,
  identity,
  installation: "i",
  owner: { namespace: "default", name: "web", uid: "v" },
};

interface Lab {
  survey: Survey;
  isComplete: boolean;
  /** What is listed at each tick. */
  listed: string[];
  /** Claims as the cache has them, and as the server has them. */
  cached: ClaimSpec[];
  claims: ClaimSpec[];
  /** The VirtualMachine, as the server has it. */
  vm: { uid: string } | undefined;
  seen: Seen;
  /** What was written. */
  done: string[];
  readonly sweeps: Sweeps;
  /** The status of the Hypervisor, and how often it was written. */
  readonly hypervisor: { status: HypervisorStatus; writes: number };
  /** Orphans that there are. */
  orphans: Orphan[];
  readonly deps: SweepDeps;
  /** Whether all that the process remembers is lost before each sweep. */
  forgets: boolean;
  /** So many sweeps, an hour apart. */
  sweep(times: number): Promise<void>;
  /** One turn, and so much time after it. */
  turn(afterMs: number): Promise<Outcome>;
}

function openLab(): Lab {
  const clock = new VirtualClock();
  const sweeps = new Sweeps();
  const lab: Omit<Lab, "deps"> = {
    survey: whole,
    isComplete: true,
    listed: ["200"],
    cached: [],
    claims: [],
    vm: undefined,
    seen: { at: "absent" },
    done: [],
    sweeps,
    hypervisor: { status: {}, writes: 0 },
    orphans: [],
    forgets: false,
    sweep: async (times) => {
      for (let time = 0; time < times; time += 1) await lab.turn(3_600_000);
    },
    turn: async (afterMs) => {
      if (lab.forgets) sweeps.forgetAll();
      const outcome = await reconcileSweep("lab", deps);
      clock.advance(afterMs);
      return outcome;
    },
  };
  const deps = depsOf(lab, clock);
  return Object.assign(lab, { deps });
}

function claimOf(claim: ClaimSpec): Claim {
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Claim",
    metadata: { name: "c-1", uid: "u" },
    spec: claim,
  };
}

function hypervisorOf({ hypervisor }: Pick<Lab, "hypervisor">): object {
  return { metadata: { name: "lab", resourceVersion: "1" }, status: hypervisor.status };
}

function depsOf(lab: Omit<Lab, "deps">, clock: VirtualClock): SweepDeps {
  const orphans: string[] = [];
  const all = (): Claim[] => lab.cached.map(claimOf);
  const gone = (): never => {
    throw new ApiError(404, "NotFound", "no such object");
  };
  const connection = (): object => ({
    name: "lab",
    systemId: "s",
    capabilities: [],
    spec: { orphans: { policy: "Report", graceSeconds: 60, sweepSeconds: 60 } },
    inventory: {
      machines: lab.listed.map((externalId) => ({ externalId })),
      nodes: [{ name: "n1" }],
      storages: [],
      isComplete: lab.isComplete,
    },
    driver: {
      survey: () => Promise.resolve({ ok: true, value: lab.survey }),
      observe: () => Promise.resolve(lab.seen),
      leftovers: () => Promise.resolve({ ok: true, value: [] }),
    },
  });
  const kinds: Record<string, object> = {
    Hypervisor: {
      updateStatus: (object: Hypervisor) => {
        lab.hypervisor.status = object.status ?? {};
        lab.hypervisor.writes += 1;
        return Promise.resolve(object);
      },
    },
    VirtualMachine: {
      get: () => Promise.resolve(lab.vm === undefined ? gone() : { metadata: lab.vm }),
    },
    Claim: { get: () => Promise.resolve(lab.claims[0] ? claimOf(lab.claims[0]) : gone()) },
    Orphan: {
      create: (orphan: { metadata: { name: string } }) => {
        orphans.push(orphan.metadata.name);
        lab.done.push("an Orphan");
        return Promise.resolve(orphan);
      },
    },
  };
  return {
    clock,
    sweeps: lab.sweeps,
    client: { of: ({ kind }: { kind: string }) => kinds[kind] },
    connections: { of: () => ({ is: "ready", connection: connection() }) },
    beganMs: clock.nowMs(),
    hypervisors: { get: () => hypervisorOf(lab), note: (object: object) => object },
    vms: { byIndex: () => [], list: () => [], get: () => undefined as VirtualMachine | undefined },
    images: { list: () => [] },
    claims: { byIndex: all },
    orphans: {
      byIndex: () => lab.orphans,
      get: (name: string) => (orphans.includes(name) ? {} : undefined),
    },
    ledger: {
      installation: "i",
      heldOn: () => lab.cached,
      probableOn: () => [],
      idsOn: () => lab.cached.map(({ externalId }) => externalId),
      read: () => Promise.resolve(lab.claims[0] && claimOf(lab.claims[0])),
      release: () => Promise.resolve(void lab.done.push("released the Claim")),
      retire: () => Promise.resolve(void lab.done.push("retired the Claim")),
    },
    events: { event: () => undefined },
    figures: { suspicious: () => undefined, forget: () => undefined },
    imageFileOf: () => "",
    wakeOrphan: () => undefined,
  } as unknown as SweepDeps;
}

describe("a sweep", () => {
  it("reports a VM of ours that nothing declares", async () => {
    const lab = openLab();
    await lab.sweep(4);
    assert.deepEqual(lab.done, ["an Orphan"]);
  });

  it("does not take an incomplete inventory for the whole: it concludes nothing", async () => {
    const lab = openLab();
    lab.isComplete = false;
    await lab.sweep(4);
    assert.equal(lab.sweeps.of("lab").swept, undefined);
  });

  it("does not take an incomplete survey for the whole: it concludes nothing", async () => {
    const lab = openLab();
    lab.survey = { ...whole, missing: ["the storage s on n1"] };
    await lab.sweep(4);
    assert.equal(lab.sweeps.of("lab").swept, undefined);
  });

  it("concludes nothing where suddenly half of the VMs are not listed any more", async () => {
    const lab = openLab();
    lab.listed = ["200", "301", "302", "303"];
    const machines = lab.listed.map((externalId) => ({ ...machine, externalId }));
    lab.survey = { ...whole, machines };
    await lab.sweep(2);
    const { swept } = lab.sweeps.of("lab");
    assert.ok(swept !== undefined);
    lab.listed = ["200"];
    await lab.sweep(1);
    assert.equal(lab.sweeps.of("lab").swept, swept);
  });

  it("concludes nothing from a survey that shows much less than the inventory", async () => {
    const lab = openLab();
    lab.listed = ["200", "301", "302", "303"];
    await lab.sweep(3);
    assert.equal(lab.sweeps.of("lab").swept, undefined);
  });

  it("concludes nothing while what is under a Claim without its object cannot be observed", async () => {
    const lab = openLab();
    lab.cached = [spec];
    lab.claims = [spec];
    lab.seen = { at: "unknown", failure: { category: "NetworkError", message: "" } };
    await lab.sweep(3);
    assert.equal(lab.sweeps.of("lab").swept, undefined);
  });

  it("does not report the VM of a Claim that its cache does not know yet", async () => {
    const lab = openLab();
    lab.claims = [spec];
    lab.vm = { uid: "v" };
    await lab.sweep(4);
    assert.deepEqual(lab.done, []);
  });
});

describe("the Claim of a VM that was released, whose object is gone", () => {
  const released: Seen = { at: "foreign", reason: "Released", detail: "" };

  it("is released after the marker", async () => {
    const lab = openLab();
    lab.cached = [spec];
    lab.claims = [spec];
    lab.seen = released;
    await lab.sweep(2);
    assert.equal(lab.done[0], "released the Claim");
  });

  it("is not taken from an object that the cache does not know yet", async () => {
    const lab = openLab();
    lab.cached = [spec];
    lab.claims = [spec];
    lab.seen = released;
    lab.vm = { uid: "v" };
    await lab.sweep(2);
    assert.deepEqual(lab.done, []);
  });
});

describe("a Claim under which nothing is", () => {
  it("is not retired before a request that was sent must have arrived", async () => {
    const lab = openLab();
    lab.cached = [spec];
    lab.claims = [spec];
    lab.survey = { ...whole, machines: [] };
    lab.listed = [];
    await lab.sweep(2);
    assert.deepEqual(lab.done, []);
    await lab.sweep(2);
    assert.ok(lab.done.some((done: string) => done === "retired the Claim"));
  });
});

// What only one process remembered would be counted anew before each of these sweeps.
describe("a process that remembers no sweep", () => {
  function openForgetful(): Lab {
    return Object.assign(openLab(), { forgets: true });
  }

  it("reports what was seen twice and for the grace time", async () => {
    const lab = openForgetful();
    await lab.sweep(2);
    assert.deepEqual(lab.done, []);
    await lab.sweep(1);
    assert.deepEqual(lab.done, ["an Orphan"]);
  });

  it("retires a Claim that is held for nothing", async () => {
    const lab = openForgetful();
    Object.assign(lab, { cached: [spec], claims: [spec], listed: [] });
    lab.survey = { ...whole, machines: [] };
    await lab.sweep(2);
    assert.deepEqual(lab.done, []);
    await lab.sweep(1);
    assert.deepEqual(lab.done, ["retired the Claim"]);
  });

  it("knows since when a kept thing is not seen", async () => {
    const lab = openForgetful();
    const name = orphanName("s", { kind: "Volume", externalId: "v" });
    // cast: only these parts matter to an absence.
    lab.orphans = [{ metadata: { name }, spec: { decision: "Keep" } } as unknown as Orphan];
    await lab.sweep(2);
    const since = lab.sweeps.of("lab").absences.get(name);
    await lab.sweep(2);
    assert.ok(since !== undefined);
    assert.equal(lab.sweeps.of("lab").absences.get(name), since);
  });

  const boundAt = "1969-12-31T00:00:00Z";
  const claims = ["301", "302", "303"].map((externalId) => ({ ...spec, externalId, boundAt }));

  it("is suspicious of a list without the VMs that Claims hold, for a minute", async () => {
    const lab = openForgetful();
    lab.cached = claims;
    assert.match(JSON.stringify(await lab.turn(30_000)), /Suspicious/);
    assert.match(JSON.stringify(await lab.turn(29_999)), /Suspicious/);
    assert.equal(lab.sweeps.of("lab").swept, undefined);
    await lab.turn(30_000);
    assert.match(JSON.stringify(await lab.turn(0)), /Swept/);
    assert.equal(lab.hypervisor.writes, 2, "the suspicion, and the sweep");
  });

  it("writes nothing while nothing changes", async () => {
    const lab = openForgetful();
    lab.survey = { ...whole, machines: [] };
    lab.listed = [];
    await lab.sweep(2);
    assert.equal(lab.hypervisor.writes, 1);
    await lab.sweep(4);
    assert.equal(lab.hypervisor.writes, 1);
    assert.deepEqual(Object.keys(lab.hypervisor.status.sweep ?? {}), ["since"]);
  });
});
