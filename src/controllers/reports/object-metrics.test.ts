import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { InformerHandler } from "../../client/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createMetrics } from "../../runtime/index.ts";
import { objectMetrics, type Followed } from "./object-metrics.ts";

const clock = new VirtualClock();
const nowMs = clock.nowMs();
const ago = (seconds: number): string => formatTime(nowMs - seconds * 1000);

function objectOf(kind: string, name: string, rest: object = {}): KubeObject {
  const metadata = { name, creationTimestamp: ago(1000) };
  return { apiVersion: "berth.dev/v1alpha1", kind, metadata, ...rest };
}

/** "Ready=False", or "Ready=False NetworkError", since so many seconds. */
function condition(text: string, seconds: number): object {
  const [, type = "", status = "", reason = "R"] = /^(\w+)=(\w+)(?: (\w+))?$/.exec(text) ?? [];
  return { type, status, reason, message: "", lastTransitionTime: ago(seconds) };
}

interface Informed extends Followed {
  update(object: KubeObject, old: KubeObject): void;
}

function informerOf(objects: readonly KubeObject[]): Informed {
  const handlers: InformerHandler<KubeObject>[] = [];
  return {
    list: () => [...objects],
    on: (handler) => {
      handlers.push(handler);
      return () => void handlers.splice(handlers.indexOf(handler), 1);
    },
    update: (object, old) => {
      for (const handler of handlers) handler.updated?.(object, old);
    },
  };
}

async function linesOf(...objects: KubeObject[]): Promise<string[]> {
  const metrics = createMetrics();
  objectMetrics(metrics, clock).follow([informerOf(objects)]);
  return (await metrics.text()).split("\n").filter((line) => line.startsWith("berth_"));
}

