import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import { proposeId } from "./propose-id.ts";
import type { ConnectedTurn } from "./turn.ts";

/** Which id is proposed for a VM whose status has 101, where the cache of Claims is still empty. */
async function proposed(state: ClaimSpec["state"] | undefined): Promise<string> {
  const claim = state === undefined ? undefined : { spec: { state } };
  const status = { externalId: "101", hypervisor: "lab" };
  const turn = {
    key: "default/web",
    vm: { metadata: { namespace: "default", name: "web", uid: "u" }, spec: {}, status },
    connection: { name: "lab", systemId: "s", inventory: { machines: [] }, spec: {} },
    driver: {
      propose: (avoid: readonly string[]) => {
        assert.ok(avoid.includes("101"), "101 is not avoided");
        return Promise.resolve({ ok: true, value: "102" });
      },
    },
    deps: {
      ledger: { idsOn: () => [], read: () => Promise.resolve(claim), installation: "i" },
      lookups: { vms: { byIndex: () => [] } },
    },
  } as unknown as ConnectedTurn;
  const answer = await proposeId(turn, {} as never, []);
  return answer.ok ? answer.value : answer.failure.message;
}

test("the id of before is proposed again if its Claim is lost", async () => {
  assert.equal(await proposed(undefined), "101");
});

test("an id that was given up with what stands there is not chosen again from an old cache", async () => {
  assert.equal(await proposed("Released"), "102");
});
