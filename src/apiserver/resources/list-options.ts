import { badRequest } from "../../kernel/status.ts";
import type { FieldError } from "../../kernel/status.ts";
import { forbiddenValue, unsupportedValue } from "./errors.ts";
import { assertOptions, flagParameter, integerParameter } from "./options.ts";

/** The query parameters of lists and watches. Selectors are read elsewhere. */
export interface ListOptions {
  /** 0: no limit was asked for. */
  readonly limit: number;
  readonly continueToken: string;
  /** Undefined: not given. 0 is a value of its own: "anything will do". */
  readonly resourceVersion: number | undefined;
  readonly match: "Exact" | "NotOlderThan" | undefined;
}

export interface WatchOptions {
  readonly resourceVersion: number | undefined;
  /** Undefined: the old rule holds, initial events without a revision and none with one. */
  readonly sendInitialEvents: boolean | undefined;
  readonly bookmarks: boolean;
  readonly timeoutSeconds: number;
}

export function parseListOptions(query: URLSearchParams): ListOptions {
  const resourceVersion = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  const errors = match === "" ? [] : listMatchErrors(query, match, resourceVersion);
  if (query.has("sendInitialEvents")) {
    errors.push(forbiddenValue("sendInitialEvents", "sendInitialEvents is forbidden for list"));
  }
  assertOptions("ListOptions", errors);
  return {
    limit: Math.max(0, integerParameter(query, "limit") ?? 0),
    continueToken: query.get("continue") ?? "",
    resourceVersion: parseResourceVersion(resourceVersion),
    match: match === "Exact" || match === "NotOlderThan" ? match : undefined,
  };
}

export function parseWatchOptions(query: URLSearchParams): WatchOptions {
  const sendInitialEvents = flagParameter(query, "sendInitialEvents");
  assertOptions("ListOptions", watchMatchErrors(query, sendInitialEvents !== undefined));
  return {
    resourceVersion: parseResourceVersion(query.get("resourceVersion") ?? ""),
    sendInitialEvents,
    bookmarks: flagParameter(query, "allowWatchBookmarks") ?? false,
    timeoutSeconds: Math.max(0, integerParameter(query, "timeoutSeconds") ?? 0),
  };
}

/** A revision as a client names it; undefined where it names none. */
export function parseResourceVersion(text: string): number | undefined {
  if (text === "") return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  const why = /^\d+$/.test(text) ? "value out of range" : "invalid syntax";
  const problem = `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${why}`;
  throw badRequest(`invalid resource version: ${problem}`);
}

const matchField = "resourceVersionMatch";

function listMatchErrors(query: URLSearchParams, match: string, version: string): FieldError[] {
  const errors: FieldError[] = [];
  if (version === "") {
    const detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
    errors.push(forbiddenValue(matchField, detail));
  }
  errors.push(...continueErrors(query));
  if (match !== "Exact" && match !== "NotOlderThan") {
    const supported = ["Exact", "NotOlderThan", ""];
    errors.push(unsupportedValue(matchField, JSON.stringify(match), supported));
  }
  if (match === "Exact" && version === "0") {
    const detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
    errors.push(forbiddenValue(matchField, detail));
  }
  return errors;
}

function watchMatchErrors(query: URLSearchParams, sendsInitialEvents: boolean): FieldError[] {
  const match = query.get(matchField) ?? "";
  const errors: FieldError[] = [];
  if (sendsInitialEvents && match !== "NotOlderThan") {
    const detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    errors.push(forbiddenValue(matchField, detail));
  }
  if (match === "") return errors;
  if (!sendsInitialEvents) {
    const detail =
      "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
    errors.push(forbiddenValue(matchField, detail));
  }
  if (match !== "NotOlderThan") {
    errors.push(unsupportedValue(matchField, JSON.stringify(match), ["NotOlderThan"]));
  }
  return [...errors, ...continueErrors(query)];
}

function continueErrors(query: URLSearchParams): FieldError[] {
  if ((query.get("continue") ?? "") === "") return [];
  const detail = "resourceVersionMatch is forbidden when continue is provided";
  return [forbiddenValue(matchField, detail)];
}
