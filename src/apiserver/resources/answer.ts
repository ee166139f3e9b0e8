import type { WireResponse } from "../../kernel/wire.ts";
import type { ResourceRequest, ServerEnvironment } from "../contract.ts";
import type { Door } from "./door.ts";
import type { Output } from "./negotiate.ts";
import { respond } from "./respond.ts";
import { shapeOne, type Item } from "./shape.ts";
import { looseItem } from "./write.ts";

interface Answering {
  readonly environment: ServerEnvironment;
  readonly request: ResourceRequest;
  readonly output: Output;
  readonly warnings?: readonly string[];
  readonly status?: number;
}

/** Answers with one object. */
export function answerObject(item: Item, answering: Answering): WireResponse {
  const { environment, request, output, warnings = [], status = 200 } = answering;
  const { resource } = request;
  const nowMs = environment.clock.nowMs();
  const pieces = shapeOne(item, { resource, shape: output.shape, nowMs });
  return respond({ status, output, warnings }, pieces);
}

/** Answers with what is seen of an object through a door. A Scale has no table of its own. */
export function answerThrough(view: Door["show"], item: Item, answering: Answering): WireResponse {
  if (answering.request.subresource !== "scale") return answerObject(item, answering);
  const output: Output = { ...answering.output, shape: { as: "object" } };
  return answerObject(looseItem(view(item.object())), { ...answering, output });
}
