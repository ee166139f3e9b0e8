import { jsonResponse } from "./responses.ts";
import type { Route } from "./route.ts";

/** The Kubernetes release whose API this server speaks: kubectl compares it with its own. */
const kubernetes = { major: "1", minor: "32" };

/** `kubectl version`. The build's own version stands after the plus, as semver has it. */
export function versionRoute(berthVersion: string): Route {
  const { major, minor } = kubernetes;
  const info = {
    major,
    minor,
    gitVersion: `v${major}.${minor}.0+berth-${berthVersion}`,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "",
    compiler: "",
    platform: "",
  };
  return {
    pattern: "/version",
    methods: ["GET"],
    access: "public",
    serve: () => jsonResponse(200, info),
  };
}
