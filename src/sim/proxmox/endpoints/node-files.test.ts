import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

test("a node tells its clock, its names and its name servers", async () => {
  const stage = new Stage();
  stage.clock.advance(1_500_000_000_000);
  const seconds = Math.floor(stage.clock.nowMs() / 1000);
  const time = await stage.call("GET", "/nodes/pve2/time");
  assert.deepEqual(time.data, { timezone: "UTC", time: seconds, localtime: seconds });
  const hosts = membersOf((await stage.call("GET", "/nodes/pve2/hosts")).data);
  assert.match(String(hosts["data"]), /^192\.0\.2\.11 pve2\.sim\.invalid pve2$/m);
  assert.match(String(hosts["digest"]), /^[0-9a-f]{40}$/);
  const dns = await stage.call("GET", "/nodes/pve2/dns");
  assert.deepEqual(dns.data, { search: "sim.invalid", dns1: "192.0.2.1" });
  assert.deepEqual((await stage.call("GET", "/nodes/pve2/lxc")).data, []);
});
