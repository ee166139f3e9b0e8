import type { OpenApiSchema } from "./schema.ts";

/** A parameter of an operation. Written out wherever it is used: kubectl follows no references. */
export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query";
  readonly description: string;
  readonly required?: true;
  readonly schema: OpenApiSchema;
}

export const nameParameter = pathParameter("name", "The name of the object.");
export const namespaceParameter = pathParameter("namespace", "The namespace of the object.");

/** kubectl looks for dryRun and fieldValidation here to learn whether the server knows them. */
export const writeParameters: readonly Parameter[] = [
  query("dryRun", "All: check everything, store nothing."),
  query("fieldManager", "The program that writes."),
  query(
    "fieldValidation",
    "What to do about fields that are not known: Ignore drops them, Warn also says so, Strict " +
      "refuses the object.",
  ),
];

export const readParameters: readonly Parameter[] = [
  query("resourceVersion", "At least this revision."),
];

export const deleteParameters: readonly Parameter[] = [
  query("dryRun", "All: check everything, delete nothing."),
  query("gracePeriodSeconds", "How long the object may take to go.", "integer"),
  query("propagationPolicy", "What becomes of what it owns: Orphan, Background or Foreground."),
];

export const selectionParameters: readonly Parameter[] = [
  query("labelSelector", "Only objects whose labels match."),
  query("fieldSelector", "Only objects whose fields match."),
];

export const listParameters: readonly Parameter[] = [
  ...selectionParameters,
  query("limit", "At most so many in one page.", "integer"),
  query("continue", "The next page, as the one before it said."),
  query("resourceVersion", "The revision to read, or to watch from."),
  query("resourceVersionMatch", "Whether that revision is meant exactly: Exact or NotOlderThan."),
  query("watch", "Stream the changes instead of listing.", "boolean"),
  query("allowWatchBookmarks", "Let the stream also tell how far it is.", "boolean"),
  query("sendInitialEvents", "Let the stream begin with all there is.", "boolean"),
  query("timeoutSeconds", "End the stream after so long.", "integer"),
];

function query(
  name: string,
  description: string,
  type: "string" | "integer" | "boolean" = "string",
): Parameter {
  return { name, in: "query", description, schema: { type } };
}

function pathParameter(name: string, description: string): Parameter {
  return { name, in: "path", description, required: true, schema: { type: "string" } };
}
