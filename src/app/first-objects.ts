import { configMapResource, namespaceResource } from "../api/builtin/index.ts";
import type { Resource } from "../api/resource.ts";
import { systemNamespace } from "../apiserver/index.ts";
import type { Client } from "../client/index.ts";
import type { KubeObject } from "../kernel/object.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";

/** What kubectl and other tools expect to be there, and where Berth keeps its own. */
const namespaces = ["default", "kube-system", systemNamespace];

/**
 * Makes the objects that every installation has, where they are missing. The installation's id
 * keeps two Berths that share a hypervisor from taking each other's machines for their own, so it
 * is made once and never again.
 */
export async function createFirstObjects(client: Client, random: Random): Promise<void> {
  for (const name of namespaces) {
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
    await ensure(client, namespaceResource, namespace);
  }
  await ensure(client, configMapResource, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { namespace: systemNamespace, name: "installation" },
    data: { id: random.uuid() },
  });
}

/** Creates an object; one that exists already is left as it is. */
async function ensure(client: Client, resource: Resource, object: KubeObject): Promise<void> {
  try {
    await client.of(resource).create(object);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "AlreadyExists") throw error;
  }
}
