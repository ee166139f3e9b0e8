import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, HypervisorStatus, Orphan, VirtualMachine } from "../../api/index.ts";
import { formatMicroTime } from "../../kernel/clock.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { Find } from "./find.ts";
import { chooseByPolicy } from "./policy.ts";
import type { SweepDeps } from "./sweep-deps.ts";

// What the policy chooses is destroyed without anybody being asked.

const find: Find = {
  kind: "Volume",
  externalId: "s:vm-200-disk-0",
  ownership: "Ours",
  evidence: [],
  allowed: ["Keep", "Destroy"],
  node: "n1",
  claim: "c-1",
  blocks: [],
};

const quiet = { since: time(0) };

function time(ms: number): string {
  return formatMicroTime(ms);
}

interface Given {
  readonly policy?: string;
  readonly find?: Partial<Find>;
  readonly decision?: Orphan["spec"]["decision"];
  /** Another Orphan, the VM of the same Claim, which a person keeps. */
  readonly keepsVm?: boolean;
  /** Claims that are held, and how many of them have no object. */
  readonly held?: number;
  readonly stranded?: number;
  /** What sweeps recorded. */
  readonly sweep?: HypervisorStatus["sweep"];
  /** What the Orphan says of itself, and that of another one that was found later. */
  readonly status?: Orphan["status"];
  readonly later?: Orphan["status"] | undefined;
}

function chosen(given: Given): string | undefined {
  const { held = 4, stranded = 1, policy = "DeleteOwned", keepsVm = false } = given;
  const orphans = [
    {
      metadata: { name: "o-1" },
      spec: { decision: given.decision, kind: "Volume" },
      status: { firstSeenAt: "1970-01-01T00:00:01Z", ...given.status },
    },
    ...(given.later
      ? [{ metadata: { name: "o-3" }, spec: { kind: "Volume" }, status: given.later }]
      : []),
    ...(keepsVm
      ? [
          {
            metadata: { name: "o-2" },
            spec: { decision: "Keep", kind: "Machine" },
            status: { claim: "c-1" },
          },
        ]
      : []),
  ] as unknown as Orphan[];
  const claims = Array.from({ length: held }, (_, index) => ({
    spec: {
      state: "Bound",
      role: "VM",
      owner: { namespace: "default", name: index < stranded ? "gone" : "here" },
    },
  })) as unknown as Claim[];
  const deps = {
    clock: { nowMs: () => 10_000_000 },
    hypervisors: { get: () => ({ status: { sweep: given.sweep ?? quiet } }) },
    orphans: { byIndex: () => orphans },
    claims: { byIndex: () => claims },
    vms: {
      get: (key: string) =>
        key === "default/here" ? ({ metadata: {} } as VirtualMachine) : undefined,
    },
  } as unknown as SweepDeps;
  const connection = {
    name: "lab",
    systemId: "s",
    spec: { orphans: { policy, graceSeconds: 3600, sweepSeconds: 60 } },
  } as unknown as Connection;
  const finds = new Map(["o-1", "o-3"].map((name) => [name, { ...find, ...given.find }]));
  return chooseByPolicy(connection, deps, finds);
}

describe("the policy DeleteOwned", () => {
  it("chooses what is ours, and may be destroyed", () => {
    assert.equal(chosen({}), "o-1");
  });

  it("destroys nothing where nobody asked for it", () => {
    assert.equal(chosen({ policy: "Report" }), undefined);
  });

  it("destroys nothing that is not proven ours", () => {
    assert.equal(chosen({ find: { ownership: "Marked" } }), undefined);
  });

  it("destroys nothing that was replaced since it was reported", () => {
    assert.equal(chosen({ status: { observation: "0123456789abcdef" } }), undefined);
  });

  it("destroys nothing that says onDelete: Retain, or runs", () => {
    assert.equal(chosen({ find: { allowed: ["Keep"] } }), undefined);
  });

  it("destroys nothing that a person decided about", () => {
    assert.equal(chosen({ decision: "Keep" }), undefined);
  });

  it("destroys no disk of a VM that a person keeps", () => {
    assert.equal(chosen({ keepsVm: true }), undefined);
  });

  it("destroys no image: a person may have brought it", () => {
    assert.equal(chosen({ find: { kind: "Image" } }), undefined);
  });

  it("destroys nothing while most Claims have lost their objects: the kind may be gone", () => {
    assert.equal(chosen({ held: 4, stranded: 3 }), undefined);
  });

  it("destroys nothing within the grace time of the first sweep: what was before is not known", () => {
    assert.equal(chosen({ sweep: { since: time(9_000_000) } }), undefined);
  });

  it("destroys nothing when the Hypervisor lost its status, and with it what sweeps recorded", () => {
    assert.equal(chosen({ sweep: {} as never }), undefined);
  });

  it("destroys nothing within the grace time of a suspicious survey, whoever made it", () => {
    const suspicion = { since: time(9_000_000), gone: [] };
    assert.equal(chosen({ sweep: { ...quiet, suspicion } }), undefined);
    const longAgo = { since: time(1_000_000), gone: [] };
    assert.equal(chosen({ sweep: { ...quiet, suspicion: longAgo } }), "o-1");
  });

  it("chooses by what objects say: what was found first, and goes on with what was begun", () => {
    const later = { firstSeenAt: "1970-01-01T00:00:02Z" };
    assert.equal(chosen({ later }), "o-1");
    // cast: only that there is one matters.
    const begun = { ...later, operation: { step: "Destroy" } } as Orphan["status"];
    assert.equal(chosen({ later: begun }), "o-3");
  });

  it("leaves what cannot go for the others", () => {
    const later = { firstSeenAt: "1970-01-01T00:00:02Z" };
    const waitingFor = { kind: "Lock", name: "it", since: time(0) } as const;
    assert.equal(chosen({ later, status: { waitingFor } }), "o-3");
    assert.equal(chosen({ status: { waitingFor } }), "o-1", "and it has its turn");
  });
});
