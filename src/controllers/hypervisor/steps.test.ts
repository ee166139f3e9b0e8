import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hypervisor } from "../../api/index.ts";
import { createClient } from "../../client/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { readSecret } from "./steps.ts";

const hypervisor = {
  apiVersion: "berth.dev/v1alpha1",
  kind: "Hypervisor",
  metadata: { name: "lab" },
  spec: { credentials: { secretRef: { namespace: "team", name: "lab" } } },
} as Hypervisor;

const refusals = [
  { code: 404, says: /^There is no Secret team\/lab\.$/ },
  { code: 403, says: /^The controllers may not use the Secret team\/lab: .*cannot get/ },
];

for (const { code, says } of refusals) {
  test(`a Secret that is answered with ${code} is a trouble that names it`, async () => {
    const read = await readSecret(clientThatAnswers(code), hypervisor);
    assert.ok(read !== undefined && "failure" in read);
    assert.equal(read.failure.category, "DependencyNotReady");
    assert.match(read.failure.message, says);
  });
}

test("any other answer is nobody's trouble but the server's", async () => {
  await assert.rejects(readSecret(clientThatAnswers(500), hypervisor), /cannot get/);
});

function clientThatAnswers(code: number): ReturnType<typeof createClient> {
  const status = { kind: "Status", code, message: 'User "berth" cannot get resource "secrets"' };
  const body = new TextEncoder().encode(JSON.stringify(status));
  return createClient({
    clock: new VirtualClock(),
    transport: () => Promise.resolve({ status: code, headers: {}, body }),
  });
}
