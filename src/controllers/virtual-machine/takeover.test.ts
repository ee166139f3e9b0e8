import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Seen } from "../../hypervisor/index.ts";
import type { Desired } from "./desired.ts";
import { claim, machine } from "./fixture.ts";
import { findTakeover } from "./takeover.ts";
import type { ConnectedTurn } from "./turn.ts";

/** What an object takes back of the VMs that were released under its name. */
async function takenBack(released: readonly ClaimSpec[]): Promise<string> {
  const seen: Seen = { at: "foreign", reason: "Released", detail: "", machine };
  const turn = {
    vm: { metadata: { namespace: "default", name: "web" }, spec: { powerState: "Running" } },
    deps: { ledger: { releasedBy: () => released.map((spec) => ({ spec })) } },
    driver: { observe: () => Promise.resolve(seen), changeOf: () => ({ class: "Live" }) },
  } as unknown as ConnectedTurn;
  const desired = { shape: {}, disks: [] } as unknown as Desired;
  return (await findTakeover(turn, desired, { draft: claim, isReleased: false })).is;
}

test("an object takes back the one VM that was released under its name", async () => {
  assert.equal(await takenBack([claim]), "machine");
});

test("an object does not guess which of two released VMs is its own", async () => {
  assert.equal(await takenBack([claim, { ...claim, externalId: "101" }]), "nothing");
});
