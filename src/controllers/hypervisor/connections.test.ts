import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import type { HypervisorDriver, Inventory } from "../../hypervisor/index.ts";
import { Connections, type Connection, type Reach } from "./connections.ts";

let connections: Connections;
let heard: string[];
beforeEach(() => {
  connections = new Connections();
  heard = [];
  connections.on({
    changed: () => heard.push("changed"),
    improved: () => heard.push("improved"),
    rows: (_, ids) => heard.push(`rows ${ids.join(",")}`),
    looked: () => undefined,
    trusted: () => heard.push("trusted"),
  });
});

function away(message: string): Reach {
  return { is: "away", failure: { category: "NetworkError", message } };
}

function ready(health: "Healthy" | "Unhealthy", isUsable = true): Reach {
  const inventory: Inventory = {
    machines: [],
    nodes: [{ name: "pve1", health }],
    storages: [{ name: "fast", node: "pve1", isShared: false, isUsable, contents: ["Disks"] }],
    isComplete: true,
    missing: [],
  };
  // cast: nobody looks at the driver or at the rest of the spec here.
  const driver = {} as HypervisorDriver;
  const spec = {} as Connection["spec"];
  return {
    is: "ready",
    connection: { name: "lab", systemId: "s", driver, spec, capabilities: [], inventory },
  };
}

describe("what is heard of a hypervisor", () => {
  test("that it went, that it is away for another reason, and that it came back", () => {
    connections.set("lab", away("not reachable"));
    connections.set("lab", away("not reachable"));
    assert.deepEqual(heard, ["changed"]);
    connections.set("lab", away("the certificate is another"));
    assert.deepEqual(heard, ["changed", "changed"]);
    connections.set("lab", ready("Healthy"));
    assert.deepEqual(heard, ["changed", "changed", "changed"]);
  });

  test("that a node or a storage can be used again, and not that it cannot", () => {
    connections.set("lab", ready("Healthy"));
    heard = [];
    connections.set("lab", ready("Unhealthy"));
    connections.set("lab", ready("Unhealthy", false));
    assert.deepEqual(heard, []);
    connections.set("lab", ready("Healthy", false));
    connections.set("lab", ready("Healthy"));
    connections.set("lab", ready("Healthy"));
    assert.deepEqual(heard, ["improved", "improved"]);
  });

  test("that it answers after all, where it was doubted; only what is connected is doubted", () => {
    assert.equal(connections.doubt("lab"), false, "nobody knows it yet");
    connections.set("lab", ready("Healthy"));
    assert.deepEqual([connections.doubt("lab"), connections.doubt("lab")], [true, false]);
    assert.equal(connections.isDoubted("lab"), true);
    heard = [];
    connections.set("lab", ready("Healthy"));
    assert.deepEqual([heard, connections.isDoubted("lab")], [["trusted"], false]);
    connections.doubt("lab");
    connections.set("lab", away("not reachable"));
    assert.deepEqual([heard, connections.isDoubted("lab")], [["trusted", "changed"], false]);
  });
});
