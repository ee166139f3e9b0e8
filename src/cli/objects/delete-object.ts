import { ApiError } from "../../kernel/status.ts";
import { followObject } from "./follow-object.ts";
import type { Found } from "./found.ts";
import { type ObjectAt, objectPath } from "./paths.ts";
import type { Server } from "./server.ts";

export interface Deletion {
  readonly propagationPolicy: "Background" | "Foreground" | "Orphan";
  readonly isDryRun: boolean;
}

/** Deletes the object that was seen, and no later one of its name. Gone already is as good. */
export async function deleteObject(
  server: Server,
  { kind, object }: Found,
  { propagationPolicy, isDryRun }: Deletion,
): Promise<void> {
  const { uid } = object.metadata;
  try {
    await server.ask({
      method: "DELETE",
      path: objectPath(placeOf({ kind, object })),
      body: {
        apiVersion: "v1",
        kind: "DeleteOptions",
        propagationPolicy,
        ...(uid === undefined ? {} : { preconditions: { uid } }),
        ...(isDryRun ? { dryRun: ["All"] } : {}),
      },
    });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
}

/** Resolves once there is no such object any more, or another one of the same name. */
export async function waitUntilGone(
  server: Server,
  found: Found,
  signal: AbortSignal,
): Promise<void> {
  for await (const state of followObject(server, placeOf(found), signal)) {
    if (state?.metadata.uid !== found.object.metadata.uid) return;
  }
}

export function placeOf({ kind, object }: Found): ObjectAt {
  const { namespace = "default", name = "" } = object.metadata;
  return { kind, namespace, name };
}
