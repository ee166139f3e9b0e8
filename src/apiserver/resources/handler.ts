import { methodNotAllowed } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import type { ResourceHandler, ResourceRequest, ServerEnvironment } from "../contract.ts";
import { createObject } from "./create.ts";
import { deleteCollection } from "./delete-collection.ts";
import { deleteObject } from "./delete.ts";
import { getObject } from "./get.ts";
import { listObjects } from "./list.ts";
import { patchObject } from "./patch.ts";
import { updateObject } from "./update.ts";
import { Watches } from "./watch.ts";

/** Serves objects of every kind in the catalogue, as kube-apiserver 1.32 would. */
export function createResourceHandler(environment: ServerEnvironment): ResourceHandler {
  const watches = new Watches(environment);
  return {
    handle: async (request) => serve(environment, watches, request),
    close: () => watches.close(),
  };
}

function serve(
  environment: ServerEnvironment,
  watches: Watches,
  request: ResourceRequest,
): WireResponse | Promise<WireResponse> {
  const { verb, subresource } = request;
  const isForParts = verb === "get" || verb === "update" || verb === "patch";
  // Parts of an object are read and changed; they neither come nor go by themselves.
  if (subresource !== undefined && !isForParts) throw methodNotAllowed();
  switch (verb) {
    case "get":
      return getObject(environment, request);
    case "update":
      return updateObject(environment, request);
    case "patch":
      return patchObject(environment, request);
    case "list":
      return listObjects(environment, request);
    case "watch":
      return watches.watch(request);
    case "create":
      return createObject(environment, request);
    case "delete":
      return deleteObject(environment, request);
    case "deletecollection":
      return deleteCollection(environment, request);
  }
}
