import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Machine, Mark, Seen, Survey, SurveyedMachine } from "../../hypervisor/index.ts";
import { planOrphan, type DecisionInput } from "./decide.ts";
import { extentOf, isLedgerStranded, planSuspicion, type Extent } from "./extent.ts";
import type { Find } from "./find.ts";
import { claimsInDoubt, planFinds, type SweepInput } from "./plan.ts";
import { isLongAbsent, planAbsences, planSightings } from "./sightings.ts";
import { planWatch } from "./watch.ts";

const here = "00000000-0000-4000-8000-000000000007";
const elsewhere = "00000000-0000-4000-8000-00000000beef";
const identity = "00000000-0000-4000-8000-00000000f00d";
const owner = { namespace: "default", name: "web", uid: "u1" };

const mark: Mark = {
  state: "Owned",
  installation: here,
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
  sizeBytes: 5,
};

const whole: Machine = {
  externalId: "200",
  node: "n1",
  version: "1",
  power: "Stopped",
  isTemplate: false,
  identity,
  mark,
  shape: {},
  disks: [],
  networks: [],
  pending: [],
  volumes: [],
  hasSnapshots: false,
};

const husk: SurveyedMachine = {
  externalId: "200",
  node: "n1",
  content: "Husk",
  power: "Stopped",
  lock: "create",
};

const dead = { kind: "Create", detail: "create", state: "Dead" } as const;
const volume = { externalId: "200", storage: "s", node: "n1", isShared: false, sizeBytes: 7 };
const nothing: Survey = {
  machines: [],
  volumes: [],
  files: [],
  nodes: ["n1"],
  storages: ["s"],
  missing: [],
};

function claim(spec: Partial<ClaimSpec>): Claim {
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Claim",
    metadata: { name: "c-1" },
    spec: {
      hypervisor: { name: "lab", systemId: "s" },
      externalId: "200",
      idChosenBy: "Berth",
      state: "Bound",
      role: "Machine",
      origin: "Created",
      everStood: true,
      identity,
      installation: here,
      owner,
      ...spec,
    },
  };
}

type Given = Omit<Partial<SweepInput>, "survey"> & { readonly survey?: Partial<Survey> };

function judged(given: Given): string[] {
  const input: SweepInput = {
    installation: here,
    claims: [],
    isDeclared: () => false,
    identities: new Set(),
    seen: new Map(),
    imageFiles: new Set(),
    taken: new Set(),
    blocked: new Map(),
    mayUnlock: false,
    ...given,
    survey: { ...nothing, ...given.survey },
  };
  return planFinds(input).map(({ kind, externalId, ownership, allowed }) => {
    return `${kind} ${externalId} ${ownership}: ${allowed.join(" ")}`;
  });
}

function seeing(seen: Seen): Map<string, Seen> {
  return new Map([["200", seen]]);
}

const machines = [machine];
const ours = seeing({ at: "ours", machine: whole });
const seed = `berth-seed-${identity}-0123456789abcdef.iso`;
const file = { storage: "s", node: "n1", isShared: true, sizeBytes: 3 };
const disc = { ...file, volume: `s:iso/${seed}`, fileName: seed, use: "Disc" } as const;
const name = `berth-sha256-${"a".repeat(64)}.qcow2`;
const image = { ...file, volume: `s:import/${name}`, fileName: name, use: "Disk" } as const;

interface Case {
  readonly given: Given;
  readonly finds: readonly string[];
}

const volumes = [{ ...volume, volume: "s:vm-200-disk-0" }];
const known = [{ id: "s:vm-200-disk-0", role: "Disk", state: "Attached" } as const];

