import type { Resource } from "../../api/resource.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import type { Catalogue } from "../contract.ts";
import { makeDocument, notAcceptable, acceptedTypes, perGeneration } from "../documents/index.ts";
import { serveDocument, takesType } from "../documents/index.ts";
import type { Document, DocumentHandler, DocumentRequest } from "../documents/index.ts";
import { documentSchemas } from "./components.ts";
import { documentPaths } from "./paths.ts";
import { assertTakesVersion2, version2Document } from "./version2.ts";

const root = "/openapi/v3";

/**
 * Serves the description of the API: an index at /openapi/v3, and a document for each group and
 * version. The index names each by its hash, so clients may keep for ever what they once read.
 * /openapi/v2 is there for clients that insist on it, and is empty.
 */
export function createOpenApi(catalogue: Catalogue): DocumentHandler {
  const documents = perGeneration(catalogue, buildDocuments);
  return (request) => {
    if (request.path === "/openapi/v2") return serveVersion2(request);
    const document = documents().get(request.path);
    if (document === undefined) return undefined;
    assertTakesJson(request);
    return serveDocument(document, request, cacheControl(document, request));
  };
}

function serveVersion2(request: DocumentRequest): WireResponse {
  assertTakesVersion2(request);
  return serveDocument(version2Document, request);
}

/** Under its hash a document never changes; without one, or with an old one, it may. */
function cacheControl(document: Document, request: DocumentRequest): string {
  const current = request.query.get("hash") === document.hash;
  return current ? "private, immutable, max-age=31536000" : "private, no-cache";
}

/** A client that takes only protobuf (the form of Go's own tools) has to be told. */
function assertTakesJson(request: DocumentRequest): void {
  const accepted = acceptedTypes(request.headers.accept);
  const taken = accepted.some((type) => takesType(type, "application/json"));
  if (!taken) throw notAcceptable(["application/json"]);
}

function buildDocuments(catalogue: Catalogue): Map<string, Document> {
  const groups = Map.groupBy(catalogue.all(), groupVersionPath);
  const documents = new Map<string, Document>();
  const paths: Record<string, { serverRelativeURL: string }> = {};
  for (const [path, resources] of groups) {
    const document = makeDocument(openApiDocument(resources));
    documents.set(`${root}/${path}`, document);
    paths[path] = { serverRelativeURL: `${root}/${path}?hash=${document.hash}` };
  }
  documents.set(root, makeDocument({ paths }));
  return documents;
}

function groupVersionPath({ group, version }: Resource): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

function openApiDocument(resources: readonly Resource[]): object {
  return {
    openapi: "3.0.0",
    info: { title: "Berth", version: "unversioned" },
    paths: documentPaths(resources),
    components: { schemas: documentSchemas(resources) },
  };
}
