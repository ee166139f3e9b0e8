import { limits } from "../../kernel/limits.ts";
import { badRequest, expired, type Status } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import type { ResourceRequest, ServerEnvironment } from "../contract.ts";
import { decodeContinue, encodeContinue, type ContinueToken } from "./continue-token.ts";
import { tooLargeResourceVersion } from "./errors.ts";
import { parseListOptions, type ListOptions } from "./list-options.ts";
import { negotiate } from "./negotiate.ts";
import { respond } from "./respond.ts";
import { OutOfReach, selectEntries, type Selected, type SelectQuery } from "./select.ts";
import { selectionOf, type Selection } from "./selection.ts";
import { shapeList, type ListMetadata } from "./shape.ts";
import { itemOf } from "./write.ts";

/** A list: whole, or in pages that are all of the first page's revision. */
export function listObjects(
  environment: ServerEnvironment,
  request: ResourceRequest,
): WireResponse {
  const { resource, query } = request;
  const { store, clock } = environment;
  const options = parseListOptions(query);
  const output = negotiate(request, "list");
  const selection = selectionOf(request);
  const token = options.continueToken === "" ? undefined : decodeContinue(options.continueToken);
  const atRevision = revisionOf(options, token, store.revision());
  try {
    const selected = selectEntries(store, {
      resource,
      selection,
      ...afterOf(token, selection),
      ...(options.limit > 0 ? { limit: Math.min(options.limit, limits.pageItems) } : {}),
      ...(atRevision === undefined ? {} : { atRevision }),
    });
    const pieces = shapeList(selected.entries.map(itemOf), metadataOf(selected, selection), {
      resource,
      shape: output.shape,
      nowMs: clock.nowMs(),
    });
    return respond({ status: 200, output }, pieces);
  } catch (error) {
    if (!(error instanceof OutOfReach)) throw error;
    if (error.why === "future") throw tooLargeResourceVersion(atRevision ?? 0, store.revision());
    if (!token) throw expired("The resourceVersion for the provided list is too old.");
    return respond({ status: 410, output }, [JSON.stringify(expiredContinue(token))]);
  }
}

/** The revision to read at, or undefined for the newest. Throws for one that is still to come. */
function revisionOf(
  options: ListOptions,
  token: ContinueToken | undefined,
  newest: number,
): number | undefined {
  const { resourceVersion = 0, match, limit } = options;
  if (token) {
    if (resourceVersion > 0) {
      throw badRequest("specifying resource version is not allowed when using continue");
    }
    return token.revision > 0 ? token.revision : undefined;
  }
  if (resourceVersion > newest) throw tooLargeResourceVersion(resourceVersion, newest);
  if (resourceVersion === 0) return undefined;
  // Without a word on how to match, a page is exactly of its revision and a whole list at least.
  const isExact = match === "Exact" || (match === undefined && limit > 0);
  return isExact ? resourceVersion : undefined;
}

function afterOf(
  token: ContinueToken | undefined,
  { prefix }: Selection,
): Pick<SelectQuery, "afterId"> {
  return token ? { afterId: `${prefix}${token.after}` } : {};
}

function metadataOf(selected: Selected, { prefix }: Selection): ListMetadata {
  const { revision, remaining, hasMore } = selected;
  const resourceVersion = String(revision);
  const last = selected.entries.at(-1);
  if (!hasMore || !last) return { resourceVersion };
  return {
    resourceVersion,
    continue: encodeContinue({ revision, after: last.id.slice(prefix.length) }),
    ...(remaining === undefined ? {} : { remainingItemCount: remaining }),
  };
}

/** The pages before are no longer known; who does not mind a seam may go on at the newest. */
function expiredContinue(
  token: ContinueToken,
): Omit<Status, "metadata"> & { metadata: { continue: string } } {
  const { message } = expired(
    "The provided continue parameter is too old to display a consistent list result. You can " +
      "start a new list without the continue parameter, or use the continue token in this " +
      "response to retrieve the remainder of the results. Continuing with the provided token " +
      "results in an inconsistent list - objects that were created, modified, or deleted between " +
      "the time the first chunk was returned and now may show up in the list.",
  );
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: { continue: encodeContinue({ ...token, revision: -1 }) },
    status: "Failure",
    message,
    reason: "Expired",
    code: 410,
  };
}
