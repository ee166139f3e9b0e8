import { isJsonObject } from "../../kernel/json.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, Capability, Failure, SystemView } from "../../hypervisor/index.ts";
import { readFailureOf } from "./errors.ts";
import {
  hasImportContent,
  hasMappings,
  isSupported,
  parseRelease,
  type Release,
} from "./release.ts";
import { missingRights } from "./rights.ts";
import type { PveApi, PveResult } from "./wire/api.ts";
import { rowsOf, textOf } from "./wire/rows.ts";
import { pathPart } from "./wire/wire.ts";

export interface SystemRead {
  readonly view: SystemView;
  readonly release: Release;
  /** As GET /access/permissions has it. */
  readonly permissions: unknown;
}

/** Who the system is, which version it has, and which rights are missing. Four reads. */
export async function readSystem(api: PveApi): Promise<Answer<SystemRead>> {
  const version = await api.get("/version");
  if (version.type !== "data") return failed(readFailureOf(version, "ask for the version"));
  const release = parseRelease(isJsonObject(version.data) ? textOf(version.data, "version") : "");
  if (release === undefined) return failed(strange("the version"));
  const systemId = await readSystemId(api);
  if (!systemId.ok) return systemId;
  const permissions = await api.get("/access/permissions");
  if (permissions.type !== "data") return failed(readFailureOf(permissions, "ask for the rights"));
  const findings = [
    ...(isSupported(release) ? [] : [tooOld(release)]),
    ...missingRights(permissions.data, release),
  ];
  const capabilities = capabilitiesOf(release);
  const view = { systemId: systemId.value, version: release.text, capabilities, findings };
  return answered({ view, release, permissions: permissions.data });
}

/**
 * The fingerprint of the cluster's own authority, `pve-root-ca.pem`. It is made once with the
 * cluster, is the same on every node, and outlives renewed and bought server certificates. Every
 * user may read it (`GET /nodes/{node}/certificates/info`, permission `user: all`).
 */
async function readSystemId(api: PveApi): Promise<Answer<string>> {
  const nodes = await api.get("/nodes");
  if (nodes.type !== "data") return failed(readFailureOf(nodes, "list the nodes"));
  const rows = rowsOf(nodes.data);
  const names = rows
    .toSorted((a, b) => Number(b["status"] === "online") - Number(a["status"] === "online"))
    .map((row) => textOf(row, "node"));
  let last: PveResult | undefined;
  for (const name of names) {
    last = await api.get(`/nodes/${pathPart(name)}/certificates/info`);
    if (last.type !== "data") continue;
    const certificates = rowsOf(last.data);
    const root = certificates.find((row) => row["filename"] === "pve-root-ca.pem");
    const fingerprint = root === undefined ? "" : textOf(root, "fingerprint");
    if (fingerprint !== "") return answered(`pve-root-ca:${fingerprint.toUpperCase()}`);
  }
  if (last === undefined || last.type === "data") return failed(strange("the cluster's authority"));
  return failed(readFailureOf(last, "ask for the cluster's certificate"));
}

const always: readonly Capability[] = [
  "CreateBlank",
  "FullClone",
  "LinkedClone",
  "GrowDisk",
  "CloudInit",
  "LiveMigration",
  "MoveDisk",
  "TransferDisk",
  "Firmware",
  "SeedDisc",
  "Suspend",
  "HighAvailability",
];

function capabilitiesOf(release: Release): Capability[] {
  if (!isSupported(release)) return [];
  return [
    ...always,
    ...(hasImportContent(release) ? (["ImportFromImage", "FetchImage"] as const) : []),
    ...(hasMappings(release) ? (["Devices"] as const) : []),
  ];
}

function tooOld({ text }: Release): Failure {
  return {
    category: "APINotSupported",
    message: `Proxmox VE ${text} is older than 7.2: it cannot import disks by its API`,
  };
}

function strange(what: string): Failure {
  return { category: "NetworkError", message: `what answers is no Proxmox VE: no ${what}` };
}
