import { assert } from "../../kernel/assert.ts";
import type { Catalogue } from "../contract.ts";
import { notAcceptable, acceptedTypes, perGeneration } from "../documents/index.ts";
import { serveDocument, takesType } from "../documents/index.ts";
import type { Document, DocumentHandler } from "../documents/index.ts";
import type { AcceptClause } from "../resources/accept.ts";
import { aggregatedDocument, type AggregatedVersion } from "./aggregated.ts";
import type { DiscoveredGroup } from "./discovered.ts";
import { discoveredGroups } from "./groups.ts";
import { coreVersionsDocument, groupDocument } from "./plain.ts";
import { groupListDocument, resourceListDocument } from "./plain.ts";

/** The forms of one path. Only /api and /apis have the aggregated ones. */
type Forms = Readonly<Record<"plain" | AggregatedVersion, Document | undefined>>;

/**
 * Serves what the API consists of: /api, /apis, /api/v1, /apis/GROUP and /apis/GROUP/VERSION, in
 * the form that the client asks for. Clients of every age are answered in a form they know: the
 * aggregated one is only given to who names it, with the content type under which it was named.
 */
export function createDiscovery(catalogue: Catalogue): DocumentHandler {
  const documents = perGeneration(catalogue, buildDocuments);
  return (request) => {
    const { path } = request;
    const forms = documents().get(path.endsWith("/") ? path.slice(0, -1) : path);
    if (forms === undefined) return undefined;
    return serveDocument(negotiate(forms, request.headers.accept), request);
  };
}

function negotiate(forms: Forms, header: string | undefined): Document {
  for (const accepted of acceptedTypes(header)) {
    const form = formOf(accepted);
    const document = form === undefined ? undefined : forms[form];
    if (document !== undefined && takesType(accepted, "application/json")) return document;
  }
  throw notAcceptable(["application/json"]);
}

/**
 * The form that a media type names. One with parameters that mean nothing here (a Table, say) has
 * no document, and the next type of the header gets its turn.
 */
function formOf(accepted: AcceptClause): keyof Forms | undefined {
  const { parameters } = accepted;
  if (!parameters.has("as")) return "plain";
  const named =
    parameters.get("as") === "APIGroupDiscoveryList" &&
    parameters.get("g") === "apidiscovery.k8s.io";
  const version = parameters.get("v");
  return named && (version === "v2" || version === "v2beta1") ? version : undefined;
}

function buildDocuments(catalogue: Catalogue): Map<string, Forms> {
  const groups = discoveredGroups(catalogue);
  const core = groups.filter(({ group }) => group === "");
  const named = groups.filter(({ group }) => group !== "");
  const documents = new Map<string, Forms>();
  documents.set("/api", rootForms(core, coreVersionsDocument(core[0])));
  documents.set("/apis", rootForms(named, groupListDocument(named)));
  for (const group of groups) addGroupDocuments(documents, group);
  return documents;
}

function addGroupDocuments(documents: Map<string, Forms>, group: DiscoveredGroup): void {
  const base = group.group === "" ? "/api" : `/apis/${group.group}`;
  if (group.group !== "") documents.set(base, plainForms(groupDocument(group)));
  for (const version of group.versions) {
    const path = `${base}/${version.version}`;
    assert(!documents.has(path), `no two groups have the path ${path}`);
    documents.set(path, plainForms(resourceListDocument(version)));
  }
}

function rootForms(groups: readonly DiscoveredGroup[], plain: Document): Forms {
  const v2 = aggregatedDocument(groups, "v2");
  return { plain, v2, v2beta1: aggregatedDocument(groups, "v2beta1") };
}

function plainForms(plain: Document): Forms {
  return { plain, v2: undefined, v2beta1: undefined };
}
