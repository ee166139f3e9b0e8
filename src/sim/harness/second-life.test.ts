import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../api/index.ts";
import { isOnlyOf, newNames } from "./second-life.ts";

type Spec = Claim["spec"];

const identity = "22222222-2222-4222-8222-222222222222";
const another = "33333333-3333-4333-8333-333333333333";

function claimed(state: Spec["state"], uid: string, of = identity): Spec {
  // cast: nothing else is read.
  return { state, identity: of, owner: { uid } } as Spec;
}

describe("what only a copy made", () => {
  it("is what the original has no Claim for, or one that means another VM", () => {
    const own = claimed("Bound", "a");
    assert.equal(isOnlyOf(own, undefined), true);
    assert.equal(isOnlyOf(own, claimed("Bound", "a", another)), true);
  });

  it("is what it made anew when the original had seen that it is gone", () => {
    assert.equal(isOnlyOf(claimed("Bound", "a"), claimed("Quarantined", "a")), true);
  });

  it("is not what the original holds, or made and released", () => {
    assert.equal(isOnlyOf(claimed("Bound", "a"), claimed("Bound", "a")), false);
    assert.equal(isOnlyOf(claimed("Bound", "a"), claimed("Released", "a")), false);
    assert.equal(isOnlyOf(claimed("Released", "a"), claimed("Released", "a")), false);
  });

  it("is not what the original made under the same id since", () => {
    const [own, other] = [claimed("Bound", "a"), claimed("Bound", "b", another)];
    assert.equal(isOnlyOf(own, other, `smbios1: uuid=${another}`), false);
    assert.equal(isOnlyOf(own, other, `smbios1: uuid=${identity}`), true);
  });

  it("is not what another object of the original took over", () => {
    assert.equal(isOnlyOf(claimed("Bound", "a"), claimed("Bound", "b")), false);
  });
});

it("a copy chose the names that its backup did not have", () => {
  const claim = (allocation?: object): Claim => {
    // cast: nothing else is read.
    return { spec: { allocation } } as unknown as Claim;
  };
  const backup = claim({ volume: "s:vm-1-berth-a" });
  const after = claim({ volume: "s:vm-1-berth-b", earlier: ["s:vm-1-berth-a"] });
  assert.deepEqual(newNames({ before: backup, after }), ["s:vm-1-berth-b"]);
  assert.deepEqual(newNames({ before: backup, after: backup }), []);
  assert.deepEqual(newNames({ before: undefined, after: backup }), ["s:vm-1-berth-a"]);
  assert.deepEqual(newNames({ before: backup, after: undefined }), []);
});
