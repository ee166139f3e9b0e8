import { configMapResource } from "../api/builtin/index.ts";
import type { Client } from "../client/index.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";

const name = { namespace: "berth-system", name: "installation" };

/**
 * The id of this installation, which keeps two Berths that share a hypervisor from taking each
 * other's machines for their own. Made once; whoever loses the race takes the winner's.
 */
export async function readInstallation(client: Client, random: Random): Promise<string> {
  const configMaps = client.of(configMapResource);
  try {
    return idOf(await configMaps.get(name));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
  const object = {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: name,
    data: { id: random.uuid() },
  };
  try {
    return idOf(await configMaps.create(object));
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "AlreadyExists") throw error;
    return idOf(await configMaps.get(name));
  }
}

function idOf(object: { [field: string]: unknown }): string {
  const data = object["data"];
  const id = isJsonObject(data) ? data["id"] : undefined;
  if (typeof id === "string" && id !== "") return id;
  throw new Error("the ConfigMap berth-system/installation has no id: restore it from a backup");
}
