import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Hypervisor } from "../../api/index.ts";
import { mayUnlock, planCredentials, planIdentity } from "./plan.ts";

const endpoints = ["https://a:8006"];
const secret = { key: "berth-system/lab", resourceVersion: "7" };

function hypervisor(name: string, systemId?: string, created = "2026-01-01T00:00:00Z"): Hypervisor {
  const spec = { endpoints, ...(systemId === undefined ? {} : { systemId }) };
  const metadata = { name, uid: `uid-${name}`, creationTimestamp: created };
  return { apiVersion: "v", kind: "Hypervisor", metadata, spec } as unknown as Hypervisor;
}

describe("the system that answers", () => {
  it("is used when it is the one that it was, or the first", () => {
    assert.equal(planIdentity(hypervisor("lab", "s1"), "s1", []), undefined);
    assert.equal(planIdentity(hypervisor("lab"), "s1", []), undefined);
  });

  it("gets no VMs of a Hypervisor that stands for another system", () => {
    assert.equal(planIdentity(hypervisor("lab", "s1"), "s2", [])?.reason, "SystemChanged");
  });

  it("gets no second Hypervisor, which would create every VM twice", () => {
    const first = hypervisor("first", "s1", "2025-01-01T00:00:00Z");
    const found = planIdentity(hypervisor("lab"), "s1", [first]);
    assert.equal(found?.reason, "SystemClaimedTwice");
    assert.equal(found?.conflictsWith, "first");
  });
});

describe("credentials", () => {
  const used = { secret: secret.key, resourceVersion: "7", endpoints: ["https://old:8006"] };
  const moved = hypervisor("lab", "s1");

  it("are not sent to endpoints that they were not given for", () => {
    assert.equal(planCredentials(moved, secret, used)?.reason, "CredentialsNotRenewed");
    assert.equal(planCredentials(moved, { ...secret, resourceVersion: "8" }, used), undefined);
  });

  it("of root for unlocking are not sent to endpoints that they were not given for", () => {
    assert.equal(mayUnlock(moved, secret, used), false);
    assert.equal(mayUnlock(moved, { ...secret, resourceVersion: "8" }, used), true);
  });
});
