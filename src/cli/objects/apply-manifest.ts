import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ServedKind } from "./discovery.ts";
import { kindOfObject } from "./kinds.ts";
import type { Declared, Manifest } from "./manifests.ts";
import { collectionPath, type ObjectAt, objectPath } from "./paths.ts";
import { findObject, toObject } from "./read-objects.ts";
import type { Server } from "./server.ts";
import { lastAppliedOf, threeWayPatch, withLastApplied } from "./three-way.ts";

/** What came of one document. */
export type Applied =
  | {
      readonly how: "created" | "configured" | "unchanged";
      readonly kind: ServedKind;
      readonly object: KubeObject;
    }
  | {
      readonly how: "refused";
      readonly why: string;
      /** The server's code, where it was the server that refused. */
      readonly code?: number;
    };

export interface ApplyOptions {
  readonly manifest: Manifest;
  readonly served: readonly ServedKind[];
  readonly isDryRun: boolean;
}

/** Somebody else may write or create at the same moment; then it is looked at again. */
const attemptsMax = 5;

/** Applies one document as kubectl's client-side apply does. What the server refuses is told. */
export async function applyManifest(server: Server, options: ApplyOptions): Promise<Applied> {
  const { manifest } = options;
  if ("fault" in manifest) return { how: "refused", why: manifest.fault };
  const planned = locate(server, manifest, options.served);
  if ("why" in planned) return planned;
  try {
    return await applyWithRetries(server, planned, options.isDryRun);
  } catch (error) {
    // What concerns all documents is not a matter of this one.
    if (!(error instanceof ApiError) || error.code === 401) throw error;
    return { how: "refused", why: error.message, code: error.code };
  }
}

interface Planned {
  readonly at: ObjectAt;
  /** The manifest with its namespace and the annotation. */
  readonly modified: JsonObject;
}

function locate(
  server: Server,
  declared: Declared,
  served: readonly ServedKind[],
): Planned | Extract<Applied, { how: "refused" }> {
  const { object, name, namespace = server.namespace } = declared;
  const kind = kindOfObject(served, declared);
  if (kind === undefined) {
    const why = `the server has no kind ${declared.kind} in ${declared.apiVersion}`;
    return { how: "refused", why };
  }
  const metadata = isJsonObject(object["metadata"]) ? object["metadata"] : {};
  const placed = kind.namespaced ? { ...metadata, namespace } : metadata;
  return {
    at: { kind, namespace, name },
    modified: withLastApplied({ ...object, metadata: placed }),
  };
}

async function applyWithRetries(
  server: Server,
  planned: Planned,
  isDryRun: boolean,
): Promise<Applied> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await applyOnce(server, planned, isDryRun);
    } catch (error) {
      const isRace = error instanceof ApiError && error.code === 409;
      if (!isRace || attempt >= attemptsMax) throw error;
    }
  }
}

async function applyOnce(server: Server, planned: Planned, isDryRun: boolean): Promise<Applied> {
  const { at, modified } = planned;
  const { kind } = at;
  const query = {
    fieldManager: "berth-client-side-apply",
    fieldValidation: "Strict",
    dryRun: isDryRun ? "All" : undefined,
  };
  const current = await findObject(server, at);
  if (current === undefined) {
    const path = collectionPath(kind, at.namespace);
    const made = await server.ask({ method: "POST", path, query, body: modified });
    return { how: "created", kind, object: toObject(made, kind) };
  }
  // cast: an object of the API is JSON.
  const json = current as unknown as JsonObject;
  const patch = threeWayPatch({ original: lastAppliedOf(json), modified, current: json });
  if (patch === undefined) return { how: "unchanged", kind, object: current };
  const answer = await server.ask({
    method: "PATCH",
    path: objectPath(at),
    query,
    body: patch,
    contentType: "application/merge-patch+json",
  });
  const object = toObject(answer, kind);
  return { how: !isDryRun && isSame(current, object) ? "unchanged" : "configured", kind, object };
}

/** The server may find that nothing changed: defaults, or other spellings of the same quantity. */
function isSame(before: KubeObject, after: KubeObject): boolean {
  const version = before.metadata.resourceVersion;
  return version !== undefined && version === after.metadata.resourceVersion;
}
