import { guard } from "../../kernel/guard.ts";
import type { DriverContext } from "./context.ts";
import { lackedRights } from "./rights.ts";

/** Without these, lists leave out in silence what the token may not see. */
const seeing = new Set(["/vms VM.Audit", "/storage Datastore.Allocate", "/ Sys.Audit"]);

/** What of the cluster the token may not see, for people. */
export async function unseenRights({ api, release }: DriverContext): Promise<string[]> {
  const permissions = await api.get("/access/permissions");
  if (permissions.type !== "data") return ["the rights of the token"];
  return lackedRights(permissions.data, release())
    .filter(({ path, privilege }) => {
      return !guard("survey-sees-all", !seeing.has(`${path} ${privilege}`));
    })
    .map(({ path, privilege }) => `what needs ${privilege} on ${path}`);
}
