import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import type { WireResponse, WireSink } from "../../kernel/wire.ts";
import { Watcher } from "./watcher.ts";

function vm(name: string, revision: number): KubeObject {
  const metadata = { namespace: "default", name, resourceVersion: String(revision) };
  return { apiVersion: "berth.dev/v1alpha1", kind: "VirtualMachine", metadata };
}

/** A watcher of an API that has one object, and says what it is told to. */
async function watching(): Promise<{
  readonly watcher: Watcher;
  readonly tell: (type: string, object: KubeObject) => void;
  readonly broken: unknown[];
}> {
  const broken: unknown[] = [];
  const sinks: WireSink[] = [];
  const list = { metadata: { resourceVersion: "5" }, items: [vm("web", 3)] };
  const stream = {
    start: (sink: WireSink) => {
      sinks.push(sink);
      return () => undefined;
    },
  };
  const watcher = new Watcher({
    url: "/vms",
    ask: async ({ url }): Promise<WireResponse> => {
      const body = url.includes("watch=true") ? stream : Buffer.from(JSON.stringify(list));
      return { status: 200, headers: {}, body };
    },
    onEnd: () => undefined,
    guard: (check) => {
      try {
        check();
      } catch (error) {
        broken.push(error);
      }
    },
  });
  await watcher.begin();
  const tell = (type: string, object: KubeObject): void => {
    const line = Buffer.from(`${JSON.stringify({ type, object })}\n`);
    // In two pieces, as a network may.
    sinks[0]?.write(line.subarray(0, 10));
    sinks[0]?.write(line.subarray(10));
  };
  return { watcher, tell, broken };
}

describe("somebody who watches", () => {
  it("knows what there is, from the list and from what was told since", async () => {
    const { watcher, tell, broken } = await watching();
    tell("MODIFIED", vm("web", 6));
    tell("ADDED", vm("db", 7));
    const there = [vm("web", 6), vm("db", 7)];
    watcher.demandKnows(new Map(there.map((one) => [`default/${one.metadata.name}`, one])));
    assert.deepEqual(broken, []);
  });

  it("finds out that they were not told of the last change, or of a deletion", async () => {
    const { watcher } = await watching();
    const later = new Map([["default/web", vm("web", 9)]]);
    assert.throws(() => watcher.demandKnows(later), /told 3 of default\/web, and it is 9/);
    assert.throws(() => watcher.demandKnows(new Map()), /did not tell that default\/web is gone/);
  });

  it("hears of nothing twice, and of nothing old", async () => {
    const { tell, broken } = await watching();
    tell("MODIFIED", vm("web", 5));
    assert.match(String(broken[0]), /tells 5 of default\/web after 5/);
  });

  it("is not told that something changed which it never heard of", async () => {
    const { tell, broken } = await watching();
    tell("MODIFIED", vm("db", 6));
    assert.match(String(broken[0]), /MODIFIED of default\/db/);
  });
});
