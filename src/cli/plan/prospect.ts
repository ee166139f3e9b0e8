import type { JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { ServedKind } from "../objects/discovery.ts";
import type { Server } from "../objects/server.ts";
import type { Look } from "./look.ts";

/** What applying one document would do. */
export interface Prospect {
  /** Unknown: somebody lacks the right to be told. */
  readonly how: "created" | "changed" | "unchanged" | "refused" | "unknown";
  readonly plan?: JsonObject;
  /** Why nothing would be done, or what could not be told. */
  readonly why?: string;
}

/** What all prospects of one run have in common. */
export interface Run {
  readonly server: Server;
  readonly served: readonly ServedKind[];
  /** Objects as they are stored. */
  readonly look: Look;
  /** Objects as they would be once everything was applied. */
  readonly lookBeyond: Look;
  readonly nowMs: number;
}

export interface Planning extends Run {
  /** As it is on the server; undefined where there is none. */
  readonly before: KubeObject | undefined;
  /** As the server itself would store it. */
  readonly after: KubeObject;
}