const cases: Readonly<Record<string, Case>> = {
  "is nobody's business without a mark": {
    given: {
      survey: {
        machines: [{ externalId: "200", node: "n1", content: "Machine", power: "Stopped" }],
      },
    },
    finds: [],
  },
  "is declared by the object that holds its Claim": {
    given: { survey: { machines }, claims: [claim({})], isDeclared: () => true, seen: ours },
    finds: [],
  },
  "is ours when mark and Claim agree and its object is gone": {
    given: { survey: { machines }, claims: [claim({})], seen: ours },
    finds: ["Machine 200 Ours: Keep Adopt Destroy"],
  },
  "is ours when its creation was cut off: the Claim was there before the machine": {
    given: {
      survey: { machines },
      claims: [claim({ state: "Reserved", everStood: false })],
      seen: ours,
    },
    finds: ["Machine 200 Ours: Keep Adopt Destroy"],
  },
  "is only marked when its Claim was written from the mark": {
    given: { survey: { machines }, claims: [claim({ state: "Reserved" })], seen: ours },
    finds: ["Machine 200 Marked: Keep Adopt Destroy"],
  },
  "cannot be destroyed while it runs": {
    given: {
      survey: { machines },
      claims: [claim({})],
      seen: seeing({ at: "ours", machine: { ...whole, power: "Running" } }),
    },
    finds: ["Machine 200 Ours: Keep Adopt"],
  },
  "is a keeper of disks that have to stay, whose object is gone on purpose": {
    given: { survey: { machines }, claims: [claim({ role: "Keeper" })], seen: ours },
    finds: [],
  },
  "is a stranger's where the Claim's machine was not proven": {
    given: {
      survey: { machines },
      claims: [claim({})],
      seen: seeing({ at: "foreign", reason: "Stranger", detail: "" }),
    },
    finds: [],
  },
  "is only marked when no Claim knows it": {
    given: { survey: { machines } },
    finds: ["Machine 200 Marked: Keep Adopt Destroy"],
  },
  "is only marked when its Claim rests": {
    given: { survey: { machines }, claims: [claim({ state: "Quarantined" })] },
    finds: ["Machine 200 Marked: Keep Adopt Destroy"],
  },
  "is an object's whose status says so, though its Claim is lost": {
    given: { survey: { machines }, identities: new Set([identity]) },
    finds: [],
  },
  "is let go when its mark says so": {
    given: { survey: { machines: [{ ...machine, mark: { ...mark, state: "Released" } }] } },
    finds: [],
  },
  "is let go when its Claim says so, whatever the mark still says": {
    given: { survey: { machines }, claims: [claim({ state: "Released" })] },
    finds: [],
  },
  "is another installation's": {
    given: { survey: { machines: [{ ...machine, mark: { ...mark, installation: elsewhere } }] } },
    finds: [],
  },
  "is a person's copy under another id": {
    given: { survey: { machines: [{ ...machine, externalId: "300" }] } },
    finds: [],
  },
  "is a person's copy with another identity": {
    given: { survey: { machines: [{ ...machine, identity: elsewhere }] } },
    finds: [],
  },
  "that is empty is ours by a dead task of ours": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Released", everStood: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: dead }),
    },
    finds: ["Husk 200 Ours: Keep"],
  },
  "that is empty can be destroyed where locks can be cleared": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Released", everStood: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: dead }),
      mayUnlock: true,
    },
    finds: ["Husk 200 Ours: Keep Destroy"],
  },
  "that is empty is not judged while somebody works on it": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Reserved", everStood: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: { ...dead, state: "Held" } }),
    },
    finds: [],
  },
  "that is empty and only reserved by us is reported and no more": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Released", everStood: false })],
      seen: seeing({ at: "foreign", reason: "Husk", detail: "" }),
      mayUnlock: true,
    },
    finds: ["Husk 200 Unattributed: Keep"],
  },
  "that is empty and that no Claim knows is nobody's business": {
    given: { survey: { machines: [husk] } },
    finds: [],
  },
  "that is declared and has a dead lock of ours is a Lock": {
    given: {
      survey: { machines: [{ ...machine, content: "Known", lock: "migrate" }] },
      claims: [claim({})],
      isDeclared: () => true,
      seen: seeing({ at: "ours", machine: { ...whole, lock: { ...dead, detail: "migrate" } } }),
    },
    finds: ["Lock 200 Ours: Keep"],
  },
  "that is declared and whose lock somebody holds is not": {
    given: {
      survey: { machines: [{ ...machine, content: "Known", lock: "migrate" }] },
      claims: [claim({})],
      isDeclared: () => true,
      seen: seeing({ at: "ours", machine: { ...whole, lock: { ...dead, state: "Held" } } }),
    },
    finds: [],
  },
};

