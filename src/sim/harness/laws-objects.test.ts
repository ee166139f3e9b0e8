import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, VirtualMachine } from "../../api/index.ts";
import { ObjectLaws } from "./laws-objects.ts";
import { Records } from "./records.ts";

interface Stood {
  readonly isRunning: boolean;
  readonly lookedMs: number;
}

/** The laws of a world with one machine, which is running or not, at second 1000. */
function lawsOf({ isRunning, lookedMs }: Stood): ObjectLaws {
  const site = { wasThereWithin: () => true, hadPowerWithin: () => isRunning };
  return new ObjectLaws({
    records: new Records(),
    sites: new Map([["east", site as never]]),
    wires: new Map([["east", { lookedMs: new Map([["100", lookedMs]]) } as never]]),
    nowMs: () => 1_000_000,
  });
}

function ready(more: { readonly node: string; readonly isPaused?: boolean }): VirtualMachine {
  const { node, isPaused = false } = more;
  const annotations = isPaused ? { "berth.dev/paused": "true" } : {};
  return {
    metadata: { uid: "1", name: "web", generation: 1, annotations },
    spec: { powerState: "Running" },
    status: {
      observedGeneration: 1,
      hypervisor: "east",
      externalId: "100",
      node,
      conditions: [{ type: "Ready", status: "True" }],
    },
  } as never;
}

const before = ready({ node: "pve1" });
const after = ready({ node: "pve2" });

describe("the law that a status is observed", () => {
  it("asks of whatever stays Ready after a look whether that was so", () => {
    const laws = lawsOf({ isRunning: false, lookedMs: 999_000 });
    assert.throws(() => laws.atVmChange({ before, after }), /law 7, .*100 was not Running/);
    lawsOf({ isRunning: true, lookedMs: 999_000 }).atVmChange({ before, after });
  });

  it("and of whatever becomes Ready, looked at or not", () => {
    const laws = lawsOf({ isRunning: false, lookedMs: -Infinity });
    assert.throws(() => laws.atVmChange({ before: undefined, after }), /was not Running/);
  });

  it("but not of what nobody looked at, is paused, or says nothing new", () => {
    lawsOf({ isRunning: false, lookedMs: 800_000 }).atVmChange({ before, after });
    const laws = lawsOf({ isRunning: false, lookedMs: 999_000 });
    laws.atVmChange({ before, after: before });
    laws.atVmChange({ before, after: ready({ node: "pve2", isPaused: true }) });
  });

  it("and asks once for each look", () => {
    const isRunning = false;
    const laws = lawsOf({ isRunning, lookedMs: 999_000 });
    assert.throws(() => laws.atVmChange({ before, after }));
    laws.atVmChange({ before: after, after: before });
  });

  it("and lets a VM that is called Missing claim nothing", () => {
    const site = { wasAbsentWithin: () => true };
    const laws = new ObjectLaws({
      records: new Records(),
      sites: new Map([["east", site as never]]),
      wires: new Map(),
      nowMs: () => 1_000_000,
    });
    const missing = (more: object): VirtualMachine => {
      const failure = { category: "Missing" };
      const seen = { observedGeneration: 1, hypervisor: "east", externalId: "100" };
      const status = { ...seen, failure, conditions: [], ...more };
      return { ...before, status } as never;
    };
    laws.atVmChange({ before, after: missing({}) });
    const claims = [
      { powerState: "Running" },
      { disks: [] },
      { conditions: [{ type: "Running", status: "True" }] },
    ];
    for (const claim of claims) {
      const told = { before, after: missing(claim) };
      assert.throws(() => laws.atVmChange(told), /law 7, .*Missing and shows/);
    }
  });
});

