import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../api/index.ts";
import type { InventoryMachine, Machine, Mark, Seen } from "../../hypervisor/index.ts";
import { identityOf } from "../claims/index.ts";
import type { Desired } from "./desired.ts";
import { findMadeElsewhere } from "./made-elsewhere.ts";
import { proposeId } from "./propose-id.ts";
import type { ConnectedTurn } from "./turn.ts";

interface Stage {
  readonly rows: readonly Partial<InventoryMachine>[];
  /** What is observed under an id; absent: nothing. */
  readonly seen?: Readonly<Record<string, Seen["at"]>>;
  /** Of what is foreign: it was released, and has this identity. */
  readonly released?: string;
  /** Of what is foreign: its marker, and its SMBIOS UUID. */
  readonly marked?: { readonly mark: Partial<Mark>; readonly identity: string };
  readonly claims?: Readonly<Record<string, Claim["spec"]["state"]>>;
  /** The id that the driver proposes. */
  readonly free?: string;
}

const creationTimestamp = "2026-01-02T03:04:05Z";
const owner = { namespace: "default", name: "web" };
const desired: Desired = { shape: { name: "web" }, disks: [] };

/** A turn as far as a search needs it; with what was observed. */
function stage({ rows, seen = {}, released, marked, claims = {}, free = "900" }: Stage): {
  readonly turn: ConnectedTurn;
  readonly observed: string[];
} {
  const observed: string[] = [];
  const machines = rows.map((row) => ({ kind: "Machine", node: "n1", ...row }));
  const driver = {
    prefer: () => "100",
    history: () => Promise.resolve({ ok: true, value: [{ isOurs: true }] }),
    propose: () => Promise.resolve({ ok: true, value: free }),
    observe: ({ externalId }: Machine) => {
      observed.push(externalId);
      const at = seen[externalId] ?? "absent";
      const machine = { externalId, node: "n1", identity: released, ...marked };
      const reason = released === undefined ? "Stranger" : "Released";
      const lock = { state: "Held", detail: "create" };
      return Promise.resolve({ at, machine, reason, lock, failure: { category: "NetworkError" } });
    },
  };
  const ledger = {
    installation: "i",
    idsOn: () => Object.keys(claims),
    draft: (reservation: object) => ({ ...reservation, installation: "i", owner }),
    known: (_system: string, id: string) => claims[id] && { spec: { state: claims[id] } },
  };
  const vm = {
    metadata: { namespace: "default", name: "web", uid: "u", creationTimestamp },
    spec: {},
  };
  const connection = { name: "h", systemId: "s", inventory: { machines } };
  const lookups = { vms: { byIndex: () => [] } };
  const deps = { ledger, lookups };
  // cast: what a search reads of a turn.
  const turn = { key: "default/web", vm, driver, deps, connection } as unknown as ConnectedTurn;
  return { turn, observed };
}

describe("a VM that another run of this installation created for the object", () => {
  it("is searched by name and by the ids that it may have, and costs nothing where none fits", async () => {
    const others = [{ externalId: "101", name: "db" }];
    const { turn, observed } = stage({ rows: others, seen: { "101": "ours" } });
    assert.deepEqual(await findMadeElsewhere(turn, desired), { is: "nothing" });
    assert.deepEqual(observed, []);
    const rows = [...others, { externalId: "102", name: "web" }, { externalId: "100", name: "x" }];
    const named = stage({ rows, seen: { "102": "ours", "100": "foreign" } });
    const found = await findMadeElsewhere(named.turn, desired);
    assert.deepEqual(found, { is: "vm", reservation: { externalId: "102", node: "n1" } });
    assert.deepEqual(named.observed, ["102", "100"]);
  });

  it("is none of those that a Claim holds or that were released", async () => {
    const rows = ["102", "103", "104"].map((externalId) => ({ externalId, name: "web" }));
    const seen = { "102": "ours", "103": "ours", "104": "ours" } as const;
    const claims = { "102": "Bound", "103": "Released", "104": "Quarantined" } as const;
    const found = await findMadeElsewhere(stage({ rows, seen, claims }).turn, desired);
    assert.deepEqual(found, { is: "vm", reservation: { externalId: "104", node: "n1" } });
  });

  it("is told as released where it was created for this very object", async () => {
    const rows = [{ externalId: "102", name: "web" }];
    const seen = { "102": "foreign" } as const;
    const own = stage({ rows, seen, released: identityOf("i", "u") });
    const found = await findMadeElsewhere(own.turn, desired);
    assert.deepEqual(found, { is: "released", reservation: { externalId: "102", node: "n1" } });
    const other = stage({ rows, seen, released: identityOf("i", "earlier") });
    assert.deepEqual(await findMadeElsewhere(other.turn, desired), { is: "nothing" });
  });

  it("is named where there are two, and neither is taken", async () => {
    const rows = ["102", "103"].map((externalId) => ({ externalId, name: "web" }));
    const { turn } = stage({ rows, seen: { "102": "ours", "103": "ours" } });
    const found = await findMadeElsewhere(turn, desired);
    assert.equal(found.is, "failed");
    assert.match(JSON.stringify(found), /IdentityConflict.*102 on n1 and 103 on n1/);
  });

  it("is waited for while it is being created, and where it cannot be observed", async () => {
    const rows = [{ externalId: "100" }];
    const opaque = await findMadeElsewhere(
      stage({ rows, seen: { "100": "opaque" } }).turn,
      desired,
    );
    assert.equal(opaque.is, "locked");
    const unknown = await findMadeElsewhere(
      stage({ rows, seen: { "100": "unknown" } }).turn,
      desired,
    );
    assert.equal(unknown.is, "failed");
  });

  it("keeps a second one from being created while no list shows it yet", async () => {
    const hidden = stage({ rows: [], seen: { "100": "ours" } });
    const proposal = await proposeId(hidden.turn, desired, []);
    assert.match(JSON.stringify(proposal), /UnknownOutcome.*created as 100 on h/);
    const strangers = stage({ rows: [], seen: { "100": "foreign" } });
    assert.deepEqual(await proposeId(strangers.turn, desired, []), { ok: true, value: "900" });
    const own = stage({ rows: [], free: "100" });
    assert.deepEqual(await proposeId(own.turn, desired, []), { ok: true, value: "100" });
    assert.deepEqual(own.observed, []);
  });
});

