import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { apiVersionOfKind, type ServedKind } from "./discovery.ts";
import { collectionPath, type ObjectAt, objectPath } from "./paths.ts";
import type { Server } from "./server.ts";

/** Objects per page; kubectl asks for as many. */
const pageItems = 500;

export interface Selection {
  readonly kind: ServedKind;
  /** Absent: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** One object; undefined if there is none. */
export async function findObject(server: Server, at: ObjectAt): Promise<KubeObject | undefined> {
  try {
    return toObject(await server.ask({ path: objectPath(at) }), at.kind);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

/** One object. Rejects with the server's own NotFound if there is none. */
export async function getObject(server: Server, at: ObjectAt): Promise<KubeObject> {
  return toObject(await server.ask({ path: objectPath(at) }), at.kind);
}

export interface Listed {
  readonly items: KubeObject[];
  readonly resourceVersion: string;
}

export async function listObjects(server: Server, selection: Selection): Promise<Listed> {
  const pages = await listPages(server, selection);
  const items = pages.flatMap((page) => {
    const found = page["items"];
    return Array.isArray(found) ? found.map((item) => toObject(item, selection.kind)) : [];
  });
  return { items, resourceVersion: resourceVersionOf(pages[0]) };
}

/** Every page of a list, in whatever form `accept` asks for. */
export async function listPages(
  server: Server,
  selection: Selection,
  accept?: string,
): Promise<JsonObject[]> {
  const ask = (query: Paging): Promise<JsonObject> => askPage(server, selection, { query, accept });
  const pages = [await ask({ limit: pageItems })];
  try {
    for (let token = tokenOf(pages[0]); token !== undefined; token = tokenOf(pages.at(-1))) {
      pages.push(await ask({ limit: pageItems, continue: token }));
    }
    return pages;
  } catch (error) {
    // The rest is no longer to be had as it was when the first page was read: all of it anew.
    if (!(error instanceof ApiError) || error.code !== 410) throw error;
    return [await ask({})];
  }
}

type Paging = Readonly<Record<string, string | number>>;

async function askPage(
  server: Server,
  selection: Selection,
  { query, accept }: { query: Paging; accept: string | undefined },
): Promise<JsonObject> {
  const page = await server.ask({
    path: collectionPath(selection.kind, selection.namespace),
    query: { ...selectors(selection), ...query },
    ...(accept === undefined ? {} : { accept }),
  });
  if (!isJsonObject(page)) throw new Error("the server's list is not an object");
  return page;
}

function tokenOf(page: JsonObject | undefined): string | undefined {
  const metadata = page?.["metadata"];
  const token = isJsonObject(metadata) ? metadata["continue"] : undefined;
  return typeof token === "string" && token !== "" ? token : undefined;
}

export function selectors(selection: Selection): Record<string, string | undefined> {
  const { labelSelector, fieldSelector } = selection;
  return { labelSelector, fieldSelector };
}

export function resourceVersionOf(list: Json | undefined): string {
  const metadata = isJsonObject(list) ? list["metadata"] : undefined;
  const version = isJsonObject(metadata) ? metadata["resourceVersion"] : undefined;
  return typeof version === "string" ? version : "0";
}

/** The edge: what the server sent, as an object. Items of a list come without their kind. */
export function toObject(json: Json, kind: ServedKind): KubeObject {
  if (!isJsonObject(json) || !isJsonObject(json["metadata"])) {
    throw new Error(`the server's answer is not a ${kind.kind}`);
  }
  // cast: metadata is there, and the rest is the server's word.
  return { apiVersion: apiVersionOfKind(kind), kind: kind.kind, ...json } as unknown as KubeObject;
}
