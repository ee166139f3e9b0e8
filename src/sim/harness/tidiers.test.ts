import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Orphan } from "../../api/index.ts";
import { Dice } from "./dice.ts";
import type { People } from "./people.ts";
import { Tidiers } from "./tidiers.ts";
import type { World } from "./world.ts";

/** What people say of one thing that was found, in the end. */
function saidOf(spec: object): string[] {
  const said: string[] = [];
  const orphan = {
    metadata: { name: "o" },
    spec: { hypervisor: "east", kind: "Machine", externalId: "123", ...spec },
    status: { observation: "now", allowedDecisions: ["Keep", "Destroy"] },
  } as unknown as Orphan;
  const records = { orphans: new Map([["o", orphan]]) };
  // cast: what deciding uses of them.
  const world = { records, sites: new Map() } as unknown as World;
  const people = { ask: (what: string) => said.push(what) } as unknown as People;
  new Tidiers(world, people, Dice.of(1, "test")).decideAll();
  return said;
}

describe("people who decide that everything goes", () => {
  const destroys = ["decides Destroy of Machine 123 on east"];

  it("say it of what nobody decided about", () => {
    assert.deepEqual(saidOf({}), destroys);
    assert.deepEqual(saidOf({ decision: "Keep", observation: "now" }), destroys);
  });

  it("say it once, and once more where another thing is there than they saw", () => {
    assert.deepEqual(saidOf({ decision: "Destroy", observation: "now" }), []);
    assert.deepEqual(saidOf({ decision: "Destroy", observation: "before" }), destroys);
  });
});