describe("a machine", () => {
  for (const [reason, { given, finds }] of Object.entries(cases)) {
    it(reason, () => assert.deepEqual(judged(given), finds));
  }
});

const volumeCases: Readonly<Record<string, Case>> = {
  "is nobody's when no Claim names it": {
    given: { survey: { volumes } },
    finds: ["Volume s:vm-200-disk-0 Unattributed: Keep Destroy"],
  },
  "is ours when the Claim of an object that is gone names it": {
    given: { survey: { volumes }, claims: [claim({ volumes: known })] },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep Destroy"],
  },
  "one of a disk that has to stay is told, and never destroyed": {
    given: {
      survey: { volumes },
      claims: [claim({ volumes: known.map((one) => ({ ...one, onDelete: "Retain" })) })],
    },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep"],
  },
  "is only marked when a Claim names it that was written from the mark": {
    given: { survey: { volumes }, claims: [claim({ state: "Reserved", volumes: known })] },
    finds: ["Volume s:vm-200-disk-0 Marked: Keep Destroy"],
  },
  "is declared when its object is there": {
    given: { survey: { volumes }, claims: [claim({ volumes: known })], isDeclared: () => true },
    finds: [],
  },
  "is declared also under another machine's id, when it was taken over": {
    given: {
      survey: { volumes },
      claims: [claim({ externalId: "300", volumes: known })],
      isDeclared: () => true,
    },
    finds: [],
  },
  "is the disk of a declared machine that takes it, whatever Claim names it": {
    given: {
      survey: { volumes },
      claims: [claim({ volumes: known })],
      taken: new Set(["s:vm-200-disk-0"]),
    },
    finds: [],
  },
  "is kept by a keeper": {
    given: { survey: { volumes }, claims: [claim({ role: "Keeper", volumes: known })] },
    finds: [],
  },
  "was let go with its machine": {
    given: { survey: { volumes }, claims: [claim({ state: "Released", volumes: known })] },
    finds: [],
  },
  "is seen to by the object whose machine is in the making": {
    given: { survey: { volumes }, claims: [claim({ state: "Reserved" })], isDeclared: () => true },
    finds: [],
  },
  "can only be kept where two nodes have one of the same id": {
    given: {
      survey: { volumes: [...volumes, { ...volume, volume: "s:vm-200-disk-0", node: "n2" }] },
    },
    finds: ["Volume s:vm-200-disk-0 Unattributed: Keep"],
  },
};

describe("a volume without its machine", () => {
  for (const [reason, { given, finds }] of Object.entries(volumeCases)) {
    it(reason, () => assert.deepEqual(judged(given), finds));
  }
});

