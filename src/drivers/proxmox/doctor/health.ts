import type { Finding } from "../../../hypervisor/index.ts";
import type { JsonObject } from "../../../kernel/json.ts";
import { readFailureOf } from "../errors.ts";
import { hasImportContent, type Release } from "../release.ts";
import type { PveApi } from "../wire/api.ts";
import { isSet, rowsOf, textOf } from "../wire/rows.ts";
import { pathPart } from "../wire/wire.ts";
import { judgeStorages, type StorageRow } from "./storages.ts";

export interface HealthOptions {
  readonly release: Release;
  /** The storages that machines and images get which do not name one. */
  readonly defaults: { readonly storage?: string; readonly imageStorage?: string };
}

/** Nodes, their majority, and the storages, from what the cluster says about itself. */
export async function examineCluster(
  api: PveApi,
  rows: readonly JsonObject[],
  { release, defaults }: HealthOptions,
): Promise<Finding[]> {
  const nodes = rows.filter((row) => row["type"] === "node");
  const storages = rows.filter((row) => row["type"] === "storage").map(storageRow);
  const online = new Set(nodes.filter(isOnline).map((row) => textOf(row, "node")));
  return [
    ...(await examineNodes(api, nodes)),
    ...(await examineQuorum(api)),
    ...judgeStorages(storages, { defaults, online, hasImports: hasImportContent(release) }),
  ];
}

function isOnline(row: JsonObject): boolean {
  return row["status"] === "online";
}

/** The list lags: a node that it does not show as online is asked itself. */
async function examineNodes(api: PveApi, rows: readonly JsonObject[]): Promise<Finding[]> {
  const away = await Promise.all(
    rows.filter((row) => !isOnline(row)).map((row) => awayNode(api, textOf(row, "node"))),
  );
  const findings = away.flat();
  const names = rows.map((row) => textOf(row, "node")).toSorted();
  const count = names.length === 1 ? "one node" : `${names.length} nodes`;
  if (names.length === 0) {
    const message = "no node can be seen";
    return [
      { check: "Nodes", level: "problem", message, remedy: "See what is said about rights." },
    ];
  }
  if (findings.length > 0) return findings;
  const message = `${count}, all online: ${names.join(", ")}`;
  return [{ check: "Nodes", level: "ok", message }];
}

async function awayNode(api: PveApi, node: string): Promise<Finding[]> {
  const asked = await api.get(`/nodes/${pathPart(node)}/status`);
  if (asked.type === "data") return [];
  const { cause, message } = readFailureOf(asked, `ask the node ${node}`);
  return [
    {
      check: "Nodes",
      level: "problem",
      message: `the node ${node} does not answer: ${cause ?? message}`,
      remedy:
        `Look after ${node}. Machines on it count as unknown, never as gone; if it is gone for ` +
        "good, remove it from the cluster (pvecm delnode).",
    },
  ];
}

/** A single node has no majority to lose, and no entry for it. */
async function examineQuorum(api: PveApi): Promise<Finding[]> {
  const result = await api.get("/cluster/status");
  if (result.type !== "data") {
    const { message } = readFailureOf(result, "ask for the quorum");
    return [{ check: "Nodes", level: "warning", message }];
  }
  const cluster = rowsOf(result.data).find((row) => row["type"] === "cluster");
  if (cluster === undefined) return [];
  const name = textOf(cluster, "name");
  if (isSet(cluster, "quorate")) {
    return [{ check: "Nodes", level: "ok", message: `the cluster ${name} has its majority` }];
  }
  return [
    {
      check: "Nodes",
      level: "problem",
      message: `the cluster ${name} has no majority: nothing can be changed on it`,
      remedy: "Bring nodes back until more than half of them are online (pvecm status).",
    },
  ];
}

function storageRow(row: JsonObject): StorageRow {
  return {
    name: textOf(row, "storage"),
    node: textOf(row, "node"),
    isUsable: row["status"] === "available",
    isShared: isSet(row, "shared"),
    contents: textOf(row, "content").split(","),
    usedBytes: Number(row["disk"] ?? 0),
    totalBytes: Number(row["maxdisk"] ?? 0),
  };
}
