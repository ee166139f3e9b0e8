import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim } from "../../api/index.ts";
import { demandClosed, demandHeldFor, demandOwnAddresses } from "./laws-rest.ts";

const vm = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "VirtualMachine",
  metadata: { name: "web", uid: "u1" },
};

function claim(state: Claim["spec"]["state"], uid: string): Claim {
  const owner = { namespace: "default", name: "web", uid };
  // cast: the rest of a Claim is of no matter here.
  return { ...vm, kind: "Claim", metadata: { name: "c-1" }, spec: { state, owner } } as Claim;
}

describe("when all rests", () => {
  it("nothing is open", () => {
    demandClosed([vm, { ...vm, status: {} }]);
    const open = { ...vm, status: { operation: { intent: "Start web." } } };
    assert.throws(() => demandClosed([open]), /web has this open: Start web\./);
  });

  it("every id is held for something that there is", () => {
    demandHeldFor(
      [claim("Bound", "u1"), claim("Released", "u2"), claim("Quarantined", "u2")],
      [vm],
    );
    assert.throws(() => demandHeldFor([claim("Reserved", "u2")], [vm]), /is Reserved for web/);
    assert.throws(() => demandHeldFor([claim("Bound", "u1")], []), /is Bound for web/);
  });

  it("no two machines have the same address", () => {
    const card = (last: string): string =>
      `cores: 1\nnet0: virtio=BC:24:11:00:00:${last},bridge=b\n`;
    demandOwnAddresses(
      new Map([
        ["100", card("01")],
        ["101", card("02")],
      ]),
    );
    const both = new Map([
      ["100", card("01")],
      ["101", card("01")],
    ]);
    assert.throws(() => demandOwnAddresses(both), /100 and 101 have the address/);
  });
});
