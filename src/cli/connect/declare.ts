import type { Hypervisor } from "../../api/index.ts";
import { systemNamespace } from "../../apiserver/index.ts";
import type { TlsTrust } from "../../drivers/proxmox/index.ts";
import { formatMicroTime } from "../../kernel/clock.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import { CommandError } from "../command.ts";
import type { Server } from "../objects/server.ts";
import type { Token } from "./token.ts";

/** A connection that is to be declared. */
export interface Connecting {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly tls: TlsTrust | undefined;
  readonly token: Token;
  /** Of the system that answered, where one did. */
  readonly systemId: string | undefined;
  /** The Hypervisor of that name, where there is one. */
  readonly existing: Hypervisor | undefined;
}

const hypervisors = "/apis/berth.dev/v1alpha1/hypervisors";
/** Says whose a Secret is, so that a second run may write it again and no other is overwritten. */
const secretLabel = "berth.dev/hypervisor";
const renewedAnnotation = "berth.dev/connected-at";

/**
 * Writes the Secret and the Hypervisor, and returns what was done, for people.
 *
 * A new Hypervisor finds its Secret there. An existing one gets its endpoints first and its Secret
 * then: the controllers use credentials for new endpoints only if they were written after them.
 */
export async function declareConnection(server: Server, connecting: Connecting): Promise<string[]> {
  const { existing } = connecting;
  if (existing === undefined) {
    const secret = await writeSecret(server, connecting);
    return [secret, await createHypervisor(server, connecting)];
  }
  const hypervisor = await changeHypervisor(server, connecting, existing);
  return [hypervisor, await writeSecret(server, connecting)];
}

async function createHypervisor(server: Server, connecting: Connecting): Promise<string> {
  const { name, endpoints, tls, systemId } = connecting;
  const body = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: {
      type: "proxmox",
      endpoints,
      credentials: { secretRef: secretOf(connecting) },
      ...(tls === undefined ? {} : { tls }),
      ...(systemId === undefined ? {} : { systemId }),
    },
  };
  await server.ask({ method: "POST", path: hypervisors, body });
  return `hypervisor.berth.dev/${name} created`;
}

/** Over the version that was looked at: whoever changed it meanwhile is not overwritten. */
async function changeHypervisor(
  server: Server,
  connecting: Connecting,
  { metadata }: Hypervisor,
): Promise<string> {
  const { name, endpoints, tls } = connecting;
  const { ca = null, fingerprints = null, serverName = null } = tls ?? {};
  const spec = {
    endpoints,
    tls: tls === undefined ? null : { ca, fingerprints, serverName },
    credentials: { secretRef: secretOf(connecting) },
  };
  const answer = await server.ask({
    method: "PATCH",
    path: `${hypervisors}/${name}`,
    body: { metadata: { resourceVersion: metadata.resourceVersion ?? null }, spec },
    contentType: "application/merge-patch+json",
  });
  const isSame = versionOf(answer) === metadata.resourceVersion;
  return `hypervisor.berth.dev/${name} ${isSame ? "unchanged" : "configured"}`;
}

function versionOf(object: unknown): unknown {
  const metadata = isJsonObject(object) ? object["metadata"] : undefined;
  return isJsonObject(metadata) ? metadata["resourceVersion"] : undefined;
}

/** The Secret that the Hypervisor names, or one of its own name. */
function secretOf({ name, existing }: Connecting): { namespace: string; name: string } {
  const { namespace, name: secret } = existing?.spec.credentials?.secretRef ?? {};
  if (namespace !== undefined && secret !== undefined) return { namespace, name: secret };
  return { namespace: systemNamespace, name };
}

async function writeSecret(server: Server, connecting: Connecting): Promise<string> {
  const { namespace, name } = secretOf(connecting);
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const encode = (text: string): string => Buffer.from(text).toString("base64");
  const body = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      namespace,
      name,
      labels: { [secretLabel]: connecting.name },
      // A Secret with the same token must count as written anew all the same.
      annotations: { [renewedAnnotation]: formatMicroTime(server.clock.nowMs()) },
    },
    data: { tokenId: encode(connecting.token.id), tokenSecret: encode(connecting.token.secret) },
  };
  const current = await findSecret(server, `${path}/${name}`);
  if (current === undefined) {
    await inNamespace(server, namespace, () => server.ask({ method: "POST", path, body }));
    return `secret/${name} created in ${namespace}`;
  }
  demandOwn(current, connecting);
  const contentType = "application/merge-patch+json";
  await server.ask({ method: "PATCH", path: `${path}/${name}`, body, contentType });
  return `secret/${name} configured in ${namespace}`;
}

async function findSecret(server: Server, path: string): Promise<JsonObject | undefined> {
  try {
    const found = await server.ask({ path });
    return isJsonObject(found) ? found : undefined;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

function demandOwn(secret: JsonObject, connecting: Connecting): void {
  const metadata = isJsonObject(secret["metadata"]) ? secret["metadata"] : {};
  const labels = isJsonObject(metadata["labels"]) ? metadata["labels"] : {};
  const isNamed = connecting.existing?.spec.credentials?.secretRef !== undefined;
  if (isNamed || labels[secretLabel] === connecting.name) return;
  const { namespace, name } = secretOf(connecting);
  throw new CommandError(
    `there is a Secret ${namespace}/${name} that is not this connection's: delete it, or choose ` +
      "another --name",
  );
}

/** On Kubernetes nobody has made the namespace before Berth's controllers run. */
async function inNamespace(
  server: Server,
  namespace: string,
  create: () => Promise<unknown>,
): Promise<void> {
  try {
    await create();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
    await server.ask({ method: "POST", path: "/api/v1/namespaces", body });
    await create();
  }
}
