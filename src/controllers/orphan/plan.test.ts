import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Machine, Mark, Seen, Survey, SurveyedMachine } from "../../hypervisor/index.ts";
import { planOrphan, type DecisionInput } from "./decide.ts";
import { extentOf, goneFrom, goneText, isLedgerStranded, type Extent } from "./extent.ts";
import type { Find } from "./find.ts";
import { claimsInDoubt, planFinds, type SweepInput } from "./plan.ts";
import { isLongAbsent, planAbsences, planSightings } from "./sightings.ts";

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
      target: "VM",
      hypervisor: { name: "lab", systemId: "s" },
      externalId: "200",
      idChosenBy: "Berth",
      state: "Bound",
      role: "VM",
      origin: "Created",
      everExisted: true,
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
const retained = known.map((one) => ({ ...one, onDelete: "Retain" }) as const);
const holding = seeing({
  at: "ours",
  machine: {
    ...whole,
    volumes: [
      { id: "s:vm-200-disk-0", role: "Disk", storage: "s", state: "Attached", isOwn: true },
    ],
  },
});

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
      claims: [claim({ state: "Reserved", everExisted: false })],
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
  "is a disk-holder VM that was released, whose object is gone on purpose": {
    given: {
      survey: { machines },
      claims: [claim({ role: "DiskHolder", state: "Released" })],
      seen: ours,
    },
    finds: [],
  },
  "is a disk-holder VM that holds a disk, whoever was to release it": {
    given: { survey: { machines }, claims: [claim({ role: "DiskHolder" })], seen: holding },
    finds: [],
  },
  "is a disk-holder VM that holds nothing, and nobody is left to remove it": {
    given: { survey: { machines }, claims: [claim({ role: "DiskHolder" })], seen: ours },
    finds: ["Machine 200 Ours: Keep Adopt Destroy"],
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
      claims: [claim({ state: "Released", everExisted: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: dead }),
    },
    finds: ["Husk 200 Ours: Keep"],
  },
  "that is empty and was to become a disk-holder VM is reported like any other": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ role: "DiskHolder", state: "Released", everExisted: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: dead }),
    },
    finds: ["Husk 200 Ours: Keep"],
  },
  "that is empty can be destroyed where locks can be cleared": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Released", everExisted: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: dead }),
      mayUnlock: true,
    },
    finds: ["Husk 200 Ours: Keep Destroy"],
  },
  "that is empty is not judged while somebody works on it": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Reserved", everExisted: false })],
      seen: seeing({ at: "opaque", node: "n1", lock: { ...dead, state: "Held" } }),
    },
    finds: [],
  },
  "that is empty and only reserved by us is reported and no more": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ state: "Released", everExisted: false })],
      seen: seeing({ at: "foreign", reason: "Husk", detail: "" }),
      mayUnlock: true,
    },
    finds: ["Husk 200 Unattributed: Keep"],
  },
  "that is empty and held for an object that is gone is reported and no more": {
    given: {
      survey: { machines: [husk] },
      claims: [claim({ everExisted: true })],
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

/** The Claim of an operation that was to make a volume by name. */
function naming(more: Partial<NonNullable<ClaimSpec["allocation"]>>): Claim {
  const { node } = volume;
  const since = "2026-01-02T03:30:00Z";
  const allocation = { operation: "o1", node, storage: "s", since, listed: [], complete: true };
  return claim({ allocation: { ...allocation, ...more } });
}

type ProbableVolume = NonNullable<ClaimSpec["probableVolumes"]>[number];

/** A volume that a failed operation left, as its Claim has it. */
function probable(id: string, size = "7"): ProbableVolume {
  const seenAt = "2026-01-02T03:30:00Z";
  return { id, storage: "s", node: "n1", size, operation: "o1", seenAt, evidence: ["It fits."] };
}

const volumeCases: Readonly<Record<string, Case>> = {
  "is nobody's when no Claim names it": {
    given: { survey: { volumes } },
    finds: ["Volume s:vm-200-disk-0 Unattributed: Keep Destroy"],
  },
  "is ours when the Claim of an object that is gone names it": {
    given: { survey: { volumes }, claims: [claim({ volumes: known })] },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep Destroy"],
  },
  "is nobody's when its Claim recorded another size: the name was used again": {
    given: {
      survey: { volumes },
      claims: [claim({ volumes: known.map((one) => ({ ...one, size: "6442450944" })) })],
    },
    finds: ["Volume s:vm-200-disk-0 Unattributed: Keep Destroy"],
  },
  "is ours with the size that an operation was to give it": {
    given: {
      survey: { volumes },
      claims: [
        claim({
          volumes: known.map((one) => ({
            ...one,
            size: "1048576",
            growsTo: String(volume.sizeBytes),
          })),
        }),
      ],
    },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep Destroy"],
  },
  "is nobody's that somebody renamed by hand: it may be a person's": {
    given: {
      survey: { volumes },
      claims: [claim({ volumes: known.map((one) => ({ ...one, proof: "Followed" as const })) })],
    },
    finds: ["Volume s:vm-200-disk-0 Unattributed: Keep Destroy"],
  },
  "is probably ours when a failed operation left it, and nobody's with another size": {
    given: {
      survey: { volumes: [...volumes, { ...volume, volume: "s:vm-200-disk-1" }] },
      claims: [
        claim({ probableVolumes: [probable("s:vm-200-disk-0"), probable("s:vm-200-disk-1", "8")] }),
      ],
    },
    finds: [
      "Volume s:vm-200-disk-0 Probable: Keep Destroy",
      "Volume s:vm-200-disk-1 Unattributed: Keep Destroy",
    ],
  },
  "is ours when Berth chose its name and the Claim of an object that is gone has it": {
    given: { survey: { volumes }, claims: [naming({ volume: "s:vm-200-disk-0" })] },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep Destroy"],
  },
  "is the person's when it was let go with its VM": {
    given: {
      survey: { volumes },
      claims: [
        claim({
          ...naming({ volume: "s:vm-200-disk-0" }).spec,
          state: "Released",
          volumes: known,
        }),
      ],
    },
    finds: [],
  },
  "is ours also under the name of an earlier attempt": {
    given: { survey: { volumes }, claims: [naming({ earlier: ["s:vm-200-disk-0"] })] },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep Destroy"],
  },
  "is nobody's on another node than the one that it was to be made on": {
    given: {
      survey: { volumes },
      claims: [naming({ volume: "s:vm-200-disk-0", node: "elsewhere" })],
    },
    finds: ["Volume s:vm-200-disk-0 Unattributed: Keep Destroy"],
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
  "is a disk-holder VM's that was released": {
    given: {
      survey: { volumes },
      claims: [claim({ role: "DiskHolder", state: "Released", volumes: known })],
    },
    finds: [],
  },
  "is a disk-holder VM's whose object is gone, and has to stay": {
    given: {
      survey: { volumes },
      claims: [claim({ role: "DiskHolder", volumes: retained })],
    },
    finds: ["Volume s:vm-200-disk-0 Ours: Keep"],
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

it("a volume that appears late under the name in a Claim that was given up is reported", () => {
  const named = "s:vm-200-berth-0123456789ab";
  const finds = (state: ClaimSpec["state"]): string[] => {
    const { spec } = naming({ volume: named });
    const survey = { volumes: [{ ...volume, volume: named }] };
    return judged({ survey, claims: [claim({ ...spec, state })] });
  };
  assert.deepEqual(finds("Quarantined"), [`Volume ${named} Unattributed: Keep Destroy`]);
  assert.deepEqual(finds("Released"), [`Volume ${named} Ours: Keep Destroy`]);
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
    assert.deepEqual([...first.sightings], [["o", { firstMs: 0, times: 1 }]]);
    const recorded = new Map([["o", 0]]);
    const second = look(30_000, recorded);
    assert.deepEqual(second.due, []);
    assert.deepEqual([...second.sightings], [["o", { firstMs: 0, times: 2 }]]);
    assert.deepEqual(look(60_000, recorded).due, ["o"]);
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
    const since = planAbsences(["o"], planAbsences(["o"], new Map(), 0), 900_000).get("o");
    assert.equal(since, 0);
    assert.equal(isLongAbsent(since, { sweptMs: 0, graceMs }), false, "one look");
    assert.equal(isLongAbsent(since, { sweptMs: graceMs - 1, graceMs }), false);
    assert.equal(isLongAbsent(since, { sweptMs: graceMs, graceMs }), true);
    assert.equal(isLongAbsent(since, { sweptMs: 900_000, graceMs: 0 }), true);
    assert.equal(isLongAbsent(since, { sweptMs: 1_000, graceMs: 0 }), false, "too soon");
  });

  it("is counted anew when it was seen in between", () => {
    const seen = planAbsences([], planAbsences(["o"], new Map(), 0), 900_000);
    assert.equal(planAbsences(["o"], seen, graceMs).get("o"), graceMs);
    assert.equal(isLongAbsent(undefined, { sweptMs: graceMs, graceMs }), false);
  });
});

describe("suddenly less", () => {
  const before: Extent = {
    machines: ["1", "2", "3", "4"],
    nodes: ["n1", "n2"],
    storages: ["s"],
    held: ["1", "2"],
  };

  const gone = (old: Extent, now: Extent): string[] => goneFrom(old, now).map(goneText);

  it("is a node, a storage, or more than half of the machines", () => {
    assert.deepEqual(gone(before, before), []);
    assert.deepEqual(gone(before, { ...before, nodes: ["n1"] }), ["the node n2"]);
    assert.deepEqual(gone(before, { ...before, storages: [] }), ["the storage s"]);
    assert.deepEqual(gone(before, { ...before, machines: ["1", "2"] }), []);
    assert.deepEqual(gone(before, { ...before, machines: ["1"] }), ["3 of 4 machines"]);
  });

  it("is not what Berth itself took away", () => {
    assert.deepEqual(gone(before, { ...before, machines: ["3"], held: [] }), []);
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
    assert.deepEqual(gone(late, extentOf({ ...old, machines: [] }, { held: [], left: [] })), []);
  });

  it("is not what Berth is taking away, though its Claim is still held", () => {
    const now = { ...before, machines: ["3"], taken: new Set(["1", "2", "4"]) };
    assert.deepEqual(gone(before, now), []);
  });

  const loose = ["a", "b", "c"].map((id) => ({ id, storage: "s", machine: `m-${id}` }));
  const lay: Extent = { ...before, loose, listed: new Set(["a", "b", "c"]) };

  it("is most of what lay on a storage that is there, and looks empty", () => {
    const none = { ...lay, loose: [], listed: new Set<string>() };
    assert.deepEqual(gone(lay, none), ["3 of 3 orphans on the storage s"]);
    assert.deepEqual(gone(lay, { ...none, listed: new Set(["a", "b"]) }), []);
  });

  it("is not what Berth deleted there, or what a machine has again", () => {
    const none = { ...lay, loose: [], listed: new Set<string>() };
    assert.deepEqual(gone(lay, { ...none, taken: new Set(["a", "b"]) }), []);
    const again = { ...none, machines: [...lay.machines, "m-a", "m-b"] };
    assert.deepEqual(gone(lay, again), []);
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
      observation: "seen",
      decidedFor: "seen",
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

  it("destroys nothing that is not what was decided about", () => {
    const other = { observation: "another" };
    assert.equal(plan(other, { decision: "Destroy" }), "changed");
    assert.equal(plan({ decidedFor: undefined }, { decision: "Destroy" }), "changed");
    assert.equal(plan({ ...other, find: { ...find, allowed: ["Keep"] } }), "undecided");
    assert.equal(plan(other, { decision: "Keep" }), "kept");
  });

  it("is over when another thing has the id: nobody has decided about that", () => {
    const other = { operation, settledAt: 9, observation: "another" };
    assert.equal(plan(other), "finish");
    assert.equal(plan({ ...other, decidedFor: undefined }), "vain");
    assert.equal(plan({ ...other, find: { ...find, kind: "Machine" } }), "vain");
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
