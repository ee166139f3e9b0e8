import {
  Counter as PromCounter,
  Gauge as PromGauge,
  Histogram as PromHistogram,
} from "prom-client";
import { Registry } from "prom-client";
import { assert } from "../kernel/assert.ts";

/**
 * Numbers about the program, by name and labels. A registry of its own for each program: there is
 * none that all share. Nothing here waits, and nothing but a programmer's error throws. Who counts
 * knows this interface; that prom-client keeps the numbers, only this file does.
 */
export interface Metrics {
  /** A number that only grows: `…_total`. */
  counter<const Label extends string>(options: MetricOptions<Label>): Counter<Label>;
  /** A number that goes up and down. */
  gauge<const Label extends string>(options: MetricOptions<Label>): Gauge<Label>;
  /** How values are spread: `…_seconds`, `…_bytes`. */
  histogram<const Label extends string>(options: HistogramOptions<Label>): Histogram<Label>;
  /** Called before each reading, for what is looked up rather than told. Returns what ends it. */
  beforeReading(update: () => void): () => void;
  /** All that is known now, in the text format that Prometheus reads. */
  text(): Promise<string>;
}

export interface MetricOptions<Label extends string> {
  readonly name: string;
  /** One sentence. */
  readonly help: string;
  /** Their values must be of a small set: a kind, a category; never a name of an object. */
  readonly labels?: readonly Label[];
}

export interface HistogramOptions<Label extends string> extends MetricOptions<Label> {
  /** Upper bounds, ascending, without infinity. */
  readonly buckets: readonly number[];
}

export type Labels<Label extends string> = Readonly<Record<Label, string>>;

export interface Counter<Label extends string> {
  add(labels: Labels<Label>, amount?: number): void;
}

export interface Gauge<Label extends string> {
  set(labels: Labels<Label>, value: number): void;
  /** Forgets every series: before all of them are set anew. */
  clear(): void;
}

export interface Histogram<Label extends string> {
  observe(labels: Labels<Label>, value: number): void;
}

/** For times from a millisecond to minutes, in seconds. */
export const secondsBuckets = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** The Content-Type of the text. */
export const metricsContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** Series of one name. More would fill the memory here and in every server that collects them. */
const seriesMax = 500;
/** What the labels say of all that came after that many. */
const overflowValue = "other";

export function createMetrics(): Metrics {
  const registry = new Registry();
  const updates = new Set<() => void>();
  const declare = <Label extends string>(options: MetricOptions<Label>): Declared<Label> => {
    const { name, help, labels = [] } = options;
    assert(registry.getSingleMetric(name) === undefined, `the metric ${name} is declared once`);
    assert(isMetricName(name), `${name} is the name of a metric`);
    assert(labels.every(isLabelName), `the labels of ${name} are names of labels`);
    return { name, help, labelNames: [...labels], registers: [registry] };
  };
  return {
    counter: (options) => {
      const counter = new PromCounter(declare(options));
      const bounded = boundLabels(options);
      return {
        add: (labels, amount = 1) => {
          assert(amount >= 0, `${options.name} only grows`);
          counter.inc(bounded.of(labels), amount);
        },
      };
    },
    gauge: (options) => {
      const gauge = new PromGauge(declare(options));
      const bounded = boundLabels(options);
      return {
        set: (labels, value) => gauge.set(bounded.of(labels), value),
        clear: () => {
          gauge.reset();
          bounded.clear();
        },
      };
    },
    histogram: (options) => {
      assert(isAscending(options.buckets), `the buckets of ${options.name} ascend`);
      const buckets = [...options.buckets];
      const histogram = new PromHistogram({ ...declare(options), buckets });
      const bounded = boundLabels(options);
      return { observe: (labels, value) => histogram.observe(bounded.of(labels), value) };
    },
    beforeReading: (update) => {
      updates.add(update);
      return () => void updates.delete(update);
    },
    text: () => {
      for (const update of updates) update();
      return registry.metrics();
    },
  };
}

interface Declared<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: Label[];
  readonly registers: Registry[];
}

/** The labels as they are counted: beyond so many series they fall together into one. */
interface BoundedLabels<Label extends string> {
  of(labels: Labels<Label>): Record<Label, string>;
  clear(): void;
}

function boundLabels<Label extends string>({
  labels: names = [],
}: MetricOptions<Label>): BoundedLabels<Label> {
  const known = new Set<string>();
  return {
    of: (labels) => {
      const values = names.map((name) => labels[name]);
      const key = JSON.stringify(values);
      const isKnown = known.has(key);
      const isFull = !isKnown && known.size >= seriesMax;
      if (!isKnown && !isFull) known.add(key);
      const pairs = names.map((name, i) => [name, isFull ? overflowValue : (values[i] ?? "")]);
      // cast: the pairs are those of all names of the labels.
      return Object.fromEntries(pairs) as Record<Label, string>;
    },
    clear: () => known.clear(),
  };
}

function isMetricName(name: string): boolean {
  return /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name);
}

function isLabelName(label: string): boolean {
  return /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) && !label.startsWith("__") && label !== "le";
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every(
    (number, i) => Number.isFinite(number) && number > (numbers[i - 1] ?? -Infinity),
  );
}
