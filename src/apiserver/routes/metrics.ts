import type { Attributes } from "../authorization/index.ts";
import type { Route } from "./route.ts";

/** Numbers about the program, in the text that Prometheus reads. */
export interface MetricsSource {
  readonly contentType: string;
  text(): Promise<string>;
}

/**
 * What the numbers tell is about all namespaces: whoever may read everywhere may read them, and a
 * user of single namespaces may not. As on Kubernetes, they are never open to strangers.
 */
const needs: Attributes = {
  verb: "get",
  group: "berth.dev",
  resource: "metrics",
  subresource: undefined,
  namespace: undefined,
  name: undefined,
};

export function metricsRoutes(metrics: MetricsSource | undefined): Route[] {
  if (metrics === undefined) return [];
  const serve = async () => ({
    status: 200,
    headers: { "content-type": metrics.contentType, "x-content-type-options": "nosniff" },
    body: Buffer.from(await metrics.text()),
  });
  return [{ pattern: "/metrics", methods: ["GET"], access: "permitted", needs, serve }];
}
