import { secretResource } from "../api/builtin/index.ts";
import type { Client } from "../client/index.ts";
import { isJsonObject } from "../kernel/json.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";

const name = { namespace: "berth-system", name: "berth-digest-key" };
const bytes = 32;

/**
 * The key of the digests of Secrets that Claims keep. Without it nobody can find out by trying what
 * such a Secret said. Created once; whoever loses the race takes the winner's. Undefined where the
 * controllers may not read or create it: then no digests of Secrets are kept.
 */
export async function readDigestKey(client: Client, random: Random): Promise<string | undefined> {
  const secrets = client.of(secretResource);
  try {
    return (await unless(404, async () => keyOf(await secrets.get(name)))) ?? (await create());
  } catch (error) {
    // Not allowed; or there is no such kind or namespace.
    const isRefused = error instanceof ApiError && (error.code === 403 || error.code === 404);
    if (isRefused) return undefined;
    throw error;
  }

  async function create(): Promise<string | undefined> {
    const key = Buffer.from(random.bytes(bytes)).toString("base64");
    const object = { apiVersion: "v1", kind: "Secret", metadata: name, data: { key } };
    const created = await unless(409, async () => keyOf(await secrets.create(object)));
    return created ?? keyOf(await secrets.get(name));
  }
}

async function unless<T>(code: number, ask: () => Promise<T>): Promise<T | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== code) throw error;
    return undefined;
  }
}

function keyOf(object: { [field: string]: unknown }): string | undefined {
  const data = object["data"];
  const key = isJsonObject(data) ? data["key"] : undefined;
  return typeof key === "string" && key !== "" ? key : undefined;
}