describe("the metrics of objects", () => {
  test("count kinds and conditions, and the longest that is not Ready by its reason", async () => {
    const ready = { status: { conditions: [condition("Ready=True", 5)] } };
    const away = { status: { conditions: [condition("Ready=Unknown NetworkError", 60)] } };
    const longer = { status: { conditions: [condition("Ready=False NetworkError", 90)] } };
    const lines = await linesOf(
      objectOf("VirtualMachine", "a", ready),
      objectOf("VirtualMachine", "b", away),
      objectOf("VirtualMachine", "c", longer),
      objectOf("VirtualMachine", "unseen"),
      objectOf("VMClass", "small"),
    );
    for (const line of [
      'berth_objects{kind="VirtualMachine"} 4',
      'berth_conditions{kind="VirtualMachine",condition="Ready",status="True"} 1',
      'berth_conditions{kind="VirtualMachine",condition="Ready",status="Unknown"} 1',
      'berth_not_ready_oldest_seconds{kind="VirtualMachine",reason="NetworkError"} 90',
      'berth_not_ready_oldest_seconds{kind="VirtualMachine",reason="NotSeen"} 1000',
    ]) {
      assert.ok(lines.includes(line), `${line}\nin\n${lines.join("\n")}`);
    }
    assert.ok(!lines.some((line) => line.includes('oldest_seconds{kind="VMClass"')));
  });

  test("leave out of the time not Ready what a person has paused", async () => {
    const paused = objectOf("VirtualMachine", "a", {
      status: { conditions: [condition("Ready=False", 60)] },
    });
    paused.metadata.annotations = { "berth.dev/paused": "true" };
    const lines = await linesOf(paused);
    assert.ok(!lines.some((line) => line.startsWith("berth_not_ready_oldest_seconds{")));
  });

  test("tell failures that are tried again from those that stall, with their age", async () => {
    const failure = (category: string, seconds: number): object => ({
      category,
      firstAt: ago(seconds),
    });
    const lines = await linesOf(
      objectOf("VirtualMachine", "a", { status: { failure: failure("NetworkError", 50) } }),
      objectOf("VirtualMachine", "b", { status: { failure: failure("NetworkError", 70) } }),
      objectOf("VirtualMachine", "c", {
        status: {
          failure: failure("LockError", 10),
          conditions: [condition("Stalled=True", 10), condition("Ready=False", 10)],
        },
      }),
    );
    const of = 'kind="VirtualMachine",category';
    for (const line of [
      `berth_failing_objects{${of}="NetworkError",stalled="false"} 2`,
      `berth_failing_oldest_seconds{${of}="NetworkError",stalled="false"} 70`,
      `berth_failing_objects{${of}="LockError",stalled="true"} 1`,
    ]) {
      assert.ok(lines.includes(line), `${line}\nin\n${lines.join("\n")}`);
    }
  });

  test("count orphans and their bytes by what was decided, claims, and Hypervisors", async () => {
    const orphan = (decision?: string, more = {}): object => ({
      spec: { hypervisor: "pve", kind: "Volume", ...(decision === undefined ? {} : { decision }) },
      status: { ownership: "Ours", size: "1024", ...more },
    });
    const lines = await linesOf(
      objectOf("Orphan", "a", orphan()),
      objectOf("Orphan", "b", orphan()),
      objectOf("Orphan", "c", orphan("Keep")),
      objectOf("Orphan", "gone", orphan(undefined, { reclaimed: "1024" })),
      objectOf("Claim", "d", { spec: { target: "VM", state: "Bound" } }),
      objectOf("Hypervisor", "pve", { status: { conditions: [condition("Ready=True", 1)] } }),
      objectOf("Hypervisor", "lab", { status: { conditions: [condition("Ready=False", 1)] } }),
    );
    for (const line of [
      'berth_orphans{hypervisor="pve",kind="Volume",ownership="Ours",decision="None"} 2',
      'berth_orphan_bytes{hypervisor="pve",kind="Volume",ownership="Ours",decision="None"} 2048',
      'berth_orphans{hypervisor="pve",kind="Volume",ownership="Ours",decision="Keep"} 1',
      'berth_claims{target="VM",state="Bound"} 1',
      'berth_hypervisor_up{hypervisor="pve"} 1',
      'berth_hypervisor_up{hypervisor="lab"} 0',
    ]) {
      assert.ok(lines.includes(line), `${line}\nin\n${lines.join("\n")}`);
    }
  });

  test("count work under way and what is waited for", async () => {
    const operation = { step: "AddDisk", since: ago(30) };
    const waitingFor = { kind: "Slot", name: "a slot", since: ago(5) };
    const lines = await linesOf(
      objectOf("VirtualMachine", "a", { status: { operation } }),
      objectOf("VirtualMachine", "b", { status: { waitingFor } }),
    );
    assert.ok(lines.includes('berth_operations_open{kind="VirtualMachine",step="AddDisk"} 1'));
    const oldest = 'berth_operation_oldest_seconds{kind="VirtualMachine",step="AddDisk"} 30';
    assert.ok(lines.includes(oldest));
    assert.ok(lines.includes('berth_waiting_objects{kind="VirtualMachine",for="Slot"} 1'));
  });

  test("tell how long the longest has been waiting, by what for", async () => {
    const waiting = (kind: string, seconds: number): object => ({
      status: { waitingFor: { kind, name: "backup", since: ago(seconds) } },
    });
    const lines = await linesOf(
      objectOf("VirtualMachine", "a", waiting("Lock", 660)),
      objectOf("VirtualMachine", "b", waiting("Lock", 30)),
      objectOf("VirtualMachine", "c", waiting("Approval", 90)),
    );
    const oldest = lines.filter((line) => line.startsWith("berth_waiting_oldest_seconds"));
    assert.deepEqual(oldest.toSorted(), [
      'berth_waiting_oldest_seconds{kind="VirtualMachine",for="Approval"} 90',
      'berth_waiting_oldest_seconds{kind="VirtualMachine",for="Lock"} 660',
    ]);
  });

  test("measure how long an object was not Ready, once, when it becomes so", async () => {
    const metrics = createMetrics();
    const informer = informerOf([]);
    const end = objectMetrics(metrics, clock).follow([informer]);
    const before = objectOf("VirtualMachine", "a", {
      status: { conditions: [condition("Ready=False", 40)] },
    });
    const after = objectOf("VirtualMachine", "a", {
      status: { conditions: [condition("Ready=True", 10)] },
    });
    informer.update(after, before);
    informer.update(after, after);
    informer.update(before, after);
    const text = await metrics.text();
    assert.match(text, /^berth_not_ready_seconds_sum\{kind="VirtualMachine"\} 30$/m);
    assert.match(text, /^berth_not_ready_seconds_count\{kind="VirtualMachine"\} 1$/m);
    end();
  });

  test("show nothing once another leads: nothing is counted twice", async () => {
    const metrics = createMetrics();
    const objects = objectMetrics(metrics, clock);
    const end = objects.follow([informerOf([objectOf("VirtualMachine", "a")])]);
    assert.match(await metrics.text(), /^berth_objects\{/m);
    end();
    assert.doesNotMatch(await metrics.text(), /^berth_objects\{/m);
  });
});
