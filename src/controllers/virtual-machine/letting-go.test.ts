import assert from "node:assert/strict";
import { test } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { letGo } from "./letting-go.ts";
import type { Turn } from "./turn.ts";

/** Lets an object go of which this process knows no Claim. Says whether its finalizer went. */
async function isReleased(claimOnServer: object | undefined): Promise<boolean> {
  let isGone = false;
  const vm = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: {
      namespace: "default",
      name: "web",
      uid: "u",
      finalizers: ["berth.dev/virtual-machine", "berth.dev/machine"],
    },
  } as unknown as VirtualMachine;
  const patch = (): Promise<VirtualMachine> => {
    isGone = true;
    return Promise.resolve(vm);
  };
  const deps = {
    client: { of: () => ({ get: () => Promise.resolve(vm), patch }) },
    operations: { memory: { releaseSlots: () => undefined, forget: () => undefined } },
    slots: { leave: () => undefined },
    vms: { note: (noted: unknown) => noted, forget: () => undefined },
    memory: new Map(),
    ledger: {
      systemOf: () => "s",
      find: () => Promise.resolve({ ok: true, value: claimOnServer }),
    },
  };
  await letGo({ key: "default/web", vm, deps, claim: undefined } as unknown as Turn);
  return isGone;
}

test("an object that holds nothing is released", async () => {
  assert.equal(await isReleased(undefined), true);
});

test("an object is not released while the server knows a Claim of it: its VM would be left", async () => {
  assert.equal(await isReleased({ spec: { state: "Bound" } }), false);
});
