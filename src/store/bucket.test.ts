import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { boundsOf, Bucket } from "./bucket.ts";
import type { Entry } from "./store.ts";

/** Ids over few characters, among them the neighbours of the slash, so that prefixes collide. */
const id = fc.string({ unit: fc.constantFrom("a", "b", "-", "/", "0"), maxLength: 4 });

test("a bucket lists what a naive filter and sort of its entries would", () => {
  const steps = fc.array(fc.record({ id, put: fc.boolean(), list: fc.boolean() }));
  const optionalId = fc.option(id, { nil: undefined });
  fc.assert(
    fc.property(steps, optionalId, optionalId, (changes, prefix, afterId) => {
      const bucket = new Bucket();
      const naive = new Map<string, Entry>();
      for (const [revision, change] of changes.entries()) {
        apply(bucket, naive, { ...change, revision });
        // Its array is made at the first list and kept from there on: both ways must agree.
        if (change.list) bucket.sorted();
      }
      const sorted = bucket.sorted();
      const range = { ...(prefix && { prefix }), ...(afterId && { afterId }) };
      const { start, end } = boundsOf(sorted, range);
      assert.deepEqual(sorted.slice(start, end), naiveList(naive, prefix, afterId));
      assert.equal(bucket.size, naive.size);
    }),
  );
});

function apply(
  bucket: Bucket,
  naive: Map<string, Entry>,
  change: { id: string; put: boolean; revision: number },
): void {
  if (!change.put) {
    bucket.delete(change.id);
    naive.delete(change.id);
    return;
  }
  const entry: Entry = { id: change.id, revision: change.revision, value: new Uint8Array() };
  bucket.set(entry);
  naive.set(entry.id, entry);
  assert.equal(bucket.get(entry.id), entry);
}

function naiveList(
  naive: ReadonlyMap<string, Entry>,
  prefix: string | undefined,
  afterId: string | undefined,
): Entry[] {
  const ids = [...naive.keys()].filter((candidate) => candidate.startsWith(prefix ?? ""));
  const wanted = ids.filter((candidate) => !afterId || candidate > afterId);
  return wanted.sort().flatMap((candidate) => naive.get(candidate) ?? []);
}
