import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client, InformerHandler, ObjectClient } from "../../client/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { measureWatchDelay } from "./watch-delay.ts";

const kind = { group: "x", version: "v1", kind: "Thing", plural: "things", namespaced: true };

function objectAt(version: number): KubeObject {
  const metadata = { namespace: "default", name: "a", resourceVersion: String(version) };
  return { apiVersion: "x/v1", kind: "Thing", metadata };
}

/** A server whose next write takes so long and gets that version; the copy is told by hand. */
function open() {
  const clock = new VirtualClock();
  const delays: number[] = [];
  let copy: KubeObject | undefined;
  let handler: InformerHandler<KubeObject> = {};
  const server = { tookMs: 0, version: 1 };
  const update = async (): Promise<KubeObject> => {
    clock.advance(server.tookMs);
    return objectAt(server.version);
  };
  const client = { of: () => ({ update }) as unknown as ObjectClient } as Client;
  const delay = measureWatchDelay(client, clock, (ms) => delays.push(ms));
  const informer = {
    get: () => copy,
    on: (given: InformerHandler<KubeObject>) => {
      handler = given;
      return () => undefined;
    },
  };
  delay.follow("Thing", informer);
  const see = (object: KubeObject): void => {
    copy = object;
    handler.updated?.(object, object);
  };
  const write = (): Promise<unknown> => delay.client.of(kind).update(objectAt(0));
  return { clock, delays, server, see, write };
}

test("a write that comes back later is timed until then, and an older echo is not it", async () => {
  const { clock, delays, server, see, write } = open();
  Object.assign(server, { tookMs: 10, version: 7 });
  await write();
  clock.advance(5);
  see(objectAt(6));
  assert.deepEqual(delays, []);
  clock.advance(5);
  see(objectAt(7));
  see(objectAt(8));
  assert.deepEqual(delays, [20]);
});

test("a write that the copy shows before its answer is timed until the answer", async () => {
  const { delays, server, see, write } = open();
  Object.assign(server, { tookMs: 30, version: 7 });
  see(objectAt(7));
  await write();
  assert.deepEqual(delays, [30]);
});
