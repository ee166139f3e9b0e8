import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createClient } from "./client.ts";
import { guardWrites } from "./guarded.ts";
import { jsonResponse, widgetKind, type Widget } from "./testing.ts";
import { inProcess } from "./transport.ts";

const widget: Widget = { apiVersion: "berth.dev/v1", kind: "Widget", metadata: { name: "a" } };
const at = { name: "a", namespace: "default" };

test("who may not write reads on, and sends no write at all", async () => {
  const methods: string[] = [];
  const transport = inProcess(async ({ method }) => {
    methods.push(method);
    return jsonResponse(200, widget);
  });
  let mayWrite = false;
  const client = createClient({ transport, clock: new VirtualClock() });
  const widgets = guardWrites(client, () => mayWrite).of(widgetKind);
  const object = { ...widget, metadata: at };
  const writes = [
    () => widgets.create(object),
    () => widgets.update(object),
    () => widgets.updateStatus(object),
    () => widgets.patch(at, { merge: {} }),
    () => widgets.delete(at),
  ];
  for (const write of writes) await assert.rejects(write, { code: "Unreachable" });
  await widgets.get(at);
  assert.deepEqual(methods, ["GET"]);
  mayWrite = true;
  for (const write of writes) await write();
  assert.deepEqual(methods.slice(1), ["POST", "PUT", "PUT", "PATCH", "DELETE"]);
});
