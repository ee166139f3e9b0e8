import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";
import type { Release } from "../release.ts";
import type { ApiRequest, ApiResponse } from "./message.ts";

const authorization = "PVEAPIToken=berth@pve!berth=00000000-0000-4000-8000-000000000001";

async function sent(
  request: Partial<ApiRequest> & { path: string },
  release: Release = "9.2",
): Promise<ApiResponse & { tookMs: number }> {
  const stage = new Stage(release);
  const before = stage.clock.nowMs();
  const headers = { authorization, ...request.headers };
  const response = await stage.settle(stage.model.send({ method: "GET", ...request, headers }));
  return { ...response, tookMs: stage.clock.nowMs() - before };
}

test("an error's text is the reason phrase, and since 8.4 in the body too", async () => {
  const path = "/api2/json/nodes/pve1/qemu/100/config";
  const text = "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";
  const old = await sent({ path }, "7.4");
  assert.deepEqual([old.status, old.reason, old.body], [500, text, '{"data":null}']);
  const now = await sent({ path });
  assert.deepEqual(JSON.parse(now.body), { data: null, message: `${text}\n` });
});

test("under extjs the status is always 200, and the failure is in the body", async () => {
  const { status, body } = await sent({ path: "/api2/extjs/nodes/pve1/qemu/100/config" });
  const { success, status: inner } = membersOf(JSON.parse(body));
  assert.deepEqual([status, success, inner], [200, 0, 500]);
});

test("a refused credential is answered late, and only 7.4 says what was wrong", async () => {
  const headers = { authorization: "PVEAPIToken=berth@pve!berth=wrong" };
  const now = await sent({ path: "/api2/json/nodes", headers });
  assert.deepEqual([now.status, now.reason, now.body], [401, "Authentication failed!", ""]);
  assert.ok(now.tookMs >= 3_000);
  const old = await sent({ path: "/api2/json/nodes", headers }, "7.4");
  assert.equal(old.reason, "invalid token value!");
  const none = await sent({ path: "/api2/json/nodes", headers: { authorization: "" } });
  assert.equal(none.reason, "No ticket");
});

const plain: { reason: string; request: Partial<ApiRequest> & { path: string }; status: number }[] =
  [
    {
      reason: "a verb that is not there",
      request: { method: "PATCH", path: "/api2/json/nodes" },
      status: 501,
    },
    { reason: "a format that is not there", request: { path: "/api2/xml/version" }, status: 501 },
    {
      reason: "a body on DELETE",
      request: { method: "DELETE", path: "/api2/json/nodes/pve1/qemu/100", body: "purge=1" },
      status: 501,
    },
    {
      reason: "JSON that is none",
      request: {
        method: "POST",
        path: "/api2/json/nodes/pve1/qemu",
        headers: { "content-type": "application/json" },
        body: "{vmid",
      },
      status: 500,
    },
    {
      reason: "a type of body that is not known",
      request: {
        method: "POST",
        path: "/api2/json/nodes/pve1/qemu",
        headers: { "content-type": "text/yaml" },
        body: "vmid: 1",
      },
      status: 506,
    },
    {
      reason: "a body that is too large",
      request: { method: "POST", path: "/api2/json/nodes/pve1/qemu", body: "x".repeat(600_000) },
      status: 501,
    },
  ];

for (const { reason, request, status } of plain) {
  test(`the server itself refuses ${reason}`, async () => {
    const answer = await sent(request);
    assert.equal(answer.status, status);
    assert.equal(answer.headers["content-type"], undefined);
  });
}

test("a form is cut at every sign of equality, and at semicolons", async () => {
  const stage = new Stage();
  const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
  const path = "/api2/json/nodes/pve1/qemu";
  const body = "vmid=100;name=semi&description=a=b";
  const made = await stage.settle(stage.model.send({ method: "POST", path, headers, body }));
  assert.equal(await stage.taskEnd(membersOf(JSON.parse(made.body))["data"]), "OK");
  const { name, description } = await stage.config(100);
  assert.deepEqual([name, description], ["semi", "a"]);
});

test("a path that no release has is not implemented, importdisk above all", async () => {
  const path = "/api2/json/nodes/pve1/qemu/100/importdisk";
  const { status, reason } = await sent({ method: "POST", path });
  assert.equal(status, 501);
  assert.equal(reason, "Method 'POST /nodes/pve1/qemu/100/importdisk' not implemented");
});

test("a change of a guest that is being made waits in 8.4, and is refused at once in 9.2", async () => {
  for (const release of ["8.4", "9.2"] as const) {
    const stage = new Stage(release);
    stage.model.cluster.slowStorageMs = 3_000;
    const made = await stage.call("POST", "/nodes/pve1/qemu", { vmid: 100, scsi0: "local:1" });
    // By now the worker holds the flock.
    stage.clock.advance(500);
    const change = await stage.call("PUT", "/nodes/pve1/qemu/100/config", { name: "late" });
    const texts = { "8.4": "OK", "9.2": "VM is locked (create)" };
    assert.equal(change.reason, texts[release]);
    assert.equal(await stage.taskEnd(made.data), "OK");
  }
});

test("an unknown task is told apart from what is no task at all", async () => {
  const base = "/api2/json/nodes/pve1/tasks";
  const gone = "UPID:pve1:000003E8:00000001:00000001:qmcreate:100:berth@pve!berth:";
  const status = await sent({ path: `${base}/${gone}/status` });
  assert.match(status.body, /"upid":"no such task"/);
  const bogus = await sent({ path: `${base}/bogus/status` });
  assert.match(bogus.body, /"upid":"unable to parse worker upid"/);
  for (const [release, isList] of [
    ["8.4", false],
    ["9.2", true],
  ] as const) {
    const log = await sent({ path: `${base}/${gone}/log` }, release);
    assert.equal(Array.isArray(membersOf(JSON.parse(log.body))["data"]), isList);
  }
});
