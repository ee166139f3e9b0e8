import { assert } from "../kernel/assert.ts";

/**
 * Numbers about the program, by name and labels. A registry of its own for each program: there is
 * none that all share. Nothing here waits, and nothing but a programmer's error throws.
 */
export interface Metrics {
  /** A number that only grows: `…_total`. */
  counter<const Label extends string>(options: MetricOptions<Label>): Counter<Label>;
  /** A number that goes up and down. */
  gauge<const Label extends string>(options: MetricOptions<Label>): Gauge<Label>;
  /** How values are spread: `…_seconds`, `…_bytes`. */
  histogram<const Label extends string>(options: HistogramOptions<Label>): Histogram<Label>;
  /** All that is known now, to be formatted. */
  snapshot(): MetricFamily[];
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
}

export interface Histogram<Label extends string> {
  observe(labels: Labels<Label>, value: number): void;
}

export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly series: readonly MetricSeries[];
}

export interface MetricSeries {
  readonly labels: Readonly<Record<string, string>>;
  /** The number; of a histogram, the sum of all that was observed. */
  readonly value: number;
  /** Of a histogram: for each bound, how many values were not above it. */
  readonly buckets?: readonly { readonly bound: number; readonly count: number }[];
  /** Of a histogram: how many values there were. */
  readonly count?: number;
}

/** For times from a millisecond to minutes, in seconds. */
export const secondsBuckets = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Series of one name. More would fill the memory here and in every server that collects them. */
const seriesMax = 500;
/** What the labels say of all that came after that many. */
const overflowValue = "other";

export function createMetrics(): Metrics {
  const families = new Map<string, Family>();
  const register = <Label extends string>(
    type: MetricFamily["type"],
    options: MetricOptions<Label> & { readonly buckets?: readonly number[] },
  ): Family => {
    assert(!families.has(options.name), `the metric ${options.name} is declared once`);
    const family = new Family(type, options);
    families.set(options.name, family);
    return family;
  };
  return {
    counter: (options) => {
      const family = register("counter", options);
      return {
        add: (labels, amount = 1) => {
          assert(amount >= 0, `${options.name} only grows`);
          family.seriesOf(labels).value += amount;
        },
      };
    },
    gauge: (options) => {
      const family = register("gauge", options);
      return { set: (labels, value) => void (family.seriesOf(labels).value = value) };
    },
    histogram: (options) => {
      const family = register("histogram", options);
      return { observe: (labels, value) => observe(family.seriesOf(labels), value) };
    },
    snapshot: () => [...families.values()].map((family) => family.snapshot()),
  };
}

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  value: number;
  count: number;
  readonly bounds: readonly number[];
  /** How many values fell between one bound and the next. */
  readonly counts: number[];
}

class Family {
  readonly #type: MetricFamily["type"];
  readonly #name: string;
  readonly #help: string;
  readonly #labels: readonly string[];
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(
    type: MetricFamily["type"],
    options: MetricOptions<string> & { readonly buckets?: readonly number[] },
  ) {
    const { name, help, labels = [], buckets = [] } = options;
    assert(/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name), `${name} is the name of a metric`);
    assert(labels.every(isLabelName), `the labels of ${name} are names of labels`);
    assert(isAscending(buckets), `the buckets of ${name} ascend`);
    this.#type = type;
    this.#name = name;
    this.#help = help;
    this.#labels = labels;
    this.#bounds = buckets;
    // What has no labels is there from the beginning, so that a rate can be taken of its first one.
    if (labels.length === 0) this.seriesOf({});
  }

  seriesOf(labels: Readonly<Record<string, string>>): Series {
    const values = this.#labels.map((label) => labels[label] ?? "");
    const known = this.#series.get(keyOf(values));
    if (known !== undefined) return known;
    const isFull = this.#series.size >= seriesMax;
    return this.#make(isFull ? values.map(() => overflowValue) : values);
  }

  snapshot(): MetricFamily {
    const series = [...this.#series.values()].map((one) => this.#snapshotOf(one));
    return { name: this.#name, help: this.#help, type: this.#type, series };
  }

  #make(values: readonly string[]): Series {
    const key = keyOf(values);
    const known = this.#series.get(key);
    if (known !== undefined) return known;
    const labels = Object.fromEntries(this.#labels.map((label, i) => [label, values[i] ?? ""]));
    const counts = this.#bounds.map(() => 0);
    const series: Series = { labels, value: 0, count: 0, bounds: this.#bounds, counts };
    this.#series.set(key, series);
    return series;
  }

  #snapshotOf({ labels, value, count, counts }: Series): MetricSeries {
    if (this.#type !== "histogram") return { labels, value };
    let below = 0;
    const buckets = this.#bounds.map((bound, i) => {
      below += counts[i] ?? 0;
      return { bound, count: below };
    });
    return { labels, value, count, buckets };
  }
}

function observe(series: Series, value: number): void {
  series.value += value;
  series.count += 1;
  const index = series.bounds.findIndex((bound) => value <= bound);
  if (index >= 0) series.counts[index] = (series.counts[index] ?? 0) + 1;
}

function keyOf(values: readonly string[]): string {
  return JSON.stringify(values);
}

function isLabelName(label: string): boolean {
  return /^[a-zA-Z_][a-zA-Z0-9_]*$/.test(label) && !label.startsWith("__") && label !== "le";
}

function isAscending(numbers: readonly number[]): boolean {
  return numbers.every(
    (number, i) => Number.isFinite(number) && number > (numbers[i - 1] ?? -Infinity),
  );
}
