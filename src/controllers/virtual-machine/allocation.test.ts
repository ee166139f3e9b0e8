import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Allocating, Failure, Operation } from "../../hypervisor/index.ts";
import { limits } from "../../kernel/limits.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { closeAllocation, recordAllocation } from "./allocation.ts";
import { claim, gib } from "./fixture.ts";
import type { ConnectedTurn } from "./turn.ts";

type Allocation = NonNullable<ClaimSpec["allocation"]>;

const place: Allocating = { node: "n1", storage: "store", listed: [], complete: true };
const addDisk = { kind: "addDisk", disk: { name: "data" } } as Operation;

/** A turn, and what it wrote into the Claim. */
function turnOf(
  allocating: Allocating,
  { heldBytes = 0, allocation }: { heldBytes?: number; allocation?: Allocation } = {},
): { turn: ConnectedTurn; written: Allocation[] } {
  const written: Allocation[] = [];
  const held = { id: "store:vm-1-disk-1", storage: "store", node: "n1", size: String(heldBytes) };
  const ledger = {
    probableOn: () => [held],
    record: (of: object, change: { allocation: Allocation }) => {
      written.push(change.allocation);
      return Promise.resolve(of);
    },
  };
  const turn = {
    claim: { spec: { ...claim, ...(allocation && { allocation }) } },
    deps: { ledger, clock: new VirtualClock() },
    driver: { allocating: () => Promise.resolve({ ok: true, value: allocating }) },
    connection: { systemId: "s", inventory: { storages: [] } },
  } as unknown as ConnectedTurn;
  return { turn, written };
}

function begin(turn: ConnectedTurn): Promise<Failure | undefined> {
  return recordAllocation(turn, addDisk, "op-1");
}

describe("what an operation is about to allocate", () => {
  it("is in the Claim before the operation begins", async () => {
    const listed = ["store:vm-100-disk-0"];
    const { turn, written } = turnOf({ ...place, listed, sizeBytes: gib });
    assert.equal(await begin(turn), undefined);
    const [{ operation, complete, size, disk, listed: kept } = {}] = written;
    assert.deepEqual([operation, complete, size, kept], ["op-1", true, String(gib), listed]);
    assert.equal(disk, "data");
  });

  it("is not called completely listed if a Claim cannot hold the list", async () => {
    const listed = Array.from({ length: 257 }, (_, number) => `store:vm-100-disk-${number}`);
    const { turn, written } = turnOf({ ...place, listed });
    await begin(turn);
    assert.deepEqual([written[0]?.complete, written[0]?.listed.length], [false, 256]);
  });

  it("is not allocated while failed attempts hold all that they may", async () => {
    const { turn, written } = turnOf(place, { heldBytes: limits.probableBytesPerStorage });
    assert.equal((await begin(turn))?.category, "OrphanedVolumes");
    assert.deepEqual(written, []);
  });

  it("is not settled by the end of another operation", async () => {
    const since = "2026-01-02T03:30:00Z";
    const { turn, written } = turnOf(place, {
      allocation: { ...place, operation: "op-1", since } as Allocation,
    });
    await closeAllocation(turn, "op-2");
    assert.deepEqual(written, []);
    await closeAllocation(turn, "op-1");
    assert.equal(written.length, 1);
  });

  it("is not settled by a refusal where the volume is made by name: that may be there", async () => {
    const since = "2026-01-02T03:30:00Z";
    const volume = "store:vm-100-berth-op-1";
    const { turn, written } = turnOf(place, {
      allocation: { ...place, operation: "op-1", since, volume } as Allocation,
    });
    await closeAllocation(turn, "op-1");
    assert.deepEqual(written, []);
  });

  it("has the names of earlier attempts: what those asked for may appear late", async () => {
    const since = "2026-01-02T03:30:00Z";
    const earlier = ["store:vm-100-berth-1"];
    const before = { ...place, operation: "op-0", since, volume: "store:vm-100-berth-2", earlier };
    const { turn, written } = turnOf(
      { ...place, volume: "store:vm-100-berth-3" },
      { allocation: before as unknown as Allocation },
    );
    await begin(turn);
    const [{ volume, earlier: names } = {}] = written;
    assert.equal(volume, "store:vm-100-berth-3");
    assert.deepEqual(names, ["store:vm-100-berth-1", "store:vm-100-berth-2"]);
  });

  it("has every storage and size of an operation that makes several volumes", async () => {
    const also = [{ storage: "far", sizeBytes: 2 }, { storage: "files" }];
    const { turn, written } = turnOf({ ...place, also, source: "900", volume: "store:v" });
    await begin(turn);
    const [{ also: kept, source, volume } = {}] = written;
    const sizes = [{ storage: "far", size: "2" }, { storage: "files" }];
    assert.deepEqual([kept, source, volume], [sizes, "900", "store:v"]);
  });
});
