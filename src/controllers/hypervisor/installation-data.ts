import { configMapResource } from "../../api/builtin/index.ts";
import type { Client } from "../../client/index.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";

const at = { namespace: "berth-system", name: "installation" };
/** Hypervisors of one installation write the same object. */
const triesMax = 5;

/** What the ConfigMap of the installation says. */
export type InstallationData = Readonly<Record<string, unknown>>;

export async function readInstallation(client: Client): Promise<InstallationData> {
  return dataOf(await client.of(configMapResource).get(at));
}

/** Changes some of it, over the version that was read; undefined: it is so already. */
export async function changeInstallation(
  client: Client,
  next: (data: InstallationData) => Record<string, string> | undefined,
): Promise<void> {
  const configMaps = client.of(configMapResource);
  for (let tries = 1; ; tries += 1) {
    const object = await configMaps.get(at);
    const changed = next(dataOf(object));
    if (changed === undefined) return;
    try {
      await configMaps.update({ ...object, data: { ...dataOf(object), ...changed } });
      return;
    } catch (error) {
      const isConflict = error instanceof ApiError && error.code === 409;
      if (!isConflict || tries >= triesMax) throw error;
    }
  }
}

/** The members of an object that is kept as JSON. What somebody damaged has none. */
export function membersOf(text: unknown): JsonObject {
  const parsed = typeof text === "string" ? parse(text) : undefined;
  return isJsonObject(parsed) ? parsed : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function dataOf(object: KubeObject): InstallationData {
  const data = object["data"];
  return isJsonObject(data) ? data : {};
}
