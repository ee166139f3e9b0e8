import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { NetworkError } from "../client/index.ts";
import { Failpoints, failpointTable, parseFailpoints } from "../kernel/failpoints.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";
import { createMemoryDisk } from "../store/index.ts";
import { pointsOfWrite } from "./failpoint-writes.ts";
import {
  failingJournal,
  failingSend,
  failingTransport,
  type ProcessFailpoints,
} from "./failpoints.ts";

function armed(text: string): ProcessFailpoints {
  const settings = { armed: parseFailpoints(text) };
  const points = new Failpoints(settings.armed);
  return { settings, reach: async (name) => points.visit(name)?.do === "error" };
}

function request(method: string, url: string, body?: unknown): WireRequest {
  const text = body === undefined ? "" : JSON.stringify(body);
  return { method, url, headers: {}, body: new TextEncoder().encode(text) };
}

const group = "/apis/berth.dev/v1alpha1";
const vm = `${group}/namespaces/default/virtualmachines/web`;

describe("a write of a controller is told by its request", () => {
  const leases = "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases";
  const finalizers = "/metadata/finalizers";
  const cases: readonly (readonly [WireRequest, string | undefined])[] = [
    [request("GET", `${group}/claims/x`), undefined],
    [request("POST", `${group}/claims`), "before-claim-create"],
    [request("PUT", `${group}/claims/x?fieldManager=a`), "before-claim-update"],
    [request("DELETE", `${group}/claims/x`), "before-claim-delete"],
    [request("POST", leases), "before-lease"],
    [request("PUT", `${leases}/berth-controllers`), "before-lease"],
    [request("PUT", `${vm}/status`, { status: { operation: { step: "x" } } }), "before-intent"],
    [request("PUT", `${vm}/status`, { status: { operation: { task: "x" } } }), "before-status"],
    [request("PUT", `${vm}/status`, { status: {} }), "before-status"],
    [request("PATCH", vm, [{ op: "add", path: finalizers }]), "before-finalizer-add"],
    [request("PATCH", vm, [{ op: "remove", path: finalizers }]), "before-finalizer-remove"],
    [request("POST", "/api/v1/namespaces/default/events", {}), undefined],
  ];
  for (const [asked, expected] of cases) {
    test(`${asked.method} ${asked.url}: ${expected ?? "no point"}`, () => {
      const points = pointsOfWrite(asked);
      assert.equal(points?.before, expected);
      assert.equal(points?.after, expected?.replace("before", "after"));
    });
  }
});

describe("an error at a point", () => {
  test("before a write to the API is unreachable, after it an unknown outcome", async () => {
    const seen: string[] = [];
    const transport = async (): Promise<WireResponse> => {
      seen.push("sent");
      return { status: 200, headers: {}, body: new Uint8Array() };
    };
    const write = request("POST", `${group}/claims`);
    const isUnreachable = (error: unknown): boolean => {
      return error instanceof NetworkError && error.code === "Unreachable";
    };
    const before = failingTransport(transport, armed("before-claim-create=error"));
    await assert.rejects(before(write), isUnreachable);
    assert.deepEqual(seen, []);
    const after = failingTransport(transport, armed("after-claim-create=error"));
    await assert.rejects(after(write), /after-claim-create/);
    assert.deepEqual(seen, ["sent"]);
    assert.equal((await after(write)).status, 200);
    assert.equal(failingTransport(transport, undefined), transport);
  });

  test("before an effect nothing is sent, after it the reply is lost; reads go on", async () => {
    const sent: string[] = [];
    const send = async ({ method }: { method: string }): Promise<never> => {
      sent.push(method);
      return { type: "answered", status: 200, reason: "OK", body: "", from: "pve1" } as never;
    };
    const path = "/nodes/pve1/qemu";
    const before = failingSend(send, armed("before-effect=error"));
    assert.equal((await before({ method: "POST", path })).type, "notSent");
    const after = failingSend(send, armed("after-effect=error"));
    assert.equal((await after({ method: "GET", path })).type, "answered");
    assert.equal((await after({ method: "POST", path })).type, "lost");
    assert.deepEqual(sent, ["GET", "POST"]);
  });

  test("before the disk nothing is stored; after it nobody knows", async () => {
    const value = new Uint8Array([1]);
    const record = { revision: 1, bucket: "b", id: "i", type: "put", value } as const;
    const before = failingJournal(createMemoryDisk().open(), armed("before-append=error"));
    await before.load();
    await assert.rejects(before.append([record]), { code: "StorageFailed" });
    await before.append([record]);
    const after = failingJournal(createMemoryDisk().open(), armed("after-append=error"));
    await after.load();
    await assert.rejects(after.append([record]), { name: "Error" });
  });
});

test("the page for testers names every point", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/failpoints.md"), "utf8");
  for (const [name, sentence] of Object.entries(failpointTable)) {
    assert.ok(page.includes(`| \`${name}\` | ${sentence} |`), name);
  }
});
