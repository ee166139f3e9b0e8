import assert from "node:assert/strict";
import { it } from "node:test";
import { identityOf } from "./identity.ts";

const installation = "11111111-1111-4111-8111-111111111111";

it("every run of an installation gives the VM of an object the same identity, and no other VM", () => {
  const identity = identityOf(installation, "u1");
  assert.equal(identityOf(installation, "u1"), identity);
  const others = [identityOf(installation, "u2"), identityOf("other", "u1")];
  assert.equal(new Set([identity, ...others]).size, 3);
  for (const one of [identity, ...others]) {
    assert.match(one, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
});
