import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Condition } from "../../kernel/object.ts";
import { demandWhy, type Telling } from "./laws-why.ts";

type Status = NonNullable<Telling["status"]>;

function vm(status: Status): Telling {
  const apiVersion = "berth.dev/v1alpha1";
  return { apiVersion, kind: "VirtualMachine", metadata: { name: "web" }, status };
}

function condition(type: string, status: Condition["status"], more = {}): Condition {
  const lastTransitionTime = "1970-01-01T00:00:00Z";
  return { type, status, reason: "Because", message: "It is so.", lastTransitionTime, ...more };
}

const failure: NonNullable<Status["failure"]> = {
  category: "NetworkError",
  message: "no answer",
  attempts: 1,
  firstAt: "1970-01-01T00:00:00Z",
  lastAt: "1970-01-01T00:00:00Z",
};
const notReady = condition("Ready", "False");

describe("the law of the why", () => {
  it("asks whoever was looked at whether it is Ready", () => {
    assert.throws(() => demandWhy(vm({ observedGeneration: 1 })), /does not say whether/);
    demandWhy(vm({ observedGeneration: 1, conditions: [notReady] }));
    demandWhy(vm({}));
  });

  it("asks for a reason always, and for words where something is not good", () => {
    const without = (type: string, status: Condition["status"], more: object): void => {
      const one = vm({ conditions: [condition(type, status, more)] });
      assert.throws(() => demandWhy(one), /without a word/, `${type} ${status}`);
    };
    without("Ready", "True", { reason: "" });
    without("Ready", "False", { message: "" });
    without("Stalled", "True", { message: "" });
    demandWhy(vm({ conditions: [condition("Ready", "True", { message: "" })] }));
  });

  it("asks of a failure what comes next", () => {
    const conditions = [notReady];
    assert.throws(() => demandWhy(vm({ conditions, failure })), /what comes next is open/);
    demandWhy(vm({ conditions, failure: { ...failure, nextRetryAt: failure.lastAt } }));
    demandWhy(vm({ conditions, failure: { ...failure, category: "DependencyNotReady" } }));
    demandWhy(vm({ conditions: [notReady, condition("Stalled", "True")], failure }));
    const operation = { id: "1", step: "Create", intent: "Make it.", since: "", attempt: 2 };
    demandWhy(vm({ conditions, failure, operation }));
  });

  it("asks for the words of a failure", () => {
    const mute = { ...failure, message: "", nextRetryAt: failure.lastAt };
    assert.throws(() => demandWhy(vm({ failure: mute })), /fails without its message/);
  });
});
