import type { WireResponse } from "../../kernel/wire.ts";
import { textResponse } from "./responses.ts";
import type { Call, Route } from "./route.ts";
import { queryFlag } from "./url.ts";

/** One thing that has to be well for the server to be. */
export interface HealthCheck {
  readonly name: string;
  /** Why it is not well, in words fit for everybody: the answer needs no credentials. */
  readonly failure?: string | undefined;
}

/** Asked at each request. The app knows the store's state and whether it is still starting. */
export type Health = () => readonly HealthCheck[];

/**
 * `livez` says that the process answers at all: whoever restarts it on a failure must not be told
 * of a full disk, which a restart does not mend. `healthz` and `readyz` say whether it can serve.
 */
export function healthRoutes(health: Health): Route[] {
  const route = (name: string, checks: Health): Route => ({
    pattern: `/${name}`,
    methods: ["GET"],
    access: "public",
    serve: (call) => serveHealth(name, checks(), call),
  });
  return [route("livez", () => []), route("healthz", health), route("readyz", health)];
}

function serveHealth(name: string, checks: readonly HealthCheck[], call: Call): WireResponse {
  const failed = checks.filter((check) => check.failure !== undefined);
  const isVerbose = queryFlag(call.url.query, "verbose");
  if (failed.length === 0 && !isVerbose) return textResponse(200, "ok");
  const lines = (isVerbose ? [{ name: "ping" }, ...checks] : failed).map(formatCheck);
  const verdict = failed.length === 0 ? "passed" : "failed";
  return textResponse(
    failed.length === 0 ? 200 : 503,
    `${lines.join("")}${name} check ${verdict}\n`,
  );
}

function formatCheck(check: HealthCheck): string {
  if (check.failure === undefined) return `[+]${check.name} ok\n`;
  return `[-]${check.name} failed: ${check.failure}\n`;
}
