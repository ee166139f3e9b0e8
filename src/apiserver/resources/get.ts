import { assert } from "../../kernel/assert.ts";
import { badRequest, notFound } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { bucketOf, idOf, type ResourceRequest, type ServerEnvironment } from "../contract.ts";
import { answerThrough } from "./answer.ts";
import { doorOf } from "./door.ts";
import { subjectOf, tooLargeResourceVersion } from "./errors.ts";
import { parseResourceVersion } from "./list-options.ts";
import { negotiate } from "./negotiate.ts";
import { flagParameter } from "./options.ts";
import { itemOf } from "./write.ts";

/** One object, always the newest: whoever asks for an older one means "at least as new as that". */
export function getObject(environment: ServerEnvironment, request: ResourceRequest): WireResponse {
  const { resource, namespace, name, query } = request;
  assert(name !== undefined, "a get names its object");
  const output = negotiate(request, "one");
  if (flagParameter(query, "export")) {
    throw badRequest("the export parameter, deprecated since v1.14, is no longer supported");
  }
  const asked = parseResourceVersion(query.get("resourceVersion") ?? "") ?? 0;
  const newest = environment.store.revision();
  if (asked > newest) throw tooLargeResourceVersion(asked, newest);
  const entry = environment.store.get({ bucket: bucketOf(resource), id: idOf(namespace, name) });
  if (!entry) throw notFound(subjectOf(resource, name));
  const door = doorOf(request, environment.runnerOf(resource));
  return answerThrough(door.read, itemOf(entry), { environment, request, output });
}
