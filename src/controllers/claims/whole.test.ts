import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, type Claim } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { readCurrentClaims } from "./current.ts";
import { withOwnerLabel } from "./owner-label.ts";
import { probeClaim } from "./probe.ts";
import { upgradeClaims } from "./upgrade.ts";

const whole = withOwnerLabel({ ...probeClaim(), metadata: { name: "c-1", resourceVersion: "7" } });

/** The same Claim, as a server with the CustomResourceDefinition of 0.1 reads it. */
const pruned = {
  ...whole,
  spec: { ...without(whole.spec), everStood: false, role: "Machine" },
} as unknown as Claim;

function without({
  target: _target,
  everExisted: _ever,
  otherVolumes: _other,
  ...spec
}: Claim["spec"]): object {
  return spec;
}

/** A server that reads Claims so, and stores what it is given. */
function serverOf(claim: Claim, written: Claim[] = []): Client {
  const objects = {
    get: () => Promise.resolve(claim),
    list: () => Promise.resolve({ metadata: {}, items: [claim] }),
    create: (object: Claim) => Promise.resolve(object),
    update: (object: Claim) => {
      written.push(object);
      return Promise.resolve(object);
    },
    async *watch() {
      yield { type: "MODIFIED", object: claim };
    },
  };
  return { of: () => objects } as unknown as Client;
}

const dropped = /Claim c-1 .*earlier release, which drops fields.*berth crds/;

describe("a Claim that was read by the CustomResourceDefinition of 0.1", () => {
  it("is not taken for one of a VM that never existed", async () => {
    const claims = readCurrentClaims(serverOf(pruned)).of(claimKind);
    await assert.rejects(claims.get({ name: "c-1" }), dropped);
    await assert.rejects(claims.list(), dropped);
    await assert.rejects(claims.watch().next(), { code: 410 });
  });

  it("is not written back without what was dropped", async () => {
    const written: Claim[] = [];
    await assert.rejects(upgradeClaims(serverOf(pruned, written)), dropped);
    assert.deepEqual(written, []);
  });

  it("is read as ever by the CustomResourceDefinition of this release", async () => {
    const claims = readCurrentClaims(serverOf(whole)).of(claimKind);
    assert.deepEqual((await claims.get({ name: "c-1" })).spec, whole.spec);
    assert.equal((await upgradeClaims(serverOf(whole))).rewritten, 0);
  });
});
