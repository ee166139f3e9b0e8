import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { shapeDifferences } from "./differences.ts";
import type { Shape } from "./machine.ts";

const seen: Shape = {
  name: "web",
  cpu: { cores: 2, sockets: 1 },
  tags: ["b", "a"],
  disks: [
    { name: "data", cache: "None" },
    { name: "root", cache: "WriteBack", discard: true },
  ],
  networks: [{ name: "lan", trunks: [2, 1], network: "vmbr0" }],
};

function paths(wanted: Shape): string[] {
  return shapeDifferences(wanted, seen).map(({ path }) => path);
}

describe("differences", () => {
  it("are none for what was not said", () => {
    assert.deepEqual(paths({}), []);
    assert.deepEqual(paths({ cpu: {} }), []);
  });

  it("name the field, by the name of the disk or card and not by its place", () => {
    const wanted: Shape = {
      cpu: { cores: 4, sockets: 1 },
      disks: [
        { name: "root", discard: false },
        { name: "data", cache: "None" },
      ],
      networks: [{ name: "lan", network: "vmbr1" }],
    };
    assert.deepEqual(paths(wanted), ["cpu.cores", "disks[root].discard", "networks[lan].network"]);
  });

  it("are none for another order of what is a set", () => {
    assert.deepEqual(paths({ tags: ["a", "b"], networks: [{ name: "lan", trunks: [1, 2] }] }), []);
    assert.deepEqual(paths({ tags: ["a"] }), ["tags"]);
  });

  it("show a part that is missing whole", () => {
    const [difference] = shapeDifferences({ disks: [{ name: "more" }] }, seen);
    assert.deepEqual(difference, {
      path: "disks[more]",
      wanted: { name: "more" },
      seen: undefined,
    });
  });

  it("leave out what can never be read back", () => {
    assert.deepEqual(paths({ cloudInit: { passwordHash: "$6$x$y" } }), []);
  });
});