describe("a VM that this installation created for an earlier object of the same name", () => {
  const rows = [{ externalId: "102", name: "web" }];
  const seen = { "102": "foreign" } as const;
  const mark = {
    state: "Owned",
    installation: "i",
    owner,
    identity: "earlier",
    externalId: "102",
  } as const;
  const find = (scene: Partial<Stage>): ReturnType<typeof findMadeElsewhere> => {
    return findMadeElsewhere(stage({ rows, seen, ...scene }).turn, desired);
  };

  it("keeps a second one from being created where no Claim knows it", async () => {
    const marked = { mark, identity: "earlier" };
    const found = await find({ marked });
    assert.equal(found.is, "lost");
    assert.match(JSON.stringify(found), /IdentityConflict.*VM 102 on n1 of h for default.web/);
    assert.equal((await find({ marked, claims: { "102": "Quarantined" } })).is, "lost");
    assert.deepEqual(await find({ marked, claims: { "102": "Released" } }), { is: "nothing" });
  });

  it("is not overlooked among many of its name: where they are too many, nothing is created", async () => {
    const namesakes = Array.from({ length: 65 }, (_, index) => {
      return { externalId: String(200 + index), name: "web" };
    });
    const marked = { mark: { ...mark, externalId: "263" }, identity: "earlier" };
    const many = { rows: namesakes.slice(0, 64), seen: { "263": "foreign" }, marked } as const;
    assert.equal((await find(many)).is, "lost");
    assert.equal((await find({ ...many, rows: namesakes, seen: {} })).is, "failed");
  });

  it("is found by the name of the object too, where the declared name of the VM is another", async () => {
    const { turn } = stage({ rows, seen, marked: { mark, identity: "earlier" } });
    const found = await findMadeElsewhere(turn, { ...desired, shape: { name: "other" } });
    assert.equal(found.is, "lost");
  });

  it("is none that is a copy, was released, or belongs to somebody else", async () => {
    const others = [
      { mark, identity: "another" },
      { mark: { ...mark, externalId: "101" }, identity: "earlier" },
      { mark: { ...mark, state: "Released" }, identity: "earlier" },
      { mark: { ...mark, installation: "j" }, identity: "earlier" },
      { mark: { ...mark, owner: { ...owner, namespace: "team" } }, identity: "earlier" },
      { mark: { ...mark, owner: { ...owner, name: "db" } }, identity: "earlier" },
    ] as const;
    for (const marked of others) {
      assert.deepEqual(await find({ marked }), { is: "nothing" }, JSON.stringify(marked));
    }
  });

  it("does not keep the VM of this very object from being taken over", async () => {
    const both = [...rows, { externalId: "103", name: "web" }];
    const found = await find({
      rows: both,
      seen: { ...seen, "103": "ours" },
      marked: { mark, identity: "earlier" },
    });
    assert.deepEqual(found, { is: "vm", reservation: { externalId: "103", node: "n1" } });
  });
});