const fileCases: Readonly<Record<string, Case>> = {
  "is nobody's when nothing knows its machine": {
    given: { survey: { files: [disc] } },
    finds: [`ISO ${disc.volume} Unattributed: Keep Destroy`],
  },
  "is ours when the Claim of its machine rests": {
    given: { survey: { files: [disc] }, claims: [claim({ state: "Quarantined" })] },
    finds: [`ISO ${disc.volume} Ours: Keep Destroy`],
  },
  "is only marked when the Claim of its machine was written from the mark": {
    given: { survey: { files: [disc] }, claims: [claim({ state: "Reserved" })] },
    finds: [`ISO ${disc.volume} Marked: Keep Destroy`],
  },
  "stays with a machine that was let go": {
    given: {
      survey: { files: [disc], machines: [{ ...machine, discs: [disc.volume] }] },
      claims: [claim({ state: "Released" })],
    },
    finds: [],
  },
  "stays in the drive of a machine that lost its object": {
    given: {
      survey: { files: [disc], machines: [{ ...machine, discs: [disc.volume] }] },
      claims: [claim({})],
    },
    finds: [],
  },
  "stays in anybody's drive": {
    given: {
      survey: {
        files: [disc],
        machines: [
          {
            externalId: "300",
            node: "n2",
            content: "Machine",
            power: "Running",
            discs: [disc.volume],
          },
        ],
      },
    },
    finds: [],
  },
  "is ours when it is in no drive of the machine that was let go": {
    given: {
      survey: { files: [disc], machines: [{ ...machine, discs: [] }] },
      claims: [claim({ state: "Released" })],
    },
    finds: [`ISO ${disc.volume} Ours: Keep Destroy`],
  },
  "is ours when the machine that was let go with it is gone": {
    given: { survey: { files: [disc] }, claims: [claim({ state: "Released" })] },
    finds: [`ISO ${disc.volume} Ours: Keep Destroy`],
  },
  "belongs to an object that is there": {
    given: { survey: { files: [disc] }, identities: new Set([identity]) },
    finds: [],
  },
  "is an image that no VMImage means": {
    given: { survey: { files: [image] } },
    finds: [`Image ${image.volume} Unattributed: Keep Destroy`],
  },
  "is an image that a VMImage means": {
    given: { survey: { files: [image] }, imageFiles: new Set([name]) },
    finds: [],
  },
};

describe("a file of Berth's naming", () => {
  for (const [reason, { given, finds }] of Object.entries(fileCases)) {
    it(reason, () => assert.deepEqual(judged(given), finds));
  }
});

it("only what cannot be told without a look is looked at", () => {
  const doubted = (
    machineGiven: SurveyedMachine,
    spec: Partial<ClaimSpec>,
    isDeclared: boolean,
  ) => {
    const survey = { ...nothing, machines: [machineGiven] };
    const input = { survey, claims: [claim(spec)], isDeclared: () => isDeclared };
    // cast: nothing else is looked at.
    return claimsInDoubt(input as unknown as SweepInput).length;
  };
  assert.equal(doubted(machine, {}, true), 0);
  assert.equal(doubted({ ...machine, lock: "backup" }, {}, true), 1);
  assert.equal(doubted({ ...machine, lock: "suspended", power: "Suspended" }, {}, true), 0);
  assert.equal(doubted(machine, {}, false), 1);
  assert.equal(doubted(husk, { state: "Released" }, false), 1);
  assert.equal(doubted(machine, { state: "Released" }, false), 0);
});

describe("what is reported", () => {
  const find: Find = {
    kind: "Volume",
    externalId: "v",
    ownership: "Unattributed",
    evidence: [],
    allowed: ["Keep"],
    node: "n1",
    blocks: [],
  };

  it("was seen twice, and for the grace time", () => {
    const finds = new Map([["o", find]]);
    const look = (nowMs: number, before: Parameters<typeof planSightings>[0]["before"]) => {
      return planSightings({ finds, before, nowMs, graceMs: 60_000 });
    };
    const first = look(0, new Map());
    assert.deepEqual(first.due, []);
    const second = look(30_000, first.sightings);
    assert.deepEqual(second.due, []);
    assert.deepEqual(look(60_000, second.sightings).due, ["o"]);
    assert.deepEqual(look(90_000, new Map()).due, [], "what went in between begins anew");
  });

  it("is reported at once where a declared machine waits for it", () => {
    const finds = new Map([["o", { ...find, blocks: ["default/web"] }]]);
    const { due } = planSightings({ finds, before: new Map(), nowMs: 0, graceMs: 60_000 });
    assert.deepEqual(due, ["o"]);
  });
});

