import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

test("a pool that is asked for by name comes with its members, of one type if so asked", async () => {
  const stage = new Stage();
  await stage.call("POST", "/pools", { poolid: "team", comment: "c" });
  await stage.does("POST", "/nodes/pve1/qemu", { vmid: 100, pool: "team" });
  await stage.call("PUT", "/pools", { poolid: "team", storage: "local" });
  const { data } = await stage.call("GET", "/pools", { poolid: "team" });
  const ids = (each: unknown): unknown => {
    // cast: what the endpoint is documented to give; a wrong shape fails the test.
    const [pool] = each as { poolid: string; members: { id: string }[] }[];
    return [pool?.poolid, pool?.members.map(({ id }) => id.split("/")[0])];
  };
  assert.deepEqual(ids(data), ["team", ["qemu", "storage"]]);
  const storages = await stage.call("GET", "/pools", { poolid: "team", type: "storage" });
  assert.deepEqual(ids(storages.data), ["team", ["storage"]]);
  const all = await stage.call("GET", "/pools");
  assert.deepEqual(all.data, [{ poolid: "team", comment: "c" }]);
  // The members are told as in the list of all there is.
  const resources = await stage.call("GET", "/cluster/resources");
  const one = membersOf((await stage.call("GET", "/pools/team")).data)["members"];
  const rows = [resources.data, one].map((list) => {
    const found = Array.isArray(list) ? list.map(membersOf) : [];
    const guest = found.find(({ id }) => id === "qemu/100");
    const storage = found.find(({ id }) => id === "storage/pve1/local");
    return [{ ...guest, pool: undefined }, storage];
  });
  assert.deepEqual(rows[0], rows[1]);
});

test("a pool that is not there is an error, and 7.4 knows no such question", async () => {
  const now = await new Stage().call("GET", "/pools", { poolid: "nosuch" });
  assert.deepEqual([now.status, now.reason], [500, "pool 'nosuch' does not exist"]);
  assert.equal((await new Stage("7.4").call("GET", "/pools", { poolid: "x" })).status, 400);
});
