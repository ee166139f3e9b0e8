import { controllersLease } from "../../controllers/index.ts";
import { humanDuration } from "../../kernel/human-duration.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ServedKind } from "../objects/discovery.ts";
import type { Server } from "../objects/server.ts";
import type { Line } from "./report.ts";

/** The format of a data folder, as far as it is known. */
export interface FolderView {
  readonly path: string;
  readonly format: number;
  readonly newest: number;
}

/** Whether the API answers with Berth's kinds, somebody leads, and the data can be read. */
export async function examineControlPlane(
  server: Server,
  served: readonly ServedKind[],
  folder: FolderView | undefined,
): Promise<Line[]> {
  return [
    await apiLine(server),
    ...kindLines(served),
    await controllersLine(server),
    ...(folder === undefined ? [] : [folderLine(folder)]),
  ];
}

async function apiLine(server: Server): Promise<Line> {
  const version = await server.ask({ path: "/version" });
  const text = isJsonObject(version) ? version["gitVersion"] : undefined;
  const shown = typeof text === "string" ? `, version ${text}` : "";
  return { check: "API", level: "ok", message: `${server.url} answers${shown}` };
}

function kindLines(served: readonly ServedKind[]): Line[] {
  if (served.some(({ kind, group }) => kind === "Hypervisor" && group === "berth.dev")) return [];
  return [
    {
      check: "API",
      level: "problem",
      message: "this server does not know Berth's kinds",
      remedy: "Bring them in:",
      commands: ["berth crds | kubectl apply -f -"],
    },
  ];
}

/** A lease that is older than itself belongs to nobody. */
async function controllersLine(server: Server): Promise<Line> {
  const { namespace, name } = controllersLease;
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`;
  const remedy = "Start them: berth up has them in it, berth controller runs them on Kubernetes.";
  const problem = { check: "Controllers", level: "problem", remedy } as const;
  const lease = await askOrExplain(server, path);
  if (lease === "forbidden") return unknownLeader;
  if (lease === undefined) return { ...problem, message: "no controllers have ever led here" };
  const { holderIdentity, renewTime, leaseDurationSeconds } = specOf(lease);
  if (typeof holderIdentity !== "string" || holderIdentity === "") {
    return { ...problem, message: "no controllers lead: the last ones stopped" };
  }
  const ageMs = server.clock.nowMs() - Date.parse(typeof renewTime === "string" ? renewTime : "");
  if (!(ageMs <= Number(leaseDurationSeconds) * 1000)) {
    const since = Number.isNaN(ageMs) ? "" : ` for ${humanDuration(ageMs)}`;
    return { ...problem, message: `no controllers lead: ${holderIdentity} is silent${since}` };
  }
  return { check: "Controllers", level: "ok", message: `${holderIdentity} leads` };
}

/** Not to know is no finding about the control plane: the rest is examined all the same. */
const unknownLeader: Line = {
  check: "Controllers",
  level: "warning",
  message: "you may not read their Lease, so whether any lead is not known",
  remedy: "Run the doctor as an administrator.",
};

/** Undefined: it is not there. */
async function askOrExplain(server: Server, path: string): Promise<unknown> {
  try {
    return await server.ask({ path });
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    if (error instanceof ApiError && error.code === 403) return "forbidden";
    throw error;
  }
}

function specOf(object: unknown): JsonObject {
  const spec = isJsonObject(object) ? object["spec"] : undefined;
  return isJsonObject(spec) ? spec : {};
}

function folderLine({ path, format, newest }: FolderView): Line {
  const message = `${path} has format ${format}`;
  if (format === newest) return { check: "Data", level: "ok", message };
  if (format < newest) {
    const remedy = "The next berth up of this version brings it up to date; make a backup before.";
    return { check: "Data", level: "warning", message: `${message}, an older one`, remedy };
  }
  return {
    check: "Data",
    level: "problem",
    message: `${message}, and this program knows ${newest} at most`,
    remedy: "Use the version of Berth that wrote it, or a later one.",
  };
}
