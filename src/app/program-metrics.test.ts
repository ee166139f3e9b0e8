import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import type { PveReply } from "../drivers/proxmox/index.ts";
import { createMetrics, createOutsideTime } from "../runtime/index.ts";
import { hypervisorMetrics } from "./hypervisor-metrics.ts";
import { createProgramMetrics, observeRequests } from "./program-metrics.ts";

test("a program tells its build, its memory and its time, each anew", async () => {
  const metrics = createProgramMetrics("1.2.3");
  const first = await metrics.text();
  assert.match(first, /^berth_build_info\{version="1\.2\.3",node="v\d+[^"]*"\} 1$/m);
  assert.match(first, /^process_resident_memory_bytes [1-9]\d{6,}$/m);
  const seconds = (text: string): number => Number(/^process_cpu\S+ (\S+)$/m.exec(text)?.[1]);
  for (let i = 0, sum = 0; i < 5e6; i++) sum += i;
  assert.ok(seconds(await metrics.text()) > seconds(first));
});

test("requests are counted by verb, resource and code", async () => {
  const metrics = createMetrics();
  const observe = observeRequests(metrics);
  observe({ verb: "list", resource: "claims", code: 200, tookMs: 500 });
  const text = await metrics.text();
  assert.match(text, /^berth_api_requests_total\{verb="list",resource="claims",code="200"\} 1$/m);
  assert.match(text, /^berth_api_request_seconds_sum\{verb="list",resource="claims"\} 0\.5$/m);
});

test("calls to hypervisors are counted by endpoint and status, and are time outside", async () => {
  const clock = new VirtualClock();
  const metrics = createMetrics();
  const outside = createOutsideTime(clock);
  const replies: PveReply[] = [
    { type: "answered", status: 200, reason: "OK", body: "{}", from: "x" },
    { type: "answered", status: 599, reason: "", body: "", from: "x" },
    { type: "lost", detail: "" },
    { type: "notSent", why: "unreachable", detail: "" },
    { type: "notSent", why: "fenced", detail: "" },
  ];
  const calls = hypervisorMetrics(metrics, { clock, outside });
  const send = calls.measure(async () => {
    clock.advance(100);
    return replies.shift() ?? assert.fail("one call too many");
  }, "pve");
  let outsideMs = 0;
  const run = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) await send({ method: "GET", path: "/nodes/a/qemu/7/pending" });
  };
  await outside.run(run, (ms) => (outsideMs = ms));
  assert.equal(outsideMs, 500);
  const text = await metrics.text();
  for (const status of ["200", "599", "lost", "unreachable", "fenced"]) {
    const endpoint = 'method="GET",endpoint="/nodes/{node}/qemu/{vmid}/pending"';
    assert.ok(
      text.includes(`berth_hypervisor_calls_total{${endpoint},status="${status}"} 1`),
      text,
    );
  }
  assert.match(text, /^berth_hypervisor_call_failures_total\{hypervisor="pve"\} 3$/m);
});
