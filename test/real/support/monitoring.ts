import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { repository } from "./berth.ts";

/** An alert of deploy/monitoring/alerts.yaml. */
export interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly annotations: Readonly<Record<string, string>>;
}

export const monitoringFolder = join(repository, "deploy", "monitoring");

export function readAlerts(): Alert[] {
  const { groups } = parse(readFileSync(join(monitoringFolder, "alerts.yaml"), "utf8"));
  return groups.flatMap((group: { rules: Alert[] }) => group.rules);
}

/** The queries of the dashboard, as Prometheus gets them: with Grafana's variables filled in. */
export function readQueries(): { readonly title: string; readonly expr: string }[] {
  const text = readFileSync(join(monitoringFolder, "grafana.json"), "utf8");
  interface Panel {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }
  const { panels } = JSON.parse(text) as { readonly panels: readonly Panel[] };
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      title,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$job", ".*"),
    })),
  );
}

/** The names of metrics in a query. */
export function metricsIn(expr: string): string[] {
  const names = expr.match(/\b(?:berth|process)_[a-z_]+\b/g) ?? [];
  return [...new Set(names)];
}

/** The labels that a query picks or groups by, but for those that Prometheus adds. */
export function labelsIn(expr: string): string[] {
  const picked = [...expr.matchAll(/\{([^}]*)\}/g)].flatMap(([, matchers = ""]) => {
    return [...matchers.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label);
  });
  const grouped = [...expr.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)];
  const named = grouped.flatMap(([, list = ""]) => list.split(",").map((label) => label.trim()));
  const known = new Set(["job", "instance", "le", ""]);
  return [...new Set([...picked, ...named])].filter((label) => !known.has(label));
}

/** The labels of each metric that docs/monitoring.md lists. */
export function documentedLabels(docs: string): Map<string, readonly string[]> {
  const rows = docs.matchAll(/^\| `((?:berth|process)_[a-z_]+)` \| \w+ \| ([^|]*) \|/gm);
  return new Map(
    [...rows].map(([, name = "", labels = ""]) => {
      return [name, labels.split(",").flatMap((label) => label.trim() || [])];
    }),
  );
}

/** The labels of every series that a server exports, by the metric. */
export function exportedLabels(text: string): Map<string, readonly string[]> {
  const exported = exportedMetrics(text);
  const found = new Map<string, readonly string[]>();
  for (const [, name = "", labels = ""] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? /gm)) {
    const names = [...labels.matchAll(/([a-z_]+)="/g)].map(([, label = ""]) => label);
    const own = names.filter((label) => label !== "le");
    found.set(familyOf(name, exported) ?? name, own);
  }
  return found;
}

/** What a server exports, by the lines that say the types: also of what has no series yet. */
export function exportedMetrics(text: string): Map<string, string> {
  const types = text.matchAll(/^# TYPE (\S+) (\S+)$/gm);
  return new Map([...types].map(([, name = "", type = ""]) => [name, type]));
}

/** The metric behind a name in a query: a histogram has three. */
export function familyOf(name: string, exported: ReadonlyMap<string, string>): string | undefined {
  if (exported.has(name)) return name;
  const family = name.replace(/_(bucket|sum|count)$/, "");
  return exported.get(family) === "histogram" ? family : undefined;
}
