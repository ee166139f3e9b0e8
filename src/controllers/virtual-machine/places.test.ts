import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import { Places } from "./places.ts";

const gib = 1024 ** 3;

function claim(name: string, node: string, externalId: string): ClaimSpec {
  const owner = { namespace: "default", name, uid: name };
  const resources = { cpu: 2, memory: "4Gi", storage: "0" };
  // cast: only these parts of a Claim matter to where others go.
  return { owner, node, externalId, resources } as unknown as ClaimSpec;
}

const choice = { node: "a", cpus: 2, memoryBytes: 4 * gib, sinceMs: 0 };
const empty = { key: "default/new", held: [], running: new Set<string>(), nowMs: 0 };

describe("what was given to each node", () => {
  test("counts Claims, and of their memory what is not seen running yet", () => {
    const held = [claim("web", "a", "1"), claim("db", "a", "2"), claim("mail", "b", "3")];
    const loads = new Places().loads({ ...empty, held, running: new Set(["1"]) });
    assert.deepEqual(Object.fromEntries(loads), {
      a: { machines: 2, cpus: 4, memoryBytes: 8 * gib, comingBytes: 4 * gib },
      b: { machines: 1, cpus: 2, memoryBytes: 4 * gib, comingBytes: 4 * gib },
    });
  });

  test("counts a choice until its Claim is there, and then only that", () => {
    const places = new Places();
    places.chose("default/web", choice);
    assert.equal(places.loads(empty).get("a")?.machines, 1);
    assert.equal(places.nodeOf("default/web"), "a");
    const held = [claim("web", "b", "1")];
    const loads = places.loads({ ...empty, held });
    assert.equal(loads.get("a"), undefined);
    assert.equal(loads.get("b")?.machines, 1);
    assert.equal(places.loads(empty).size, 0);
  });

  test("leaves out the one who asks, what was given up, and what never came to be", () => {
    const places = new Places();
    places.chose("default/new", choice);
    places.chose("default/gone", choice);
    places.forget("default/gone");
    places.chose("default/refused", choice);
    assert.equal(places.loads(empty).get("a")?.machines, 1);
    assert.equal(places.loads({ ...empty, key: "", nowMs: 60_001 }).size, 0);
    const held = [claim("new", "a", "1")];
    assert.equal(new Places().loads({ ...empty, held }).size, 0);
  });
});
