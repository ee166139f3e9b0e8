import { claimName } from "../../controllers/index.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ServedKind } from "../objects/discovery.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { statusOf } from "./findings.ts";

/** The Claim of a VirtualMachine, by its name; undefined where there is none or it is closed. */
export async function claimOf(
  server: Server,
  served: readonly ServedKind[],
  object: KubeObject,
): Promise<KubeObject | undefined> {
  const { externalId, hypervisor } = statusOf(object);
  const claims = served.find(({ kind }) => kind === "Claim");
  const hypervisors = served.find(({ kind }) => kind === "Hypervisor");
  if (typeof externalId !== "string" || typeof hypervisor !== "string") return undefined;
  if (claims === undefined || hypervisors === undefined) return undefined;
  try {
    const at = { namespace: server.namespace, name: hypervisor };
    const home = await findObject(server, { kind: hypervisors, ...at });
    const spec: unknown = home?.["spec"];
    const systemId = isJsonObject(spec) ? spec["systemId"] : undefined;
    if (typeof systemId !== "string") return undefined;
    const name = claimName(systemId, externalId);
    return await findObject(server, { kind: claims, namespace: server.namespace, name });
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}