describe("the law that an id rests", () => {
  interface Rest {
    /** Whose VM exists under the id now. */
    readonly by?: "berth" | "person";
    readonly everExisted: boolean;
    /** Whether one was there moments ago. */
    readonly wasThere: boolean;
  }

  function reserveAgain({ by, everExisted, wasThere }: Rest): void {
    const guests = new Map(by === undefined ? [] : [["100", { by }]]);
    const site = { guests, survey: () => undefined, wasThereWithin: () => wasThere };
    const laws = new ObjectLaws({
      records: new Records(),
      sites: new Map([["east", site as never]]),
      wires: new Map([["east", {} as never]]),
      nowMs: () => 1_000_000,
    });
    const spec = { externalId: "100", hypervisor: { name: "east" }, owner: { uid: "1" } };
    const resting = { ...spec, state: "Quarantined", quarantineUntil: "2026-01-02T00:00:00Z" };
    const reserved = { ...spec, state: "Reserved", everExisted };
    // cast: what the law reads of Claims.
    laws.atClaimChange({ before: { spec: resting } as never, after: { spec: reserved } as never });
  }

  it("holds for a VM that is to be created, also where one was there until now", () => {
    const rests = { everExisted: false, wasThere: true };
    assert.throws(() => reserveAgain(rests), /law 3.*reserved again before its rest was over/);
    assert.throws(() => reserveAgain({ ...rests, by: "person" }), /law 3/);
  });

  it("holds for a Claim that only says that a VM existed", () => {
    assert.throws(() => reserveAgain({ everExisted: true, wasThere: false }), /law 3/);
  });

  it("does not hold for a VM of Berth's that exists under the id", () => {
    reserveAgain({ by: "berth", everExisted: false, wasThere: true });
    reserveAgain({ everExisted: true, wasThere: true });
  });
});

describe("a volume that was asked for when its Claim was given up", () => {
  const claim = (more: object): Claim => {
    const spec = { state: "Bound", externalId: "100", hypervisor: { name: "east" }, owner: {} };
    // cast: as much of a Claim as this law reads.
    return { metadata: { name: "c" }, spec: { ...spec, ...more } } as never;
  };
  const allocation = { volume: "local-zfs:vm-100-berth-b", earlier: ["local-zfs:vm-100-berth-a"] };
  const held = claim({ allocation });
  const awaitedAfter = (then: Claim | undefined): string[] => {
    const site = {
      name: "east",
      survey: () => false,
      guests: new Map(),
      guestVolumes: () => [{ name: "vm-100-berth-a", backing: "pve1:rpool/data", volume: {} }],
      model: { cluster: { processes: { list: () => [] } } },
    };
    const records = new Records();
    const laws = new ObjectLaws({
      records,
      // cast: as much of a cluster as this law reads.
      sites: new Map([["east", site as never]]),
      wires: new Map([["east", { creating: new Map() } as never]]),
      nowMs: () => 1_000_000,
    });
    laws.atClaimChange({ before: held, after: then });
    return [...records.awaited];
  };

  it("is awaited if it is not there, whether the Claim rests or is gone", () => {
    const { volume } = allocation;
    assert.deepEqual(awaitedAfter(undefined), [volume]);
    assert.deepEqual(awaitedAfter(claim({ state: "Quarantined" })), [volume]);
  });

  it("is not, for as long as the Claim is held", () => {
    assert.deepEqual(awaitedAfter(claim({})), []);
  });
});

it("a volume that has another size than its Claim says is noted when that is given up", () => {
  const gib = 1024 ** 3;
  const backing = "pve1:rpool/data";
  const volume = (name: string, gibs: number): object => {
    return { key: `${backing}/${name}`, backing, name, volume: { sizeBytes: gibs * gib } };
  };
  const there = [
    volume("vm-100-a", 2),
    volume("vm-100-b", 1),
    volume("vm-100-c", 2),
    volume("vm-100-d", 2),
  ];
  const site = {
    name: "east",
    survey: () => false,
    guests: new Map(),
    guestVolumes: () => there,
    model: { cluster: { processes: { list: () => [] } } },
  };
  const records = new Records();
  const laws = new ObjectLaws({
    records,
    // cast: as much of a cluster as this law reads.
    sites: new Map([["east", site as never]]),
    wires: new Map([["east", { creating: new Map() } as never]]),
    nowMs: () => 1_000_000,
  });
  const volumes = ["vm-100-a", "vm-100-b"].map((name) => {
    return { id: `local-zfs:${name}`, size: String(gib) };
  });
  const grown = { id: "local-zfs:vm-100-d", size: String(gib), growsTo: String(2 * gib) };
  const at = { externalId: "100", hypervisor: { name: "east" }, node: "pve1", owner: {} };
  const claim = { metadata: {}, spec: { ...at, state: "Bound", volumes: [...volumes, grown] } };
  // cast: as much of a Claim as this law reads.
  laws.atClaimChange({ before: claim as never, after: undefined });
  assert.deepEqual([...records.resized], [`east ${backing}/vm-100-a`]);
});