describe("what is kept", () => {
  const graceMs = 3_600_000;

  it("is gone after two looks without it, and the grace time", () => {
    const once = planAbsences(["o"], new Map(), 0);
    assert.equal(isLongAbsent(once.get("o"), { nowMs: graceMs, graceMs }), false, "one look");
    const twice = planAbsences(["o"], once, 900_000);
    assert.equal(isLongAbsent(twice.get("o"), { nowMs: graceMs - 1, graceMs }), false);
    assert.equal(isLongAbsent(twice.get("o"), { nowMs: graceMs, graceMs }), true);
    assert.equal(isLongAbsent(twice.get("o"), { nowMs: 900_000, graceMs: 0 }), true);
    const near = planAbsences(["o"], once, 1_000);
    assert.equal(isLongAbsent(near.get("o"), { nowMs: 1_000, graceMs: 0 }), false, "too soon");
  });

  it("is counted anew when it was seen in between, or when Berth began anew", () => {
    const once = planAbsences(["o"], new Map(), 0);
    const seen = planAbsences([], once, 900_000);
    const again = planAbsences(["o"], seen, graceMs);
    assert.deepEqual(again.get("o"), { firstMs: graceMs, times: 1 });
    assert.equal(isLongAbsent(undefined, { nowMs: graceMs, graceMs }), false);
  });
});

describe("suddenly less", () => {
  const before: Extent = {
    machines: ["1", "2", "3", "4"],
    nodes: ["n1", "n2"],
    storages: ["s"],
    held: ["1", "2"],
  };

  it("is a node, a storage, or more than half of the machines", () => {
    assert.deepEqual(planSuspicion(before, before), []);
    assert.deepEqual(planSuspicion(before, { ...before, nodes: ["n1"] }), ["the node n2"]);
    assert.deepEqual(planSuspicion(before, { ...before, storages: [] }), ["the storage s"]);
    assert.deepEqual(planSuspicion(before, { ...before, machines: ["1", "2"] }), []);
    assert.deepEqual(planSuspicion(before, { ...before, machines: ["1"] }), ["3 of 4 machines"]);
  });

  it("is not what Berth itself took away", () => {
    assert.deepEqual(planSuspicion(before, { ...before, machines: ["3"], held: [] }), []);
  });

  it("does not count what Berth took away while the list was still the old one", () => {
    const row = {
      kind: "VirtualMachine",
      node: "n1",
      power: "Running",
      isTemplate: false,
    } as const;
    const rows = ["1", "2"].map((externalId) => ({ ...row, externalId }));
    // cast: only these parts of an inventory matter to how much there is.
    const old = { machines: rows, nodes: [], storages: [] } as unknown as Parameters<
      typeof extentOf
    >[0];
    const late = extentOf(old, { held: [], left: ["1", "2"] });
    assert.deepEqual(
      planSuspicion(late, extentOf({ ...old, machines: [] }, { held: [], left: [] })),
      [],
    );
  });

  it("is not what Berth is taking away, though its Claim is still held", () => {
    const now = { ...before, machines: ["3"], taken: new Set(["1", "2", "4"]) };
    assert.deepEqual(planSuspicion(before, now), []);
  });

  const loose = ["a", "b", "c"].map((id) => ({ id, storage: "s", machine: `m-${id}` }));
  const lay: Extent = { ...before, loose, listed: new Set(["a", "b", "c"]) };

  it("is most of what lay on a storage that is there, and looks empty", () => {
    const none = { ...lay, loose: [], listed: new Set<string>() };
    assert.deepEqual(planSuspicion(lay, none), ["3 of 3 orphans on the storage s"]);
    assert.deepEqual(planSuspicion(lay, { ...none, listed: new Set(["a", "b"]) }), []);
  });

  it("is not what Berth deleted there, or what a machine has again", () => {
    const none = { ...lay, loose: [], listed: new Set<string>() };
    assert.deepEqual(planSuspicion(lay, { ...none, taken: new Set(["a", "b"]) }), []);
    const again = { ...none, machines: [...lay.machines, "m-a", "m-b"] };
    assert.deepEqual(planSuspicion(lay, again), []);
  });

  it("is believed when it goes on being so", () => {
    const less = { ...before, storages: [] };
    const seen = planWatch({}, { now: before, nowMs: 0 });
    const doubt = planWatch(seen, { now: less, nowMs: 0 });
    assert.deepEqual(doubt.suspicion?.gone, ["the storage s"]);
    assert.equal(planWatch(doubt, { now: less, nowMs: 59_999 }), doubt);
    assert.deepEqual(planWatch(doubt, { now: less, nowMs: 60_000 }), { extent: less });
  });

  it("is never believed while the list of the same moment shows more", () => {
    const less = { ...before, machines: [] };
    const floor = { machines: before.machines, held: before.held };
    const doubt = planWatch({}, { now: less, floor, nowMs: 0 });
    assert.deepEqual(doubt.suspicion?.gone, ["4 of 4 machines"]);
    const still = planWatch(doubt, { now: less, floor, nowMs: 3_600_000 });
    assert.deepEqual(still.suspicion?.gone, ["4 of 4 machines"]);
  });

  it("is most of the ledger without its objects", () => {
    assert.equal(isLedgerStranded(3, 2), true);
    assert.equal(isLedgerStranded(4, 2), false);
    assert.equal(isLedgerStranded(1, 1), false);
  });
});

