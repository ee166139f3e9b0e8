import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import type { HypervisorDriver, Inventory } from "../../hypervisor/index.ts";
import { changedRows, Connections, type Connection, type Reach } from "./connections.ts";

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

  test("nothing while a turn connects what was forgotten, and all of it at the next look", () => {
    connections.set("lab", ready("Unhealthy"));
    heard = [];
    for (let turn = 0; turn < 2; turn++) {
      connections.forgetAll();
      assert.ok(connections.isUntried("lab"));
      connections.restore("lab", ready("Healthy"));
      assert.equal(connections.of("lab").is, "ready");
    }
    assert.deepEqual(heard, []);
    connections.set("lab", ready("Healthy"));
    assert.deepEqual(heard, ["improved"]);
  });

  test("that it is there, where nobody was ever told of it", () => {
    connections.restore("lab", ready("Healthy"));
    assert.deepEqual(heard, ["changed"]);
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

describe("an inventory that is not whole", () => {
  const row = { externalId: "200", node: "pve1", kind: "Machine", power: "Running", hint: "" };
  const whole: Inventory = {
    machines: [row as Inventory["machines"][number]],
    nodes: [],
    storages: [],
    isComplete: true,
    missing: [],
  };

  test("does not say that the VMs which it does not show are gone", () => {
    const partial = { ...whole, machines: [], isComplete: false };
    assert.deepEqual(changedRows(whole, partial), []);
    assert.deepEqual(changedRows(whole, { ...partial, isComplete: true }), ["200"]);
  });

  test("sends nobody to look whether its VM is gone", () => {
    let looked = 0;
    const nothing = (): void => undefined;
    const listener = { changed: nothing, improved: nothing, rows: nothing, trusted: nothing };
    connections.on({ ...listener, looked: () => void (looked += 1) });
    const first = ready("Healthy");
    assert(first.is === "ready");
    connections.set("lab", first);
    const partial = { ...first.connection.inventory, isComplete: false };
    connections.set("lab", {
      is: "ready",
      connection: { ...first.connection, inventory: partial },
    });
    assert.equal(looked, 0);
    connections.set("lab", first);
    assert.equal(looked, 1);
  });
});
