import { X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import type { ServedRequest } from "../apiserver/index.ts";
import { createMetrics, metricsContentType, secondsBuckets } from "../runtime/index.ts";
import type { Metrics } from "../runtime/index.ts";
import { type Store, StoreError } from "../store/index.ts";
import { systemClock } from "./system.ts";

/** The metrics of one program, with what is true of every Berth in them already. */
export function createProgramMetrics(version: string): Metrics {
  const metrics = createMetrics();
  const build = metrics.gauge({
    name: "berth_build_info",
    help: "Which build runs, on which Node: always 1.",
    labels: ["version", "node"],
  });
  build.set({ version, node: process.version }, 1);
  declareProcess(metrics);
  return metrics;
}

/** As the API server and the port of `berth controller` serve them. */
export function servedMetrics(metrics: Metrics): { contentType: string; text(): Promise<string> } {
  return { contentType: metricsContentType, text: () => metrics.text() };
}

/** Read only when somebody asks: a sampler of its own would wake the process for nothing. */
function declareProcess(metrics: Metrics): void {
  const memory = metrics.gauge({
    name: "process_resident_memory_bytes",
    help: "Memory of the process.",
  });
  const cpu = metrics.counter({
    name: "process_cpu_seconds_total",
    help: "Processor time that the process took.",
  });
  const start = metrics.gauge({
    name: "process_start_time_seconds",
    help: "When the process began, since 1970.",
  });
  const busy = metrics.gauge({
    name: "berth_event_loop_busy_ratio",
    help: "The part of its time since the last reading in which the process was at work: 0 to 1.",
  });
  start.set({}, performance.timeOrigin / 1000);
  let countedSeconds = 0;
  let utilization = performance.eventLoopUtilization();
  metrics.beforeReading(() => {
    memory.set({}, process.memoryUsage.rss());
    const { user, system } = process.cpuUsage();
    const seconds = (user + system) / 1e6;
    cpu.add({}, seconds - countedSeconds);
    countedSeconds = seconds;
    const now = performance.eventLoopUtilization();
    busy.set({}, performance.eventLoopUtilization(now, utilization).utilization);
    utilization = now;
  });
}

/** How long requests to the API took, ours and those of others. */
export function observeRequests(metrics: Metrics): (served: ServedRequest) => void {
  const seconds = metrics.histogram({
    name: "berth_api_request_seconds",
    help: "How long the API took to answer, by verb and resource; of a watch, until it began.",
    labels: ["verb", "resource"],
    buckets: secondsBuckets,
  });
  const total = metrics.counter({
    name: "berth_api_requests_total",
    help: "Requests to the API, by how they were answered.",
    labels: ["verb", "resource", "code"],
  });
  return ({ verb, resource, code, tookMs }) => {
    seconds.observe({ verb, resource }, tookMs / 1000);
    total.add({ verb, resource, code: String(code) });
  };
}

/** How a write can fail. */
const refusals = ["StorageFull", "StorageFailed", "OutcomeUnknown", "Overloaded"] as const;

/** The same store, whose writes are timed and whose refusals are counted. */
export function measureStore(store: Store, metrics: Metrics, database: string): Store {
  const seconds = metrics.histogram({
    name: "berth_store_write_seconds",
    help: "From asking for a write until it is durable and every watcher has it.",
    buckets: secondsBuckets,
  });
  const failures = metrics.counter({
    name: "berth_store_failures_total",
    help: "Writes that the disk or the load did not let through.",
    labels: ["code"],
  });
  // From zero, so that the first one of a kind is an increase.
  for (const code of refusals) failures.add({ code }, 0);
  const size = metrics.gauge({
    name: "berth_store_size_bytes",
    help: "How large the database is, its log included.",
  });
  const revision = metrics.gauge({
    name: "berth_store_revision",
    help: "The newest durable revision.",
  });
  metrics.beforeReading(() => {
    size.set({}, sizeOf(database) + sizeOf(`${database}-wal`));
    revision.set({}, store.revision());
  });
  const write: Store["write"] = async (key, decide) => {
    const startMs = systemClock.monotonicMs();
    try {
      const result = await store.write(key, decide);
      if (result.changed) seconds.observe({}, (systemClock.monotonicMs() - startMs) / 1000);
      return result;
    } catch (error) {
      if (error instanceof StoreError) failures.add({ code: error.code });
      throw error;
    }
  };
  return {
    revision: () => store.revision(),
    compactedRevision: () => store.compactedRevision(),
    get: (key) => store.get(key),
    list: (query) => store.list(query),
    count: (bucket) => store.count(bucket),
    write,
    watch: (options) => store.watch(options),
    compact: (nowMs) => store.compact(nowMs),
    close: () => store.close(),
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Whose certificate it is, and until when it is valid. */
export type NoteCertificate = (of: string, hypervisor: string, expiresMs: number) => void;

export function certificateMetrics(metrics: Metrics): NoteCertificate {
  const expiry = metrics.gauge({
    name: "berth_certificate_expires_timestamp_seconds",
    help: "Until when a certificate is valid, since 1970: our own, and those hypervisors show.",
    labels: ["of", "hypervisor"],
  });
  return (of, hypervisor, expiresMs) => expiry.set({ of, hypervisor }, expiresMs / 1000);
}

/** Until when a certificate in PEM is valid. */
export function expiryOf(pem: string): number {
  return new X509Certificate(pem).validToDate.getTime();
}
