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
  if (typeof externalId !== "string" || typeof hypervisor !== "string") return undefined;
  const read = async (kindName: string, name: string): Promise<KubeObject | undefined> => {
    const kind = served.find((candidate) => candidate.kind === kindName);
    return kind && findObject(server, { kind, namespace: server.namespace, name });
  };
  try {
    const home = await read("Hypervisor", hypervisor);
    const systemId = isJsonObject(home?.["spec"]) ? home["spec"]["systemId"] : undefined;
    if (typeof systemId !== "string") return undefined;
    return await read("Claim", claimName(systemId, externalId));
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) return undefined;
    throw error;
  }
}
