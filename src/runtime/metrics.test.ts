import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatMetrics } from "./metrics-text.ts";
import { createMetrics } from "./metrics.ts";

describe("metrics", () => {
  test("are shown in the text format of Prometheus", () => {
    const metrics = createMetrics();
    const writes = metrics.counter({ name: "writes_total", help: "Writes.", labels: ["kind"] });
    const depth = metrics.gauge({ name: "depth", help: "How\ndeep\\." });
    const time = metrics.histogram({ name: "time_seconds", help: "Time.", buckets: [0.1, 1] });
    writes.add({ kind: 'a"b\\c\nd' });
    writes.add({ kind: "vm" }, 2.5);
    depth.set({}, -Infinity);
    for (const value of [0.1, 0.5, 7]) time.observe({}, value);
    assert.equal(
      formatMetrics(metrics.snapshot()),
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
  });

  test("without labels begin at zero", () => {
    const metrics = createMetrics();
    metrics.counter({ name: "errors_total", help: "Errors." });
    assert.match(formatMetrics(metrics.snapshot()), /^errors_total 0$/m);
  });

  test("of too many labels fall together instead of filling the memory", () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: "c_total", help: "C.", labels: ["a", "b"] });
    for (let i = 0; i < 2_000; i++) counter.add({ a: `x${i}`, b: "y" });
    counter.add({ a: "x0", b: "y" });
    const [family] = metrics.snapshot();
    assert.equal(family?.series.length, 501);
    assert.deepEqual(family.series.at(-1), { labels: { a: "other", b: "other" }, value: 1_500 });
    assert.equal(family.series[0]?.value, 2);
  });

  test("keep series apart whose labels only look alike together", () => {
    const metrics = createMetrics();
    const counter = metrics.counter({ name: "c_total", help: "C.", labels: ["a", "b"] });
    counter.add({ a: 'x","y', b: "z" });
    counter.add({ a: "x", b: 'y","z' });
    assert.equal(metrics.snapshot()[0]?.series.length, 2);
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
