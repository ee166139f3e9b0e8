import type { MetricFamily, MetricSeries } from "./metrics.ts";

/** The Content-Type of the text below. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Metrics in the text format that Prometheus reads (0.0.4). Pure. */
export function formatMetrics(families: readonly MetricFamily[]): string {
  return families.map(formatFamily).join("");
}

function formatFamily({ name, help, type, series }: MetricFamily): string {
  const lines = [
    `# HELP ${name} ${escapeHelp(help)}`,
    `# TYPE ${name} ${type}`,
    ...series.flatMap((one) => (type === "histogram" ? histogram(name, one) : [plain(name, one)])),
  ];
  return `${lines.join("\n")}\n`;
}

function plain(name: string, { labels, value }: MetricSeries): string {
  return `${name}${formatLabels(labels)} ${formatNumber(value)}`;
}

function histogram(
  name: string,
  { labels, value, count = 0, buckets = [] }: MetricSeries,
): string[] {
  const bounds = [...buckets, { bound: Infinity, count }];
  return [
    ...bounds.map((bucket) => {
      const shown = formatLabels({ ...labels, le: formatNumber(bucket.bound) });
      return `${name}_bucket${shown} ${bucket.count}`;
    }),
    `${name}_sum${formatLabels(labels)} ${formatNumber(value)}`,
    `${name}_count${formatLabels(labels)} ${count}`,
  ];
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  const parts = Object.entries(labels).map(([label, value]) => `${label}="${escapeLabel(value)}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function formatNumber(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
