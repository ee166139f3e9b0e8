import type { Http } from "./http.ts";

export const api = "/apis/berth.dev/v1alpha1";
export const apiVersion = "berth.dev/v1alpha1";
export const machines = `${api}/namespaces/default/virtualmachines`;
const secrets = "/api/v1/namespaces/berth-system/secrets";

/** How a hypervisor is reached, and by whom. */
export interface Door {
  readonly url: string;
  readonly fingerprint: string;
  readonly tokenId: string;
  readonly tokenSecret: string;
}

/** A Secret and a Hypervisor of the same name, for a simulated Proxmox cluster. */
export async function declareHypervisor(http: Http, name: string, door: Door): Promise<void> {
  await declareSecret(http, name, door);
  await create(http, `${api}/hypervisors`, hypervisorOf(name, door));
}

export async function declareSecret(
  http: Http,
  name: string,
  { tokenId, tokenSecret }: Pick<Door, "tokenId" | "tokenSecret">,
): Promise<void> {
  await create(http, secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name },
    stringData: { tokenId, tokenSecret },
  });
}

export function secretPath(name: string): string {
  return `${secrets}/${name}`;
}

export function hypervisorOf(name: string, door: Pick<Door, "url" | "fingerprint">): object {
  return {
    apiVersion,
    kind: "Hypervisor",
    metadata: { name },
    spec: {
      type: "proxmox",
      endpoints: [door.url],
      credentials: { secretRef: { namespace: "berth-system", name } },
      tls: { fingerprints: [door.fingerprint] },
      idRange: { first: 1000, last: 1999 },
      defaults: { storage: "local-zfs", imageStorage: "local" },
      limits: { pollSeconds: 1 },
    },
  };
}

/** The image that every simulated cluster has. */
export async function declareImage(http: Http, name: string, hypervisor: string): Promise<void> {
  const id = "local:import/debian-12-generic-amd64.qcow2";
  await create(http, `${api}/namespaces/default/vmimages`, imageOf(name, hypervisor, id));
}

export function imageOf(name: string, hypervisor: string, id: string): object {
  return {
    apiVersion,
    kind: "VMImage",
    metadata: { name },
    spec: { source: { volume: { hypervisorRef: { name: hypervisor }, id } }, format: "qcow2" },
  };
}

export function machineOf(name: string, spec: object = {}): object {
  return {
    apiVersion,
    kind: "VirtualMachine",
    metadata: { name },
    spec: {
      hypervisorRef: { name: "lab" },
      source: { image: { name: "debian-12" } },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      disks: [{ name: "root", size: "4Gi" }],
      shutdown: { graceSeconds: 5, force: true },
      ...spec,
    },
  };
}

export async function create(http: Http, path: string, body: object): Promise<void> {
  const reply = await http.ask({ method: "POST", path, body });
  if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.text}`);
}

export async function patch(http: Http, path: string, body: object): Promise<void> {
  const type = "application/merge-patch+json";
  const reply = await http.ask({ method: "PATCH", path, body, type });
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`);
}
