import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { canary, demandNoSecret, holdsSecret } from "./laws-secrets.ts";

describe("the law that no secret is told", () => {
  it("finds it in the middle of a text, and in bytes", () => {
    assert.throws(() => demandNoSecret(() => "a log", `token=${canary}!`), /a secret is in a log/);
    assert.ok(holdsSecret(Buffer.from(`{"a":"${canary}"}`)));
  });

  it("finds it as Base64, wherever it begins", () => {
    for (const before of ["", "a", "ab", "abc", "#cloud-config\npassword: "]) {
      assert.ok(holdsSecret(Buffer.from(`${before}${canary} and more`).toString("base64")), before);
    }
  });

  it("does not find what is not there", () => {
    const other = canary.replace("4000", "4001");
    assert.equal(holdsSecret(other), false);
    assert.equal(holdsSecret(Buffer.from(other).toString("base64")), false);
  });
});
