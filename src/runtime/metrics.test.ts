import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createMetrics, metricsContentType } from "./metrics.ts";

describe("metrics", () => {
  test("are shown in the text format of Prometheus", async () => {
    const metrics = createMetrics();
    const writes = metrics.counter({ name: "writes_total", help: "Writes.", labels: ["kind"] });
    const depth = metrics.gauge({ name: "depth", help: "How\ndeep\\." });
    const time = metrics.histogram({ name: "time_seconds", help: "Time.", buckets: [0.1, 1] });
    writes.add({ kind: 'a"b\\c\nd' });
    writes.add({ kind: "vm" }, 2.5);
    depth.set({}, -Infinity);
    for (const value of [0.1, 0.5, 7]) time.observe({}, value);
    assert.equal(
      await metrics.text(),
      `# HELP writes_total Writes.
# TYPE writes_total counter
writes_total{kind="a\\"b\\\\c\\nd"} 1
writes_total{kind="vm"} 2.5

# HELP depth How\\ndeep\\\\.
# TYPE depth gauge
depth -Inf

# HELP time_seconds Time.
# TYPE time_seconds histogram
time_seconds_bucket{le="0.1"} 1
time_seconds_bucket{le="1"} 2
time_seconds_bucket{le="+Inf"} 3
time_seconds_sum 7.6
time_seconds_count 3
`,
    );
    assert.match(metricsContentType, /^text\/plain; version=0\.0\.4/);
  });

  test("without labels begin at zero", async () => {
    const metrics = createMetrics();
    metrics.counter({ name: "errors_total", help: "Errors." });
    assert.match(await metrics.text(), /^errors_total 0$/m);
  });

  test("of too many labels fall together instead of filling the memory", async () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: "c_total", help: "C.", labels: ["a", "b"] });
    for (let i = 0; i < 2_000; i++) counter.add({ a: `x${i}`, b: "y" });
    counter.add({ a: "x0", b: "y" });
    const lines = (await metrics.text()).split("\n").filter((line) => line.startsWith("c_total{"));
    assert.equal(lines.length, 501);
    assert.equal(lines.at(-1), 'c_total{a="other",b="other"} 1500');
    assert.equal(lines[0], 'c_total{a="x0",b="y"} 2');
  });

  test("keep series apart whose labels only look alike together", async () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: "c_total", help: "C.", labels: ["a", "b"] });
    counter.add({ a: 'x","y', b: "z" });
    counter.add({ a: "x", b: 'y","z' });
    assert.equal((await metrics.text()).match(/^c_total\{/gm)?.length, 2);
  });

  test("are looked up anew before each reading, until that is ended", async () => {
    const metrics = createMetrics();
    const gauge = metrics.gauge({ name: "g", help: "G.", labels: ["of"] });
    let readings = 0;
    const end = metrics.beforeReading(() => {
      gauge.clear();
      gauge.set({ of: `reading ${++readings}` }, readings);
    });
    await metrics.text();
    const second = await metrics.text();
    assert.match(second, /^g\{of="reading 2"\} 2$/m);
    assert.doesNotMatch(second, /reading 1/, "what is no longer so is no longer shown");
    end();
    assert.match(await metrics.text(), /reading 2/);
    assert.equal(readings, 2);
  });

  test("are declared once, rightly, and counters only grow", () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: "c_total", help: "C." });
    assert.throws(() => counter.add({}, -1), /only grows/);
    assert.throws(() => metrics.gauge({ name: "c_total", help: "C." }), /declared once/);
    assert.throws(() => metrics.gauge({ name: "1c", help: "C." }), /name of a metric/);
    assert.throws(() => metrics.gauge({ name: "d", help: "", labels: ["le"] }), /names of labels/);
    const descending = { name: "h", help: "", buckets: [2, 1] };
    assert.throws(() => metrics.histogram(descending), /buckets of h ascend/);
  });
});
