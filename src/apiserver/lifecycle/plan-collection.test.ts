import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ObjectMeta } from "../../kernel/object.ts";
import { planCollection, type CollectionStep, type OwnerState } from "./plan-collection.ts";

interface Case {
  reason: string;
  owners?: OwnerState[];
  metadata?: ObjectMeta;
  hasDependents?: boolean;
  isBlocked?: boolean;
  step: CollectionStep;
}

const rest: CollectionStep = { do: "rest" };
const collect: CollectionStep = { do: "delete", options: {} };
const release = (...uids: string[]): CollectionStep => ({ do: "release", uids: new Set(uids) });
const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z" };

const cases: Case[] = [
  { reason: "nobody owns it", step: rest },
  { reason: "its owner is there", owners: ["solid"], step: rest },
  { reason: "its owner is gone", owners: ["absent"], step: collect },
  { reason: "all its owners are gone", owners: ["absent", "absent"], step: collect },
  { reason: "one of its owners is there", owners: ["absent", "solid"], step: release("0") },
  { reason: "an owner's kind is not known", owners: ["unknown"], step: rest },
  { reason: "one owner is gone and one unknown", owners: ["absent", "unknown"], step: rest },
  { reason: "one owner is there and one unknown", owners: ["solid", "unknown"], step: rest },
  { reason: "its owner waits for its deletion", owners: ["foreground"], step: collect },
  {
    reason: "its owner waits and it has dependents itself",
    owners: ["foreground"],
    hasDependents: true,
    step: { do: "delete", options: { propagationPolicy: "Foreground" } },
  },
  {
    reason: "its owner is gone and it has dependents",
    owners: ["absent"],
    hasDependents: true,
    step: collect,
  },
  { reason: "another owner keeps it", owners: ["foreground", "solid"], step: release("0") },
  { reason: "its owner lets it go", owners: ["orphan"], step: release("0") },
  { reason: "one owner lets it go, one is gone", owners: ["absent", "orphan"], step: release("1") },
  { reason: "an unknown owner beside", owners: ["unknown", "orphan"], step: release("1") },
  {
    reason: "it is being deleted already, though its owner is gone",
    owners: ["absent"],
    metadata: { ...deleting, finalizers: ["x"] },
    step: rest,
  },
  {
    reason: "it is being deleted, and its owner lets it go",
    owners: ["orphan"],
    metadata: { ...deleting, finalizers: ["x"] },
    step: release("0"),
  },
  {
    reason: "it waits in the foreground for somebody",
    metadata: { ...deleting, finalizers: ["foregroundDeletion"] },
    isBlocked: true,
    step: rest,
  },
  {
    reason: "it waits in the foreground for nobody",
    metadata: { ...deleting, finalizers: ["foregroundDeletion"] },
    hasDependents: true,
    step: { do: "finish", finalizer: "foregroundDeletion" },
  },
  {
    reason: "it has dependents to let go",
    metadata: { ...deleting, finalizers: ["orphan"] },
    hasDependents: true,
    step: rest,
  },
  {
    reason: "it has let all go",
    metadata: { ...deleting, finalizers: ["orphan"] },
    step: { do: "finish", finalizer: "orphan" },
  },
  {
    reason: "it only carries a finalizer and is not being deleted",
    metadata: { finalizers: ["orphan"] },
    step: rest,
  },
];

for (const entry of cases) {
  test(`when ${entry.reason}, the step is ${entry.step.do}`, () => {
    assert.deepEqual(plan(entry), entry.step);
  });
}

test("never deletes an object while an owner is there or unknown", () => {
  const state = fc.constantFrom<OwnerState>("solid", "foreground", "orphan", "absent", "unknown");
  fc.assert(
    fc.property(fc.array(state), fc.boolean(), fc.boolean(), (owners, hasDependents, isBlocked) => {
      const step = plan({ owners, hasDependents, isBlocked });
      if (step.do !== "delete") return;
      assert.ok(owners.length > 0);
      assert.ok(owners.every((owner) => owner === "absent" || owner === "foreground"));
    }),
  );
});

function plan(given: Omit<Case, "reason" | "step">): CollectionStep {
  const { owners = [], metadata = {}, hasDependents = false, isBlocked = false } = given;
  const ownerReferences = owners.map((_, i) => {
    return { apiVersion: "v1", kind: "X", name: `x${i}`, uid: String(i) };
  });
  const object = { apiVersion: "v1", kind: "Y", metadata: { ...metadata, ownerReferences } };
  return planCollection(object, {
    ownerState: ({ uid }) => owners[Number(uid)] ?? "unknown",
    hasDependents: () => hasDependents,
    isBlocked: () => isBlocked,
  });
}
