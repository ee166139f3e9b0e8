import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { discover } from "../objects/discovery.ts";
import { resolveKind } from "../objects/kinds.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { textOf } from "../objects/text.ts";
import { isOnlyObserved } from "../why/observed.ts";

/** The Hypervisor of each object that this copy of the installation only observes, by object. */
export async function onlyObserved(
  server: Server,
  objects: readonly KubeObject[],
): Promise<ReadonlyMap<KubeObject, string>> {
  const named = objects.flatMap((object) => {
    const name = hypervisorOf(object);
    return name === undefined ? [] : [{ object, name }];
  });
  const observed = new Map<string, boolean>();
  for (const { name } of named) {
    if (!observed.has(name)) observed.set(name, await isObserved(server, name));
  }
  const found = named.filter(({ name }) => observed.get(name) === true);
  return new Map(found.map(({ object, name }) => [object, name]));
}

/** The Hypervisor that a VM is on, or the object itself. */
function hypervisorOf({ kind, metadata, spec, status }: KubeObject): string | undefined {
  if (kind === "Hypervisor") return metadata.name;
  if (kind !== "VirtualMachine") return undefined;
  if (isJsonObject(status) && typeof status["hypervisor"] === "string") return status["hypervisor"];
  const ref = isJsonObject(spec) ? spec["hypervisorRef"] : undefined;
  return isJsonObject(ref) ? textOf(ref["name"]) : undefined;
}

async function isObserved(server: Server, name: string): Promise<boolean> {
  const kind = resolveKind(await discover(server), "hypervisors");
  try {
    const object = await findObject(server, { kind, namespace: "", name });
    return object !== undefined && isOnlyObserved(object);
  } catch (error) {
    // Who may not read Hypervisors is told by the status of the VM.
    if (error instanceof ApiError && error.code === 403) return false;
    throw error;
  }
}
