import { pathNotFound } from "../../kernel/status.ts";
import type { DocumentHandler } from "../documents/index.ts";
import type { Route } from "./route.ts";

/** What there is: the same for every user, and no secret to any of them. */
export function documentRoutes(discovery: DocumentHandler, openApi: DocumentHandler): Route[] {
  const route = (pattern: string, handler: DocumentHandler): Route => ({
    pattern,
    methods: ["GET"],
    access: "authenticated",
    serve: ({ url, request }) => {
      const path = `/${url.segments.join("/")}`;
      const response = handler({ path, query: url.query, headers: request.headers });
      if (response === undefined) throw pathNotFound();
      return response;
    },
  });
  return [
    route("/api", discovery),
    route("/apis", discovery),
    route("/api/{version}", discovery),
    route("/apis/{group}", discovery),
    route("/apis/{group}/{version}", discovery),
    route("/openapi/v2", openApi),
    route("/openapi/v3", openApi),
    route("/openapi/v3/{path...}", openApi),
  ];
}
