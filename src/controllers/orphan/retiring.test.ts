import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Leftover, Seen, Survey } from "../../hypervisor/index.ts";
import type { Ledger } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { SweepInput } from "./plan.ts";
import { claimsOfNothing, retireUnlessThere } from "./retiring.ts";

// A Claim that is retired is forgotten with all that it says: its id is given to another VM later,
// and its volumes are nobody's.

const identity = "00000000-0000-4000-8000-00000000f00d";

function claimOf(spec: Partial<ClaimSpec> = {}): Claim {
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Claim",
    metadata: { name: "c-1", uid: "u" },
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
      installation: "i",
      owner: { namespace: "default", name: "web", uid: "v" },
      ...spec,
    },
  };
}

interface Server {
  readonly claim?: Claim | undefined;
  readonly seen?: Seen;
  readonly leftovers?: readonly Leftover[];
  readonly hasOwner?: boolean;
}

/** Whether the Claim was retired. */
async function isRetired({
  claim = claimOf(),
  seen = { at: "absent" },
  leftovers = [],
  hasOwner = false,
}: Server): Promise<boolean> {
  let isDone = false;
  const driver = {
    observe: () => Promise.resolve(seen),
    leftovers: () => Promise.resolve({ ok: true, value: leftovers }),
  };
  const ledger = {
    read: () => Promise.resolve(claim),
    retire: () => Promise.resolve(void (isDone = true)),
  };
  const connection = { driver, systemId: "s" } as unknown as Connection;
  await retireUnlessThere(connection, ledger as unknown as Ledger, {
    externalId: "200",
    hasOwner: () => Promise.resolve(hasOwner),
  });
  return isDone;
}

describe("a Claim under which nothing seems to be", () => {
  it("is retired when the VM and its volumes are proven gone", async () => {
    assert.equal(await isRetired({}), true);
  });

  it("is not forgotten while its VM is there", async () => {
    const seen: Seen = { at: "foreign", reason: "MarkLost", detail: "" };
    assert.equal(await isRetired({ seen }), false);
  });

  it("is not forgotten while the VM cannot be observed", async () => {
    const failure = { category: "NetworkError", message: "" } as const;
    assert.equal(await isRetired({ seen: { at: "unknown", failure } }), false);
  });

  it("is not forgotten while volumes of it are left: they would be nobody's", async () => {
    const left = { volume: "s:vm-200-disk-0", storage: "s", node: "n1", proof: "Claimed" };
    assert.equal(await isRetired({ leftovers: [left as unknown as Leftover] }), false);
  });

  it("is not forgotten while a volume is left that is probably Berth's", async () => {
    const left = { volume: "s:vm-200-disk-0", storage: "s", node: "n1", proof: "Probable" };
    assert.equal(await isRetired({ leftovers: [left as unknown as Leftover] }), false);
  });

  it("is retired where only somebody else's volume has its id: nothing of Berth's is left", async () => {
    for (const proof of ["Unattributed", "Before"]) {
      const left = { volume: "s:vm-200-disk-3", storage: "s", node: "n1", proof };
      assert.equal(await isRetired({ leftovers: [left as unknown as Leftover] }), true, proof);
    }
  });

  it("is not taken from an object that a stale cache did not show", async () => {
    assert.equal(await isRetired({ hasOwner: true }), false);
  });

  it("is not retired twice: one that was released says where its VM is", async () => {
    assert.equal(await isRetired({ claim: claimOf({ state: "Released" }) }), false);
  });
});

const nothing: Survey = {
  machines: [],
  volumes: [],
  files: [],
  nodes: ["n1"],
  storages: ["s"],
  missing: [],
};

function empty(claim: Claim, survey: Partial<Survey> = {}, isDeclared = false): number {
  const input = {
    claims: [claim],
    survey: { ...nothing, ...survey },
    isDeclared: () => isDeclared,
  };
  return claimsOfNothing(input as unknown as SweepInput).length;
}

describe("a Claim that is held for nothing", () => {
  it("is one whose object is gone and of which nothing is listed", () => {
    assert.equal(empty(claimOf()), 1);
  });

  it("is not one whose object is there: its VM is being created", () => {
    assert.equal(empty(claimOf(), {}, true), 0);
  });

  it("is not one whose VM is listed", () => {
    const machine = { externalId: "200", node: "n1", content: "Known", power: "Stopped" } as const;
    assert.equal(empty(claimOf(), { machines: [machine] }), 0);
  });

  it("is not one whose disk is listed under another id", () => {
    const id = "s:vm-7-disk-0";
    const place = { storage: "s", node: "n1", isShared: false, sizeBytes: 1 };
    const volumes = [{ id, role: "Disk", state: "Attached" } as const];
    const found = { ...place, volume: id, externalId: "7" };
    assert.equal(empty(claimOf({ volumes }), { volumes: [found] }), 0);
  });

  it("is not one of which a volume is listed that is probably Berth's", () => {
    const id = "s:vm-200-disk-0";
    const place = { storage: "s", node: "n1", isShared: false, sizeBytes: 1 };
    const probable = { id, storage: "s", node: "n1", size: "1" };
    const probableVolumes = [probable] as unknown as NonNullable<ClaimSpec["probableVolumes"]>;
    const found = { ...place, volume: id, externalId: "200" };
    assert.equal(empty(claimOf({ probableVolumes }), { volumes: [found] }), 0);
  });

  it("is one under whose id only somebody else's volume is listed", () => {
    const place = { storage: "s", node: "n1", isShared: false, sizeBytes: 1 };
    const found = { ...place, volume: "s:vm-200-disk-3", externalId: "200" };
    assert.equal(empty(claimOf(), { volumes: [found] }), 1);
  });

  it("is not one whose first-boot ISO is left: it may hold secrets", () => {
    const fileName = `berth-seed-${identity}-0123456789abcdef.iso`;
    const place = { storage: "s", node: "n1", isShared: false, sizeBytes: 1 };
    const file = { ...place, volume: `s:iso/${fileName}`, fileName, use: "Disc" } as const;
    assert.equal(empty(claimOf(), { files: [file] }), 0);
  });
});
