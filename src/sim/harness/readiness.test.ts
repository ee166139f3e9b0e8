import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { demandReached } from "./laws-objects.ts";
import { mayWait } from "./readiness.ts";

function vm(spec: object, conditions: Readonly<Record<string, string>>, failure?: object): never {
  const told = Object.entries(conditions).map(([type, status]) => ({ type, status }));
  const status = { conditions: told, ...(failure === undefined ? {} : { failure }) };
  return { metadata: { name: "web" }, spec, status } as never;
}

describe("what a status may say", () => {
  it("a machine may be otherwise than declared only if it says so and nobody may restart it", () => {
    const waits = (spec: Partial<VirtualMachine["spec"]>, synced: string): boolean => {
      return mayWait(vm(spec, { Synced: synced }));
    };
    const live = { updatePolicy: "Live", powerState: "Running" } as const;
    assert.equal(waits(live, "False"), true);
    assert.equal(waits(live, "True"), false);
    assert.equal(waits({ updatePolicy: "Reboot", powerState: "Running" }, "False"), false);
    assert.equal(waits({ updatePolicy: "PowerOff", powerState: "Stopped" }, "False"), false);
    assert.equal(waits({ updatePolicy: "Reboot", powerState: "Suspended" }, "False"), true);
    const off = vm({ updatePolicy: "Reboot", powerState: "Stopped" }, {}) as VirtualMachine;
    const conditions = [{ type: "Synced", status: "False", reason: "RestartRequired" }] as never;
    assert.equal(mayWait({ ...off, status: { conditions } }), true);
  });

  it("nothing is Ready in the words that say that its hypervisor did not answer", () => {
    const lastAt = "2026-01-02T03:04:05Z";
    const failure = { category: "NetworkError", message: "no answer", lastAt };
    const beforeMs = Date.parse(lastAt) - 1;
    const ready = vm({}, { Ready: "True" }, failure);
    assert.throws(() => demandReached(ready, beforeMs), /law 7, .*no answer/);
    demandReached(ready, Date.parse(lastAt));
    demandReached(vm({}, { Ready: "Unknown" }, failure), beforeMs);
    demandReached(vm({}, { Ready: "False" }, failure), beforeMs);
    demandReached(vm({}, { Ready: "True" }, { ...failure, category: "NodeUnhealthy" }), beforeMs);
    demandReached(vm({}, { Ready: "True" }), beforeMs);
  });
});
