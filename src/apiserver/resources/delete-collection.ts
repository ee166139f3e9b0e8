import { ApiError, methodNotAllowed } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import type { ResourceRequest, ServerEnvironment } from "../contract.ts";
import { deleteOne } from "./delete.ts";
import { parseDeleteOptions } from "./delete-options.ts";
import { parseListOptions } from "./list-options.ts";
import { isNamespaces } from "./namespaces.ts";
import { negotiate } from "./negotiate.ts";
import { respond } from "./respond.ts";
import { selectEntries } from "./select.ts";
import { selectionOf } from "./selection.ts";
import { shapeList } from "./shape.ts";
import { itemOf } from "./write.ts";

/** Deletions that wait for the disk together. More would crowd out everybody else's writes. */
const parallelDeletions = 256;

/**
 * DELETE of a collection: each selected object by itself, so that what fails leaves the others
 * deleted. Answers with the objects as they were.
 */
export async function deleteCollection(
  environment: ServerEnvironment,
  request: ResourceRequest,
): Promise<WireResponse> {
  const { resource } = request;
  if (isNamespaces(resource)) throw methodNotAllowed();
  const output = negotiate(request, "list");
  const { limit } = parseListOptions(request.query);
  const selection = selectionOf(request);
  const options = parseDeleteOptions(request);
  const { store, clock } = environment;
  const selected = selectEntries(store, { resource, selection, ...(limit > 0 ? { limit } : {}) });
  const items = selected.entries.map(itemOf);
  for (let at = 0; at < items.length; at += parallelDeletions) {
    const batch = items.slice(at, at + parallelDeletions).map((item) => {
      const { namespace, name = "" } = item.object().metadata;
      return ignoreMissing(deleteOne(environment, resource, { namespace, name, options }));
    });
    await Promise.all(batch);
  }
  const metadata = { resourceVersion: String(selected.revision) };
  const nowMs = clock.nowMs();
  const pieces = shapeList(items, metadata, { resource, shape: output.shape, nowMs });
  return respond({ status: 200, output }, pieces);
}

/** Somebody else was faster, and wanted the same. */
async function ignoreMissing(deletion: Promise<unknown>): Promise<void> {
  try {
    await deletion;
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "NotFound") throw error;
  }
}
