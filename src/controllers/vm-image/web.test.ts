import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { answered } from "../../hypervisor/index.ts";
import { addressRefusal, addressRule, type Web } from "./web.ts";

describe("the addresses that images may come from", () => {
  const inside = [
    "127.0.0.1",
    "10.0.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fd00::1",
    "fe80::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "no address",
  ];
  for (const address of inside) {
    it(`are not ${address}`, () => assert.equal(addressRule()(address), false));
  }

  for (const address of ["203.0.113.7", "172.32.0.1", "2001:db8::1", "::ffff:203.0.113.7"]) {
    it(`may be ${address}`, () => assert.equal(addressRule()(address), true));
  }

  it("may be private where the network is allowed, and what is written wrongly allows nothing", () => {
    const mayUse = addressRule(["10.1.0.0/16", "fd00::/8", "10.0.0.0/99", "nonsense/8"]);
    assert.deepEqual(
      ["10.1.2.3", "::ffff:10.1.2.3", "fd12::1", "10.2.0.1", "192.168.0.1"].map(mayUse),
      [true, true, true, false, false],
    );
  });
});

describe("a URL", () => {
  const web: Web = {
    resolve: () => Promise.resolve(answered(["203.0.113.7", "10.0.0.1"])),
    open: () => assert.fail("nothing is opened"),
  };

  it("is refused if any address of its host is, or if it is such an address itself", async () => {
    const refusals = ["https://images.example/a", "http://127.0.0.1:8080/a", "http://[::1]/a"];
    for (const url of refusals) {
      const refusal = await addressRefusal(web, url, addressRule());
      assert.equal(refusal?.category, "PermissionDenied", url);
    }
    assert.equal(await addressRefusal(web, "http://203.0.113.9/a", addressRule()), undefined);
  });
});