describe("what is done about an Orphan", () => {
  const find: Find = {
    kind: "Volume",
    externalId: "v",
    ownership: "Unattributed",
    evidence: [],
    allowed: ["Keep", "Destroy"],
    node: "n1",
    blocks: [],
  };
  const operation = {
    id: "1",
    step: "Destroy",
    intent: "",
    attempt: 1,
    since: "2026-01-01T00:00:00Z",
  };
  const spec: DecisionInput["spec"] = { hypervisor: "lab", kind: "Volume", externalId: "v" };
  const plan = (given: Partial<DecisionInput>, said: Partial<typeof spec> = {}): string => {
    const next = planOrphan({
      find,
      swept: 10,
      operation: undefined,
      settledAt: undefined,
      node: "n1",
      isLongAbsent: false,
      isChosen: false,
      ...given,
      spec: { ...spec, ...said },
    });
    return next.do === "rest" ? next.as : next.do;
  };

  it("is what a person said, and nothing without a word", () => {
    assert.equal(plan({}), "undecided");
    assert.equal(plan({}, { decision: "Keep" }), "kept");
    assert.equal(plan({}, { decision: "Destroy" }), "destroy");
    assert.equal(plan({}, { decision: "Adopt" }), "adopt");
    assert.equal(plan({ find: { ...find, allowed: ["Keep"] } }, { decision: "Destroy" }), "refuse");
  });

  it("is that the object goes when the thing is gone or declared; one that is kept, later", () => {
    assert.equal(plan({ find: undefined }), "remove");
    assert.equal(plan({ find: undefined }, { decision: "Keep" }), "keptUnseen");
    assert.equal(plan({ find: undefined, isLongAbsent: true }, { decision: "Keep" }), "remove");
    assert.equal(plan({ isLongAbsent: true }, { decision: "Keep" }), "kept");
    assert.equal(plan({ find: undefined }, { decision: "Destroy" }), "remove");
  });

  it("is believed only after another listing", () => {
    assert.equal(plan({ operation }), "wait");
    assert.equal(plan({ operation, settledAt: 10, find: undefined }), "list");
    assert.equal(plan({ operation, settledAt: 9, find: undefined }), "finish");
    assert.equal(plan({ operation, settledAt: 9 }), "vain");
    assert.equal(plan({ operation, settledAt: 9, find: { ...find, node: "n2" } }), "finish");
  });

  it("is done by policy only to the one that was chosen, and never against a word", () => {
    assert.equal(plan({ isChosen: true }), "destroy");
    assert.equal(plan({ isChosen: true }, { decision: "Keep" }), "kept");
  });
});
