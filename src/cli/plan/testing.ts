import { claimName } from "../../controllers/index.ts";
import { plan, runPlan } from "../commands/plan.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";

/** What the tests of plans share: a Hypervisor, and machines that stand on it as declared. */

export const group = "/apis/berth.dev/v1alpha1";
export const apiVersion = "berth.dev/v1alpha1";
const systemId = "pve-root-ca:AA";
const gib = 1024 ** 3;

export const spec = {
  hypervisorRef: { name: "pve" },
  source: { blank: {} },
  cpu: { cores: 2 },
  memory: { size: "2Gi" },
  disks: [
    { name: "root", size: "10Gi", storage: "fast" },
    { name: "data", size: "20Gi", storage: "fast" },
  ],
  networks: [{ name: "lan", bridge: "vmbr0" }],
};

export async function createPlanBench(): Promise<Bench> {
  const bench = await createBench();
  const secretRef = { namespace: "berth-system", name: "pve" };
  await bench.write("POST", `${group}/hypervisors`, {
    apiVersion,
    kind: "Hypervisor",
    metadata: { name: "pve" },
    spec: {
      type: "proxmox",
      endpoints: ["https://pve.example:8006"],
      systemId,
      credentials: { secretRef },
    },
  });
  const status = { version: "8.4.1" };
  await bench.write("PATCH", `${group}/hypervisors/pve/status`, { status });
  return bench;
}

interface Machine {
  readonly name?: string;
  readonly externalId?: string;
  readonly namespace?: string;
  /** What its declaration says otherwise. */
  readonly change?: object;
  readonly status?: object;
  /** What it said when the machine was made; absent where that was not written down. */
  readonly createdFrom?: readonly object[];
}

/** A machine that stands as declared. */
export async function standing(bench: Bench, machine: Machine = {}): Promise<void> {
  const { name = "web", externalId = "100", namespace = "default", change = {} } = machine;
  const vms = `${group}/namespaces/${namespace}/virtualmachines`;
  const made = await bench.write("POST", vms, vmOf(name, change));
  const disk = (diskName: string, index: number, size: number): object => {
    const volume = `fast:vm-${externalId}-disk-${index}`;
    return { name: diskName, volume, storage: "fast", size: String(size), device: `scsi${index}` };
  };
  const status = {
    observedGeneration: 1,
    appliedGeneration: 1,
    hypervisor: "pve",
    externalId,
    node: "pve1",
    powerState: "Running",
    disks: [disk("root", 0, 10 * gib), disk("data", 1, 20 * gib)],
    networks: [{ name: "lan", device: "net0" }],
    ...machine.status,
  };
  await bench.write("PATCH", `${vms}/${name}/status`, { status });
  await bench.write("POST", `${group}/claims`, {
    apiVersion,
    kind: "Claim",
    metadata: { name: claimName(systemId, externalId) },
    spec: {
      hypervisor: { name: "pve", systemId },
      externalId,
      state: "Bound",
      origin: "Created",
      everExisted: true,
      identity: `00000000-0000-4000-8000-000000000${externalId}`,
      installation: "00000000-0000-4000-8000-000000000002",
      owner: { namespace, name, uid: made.metadata.uid },
      node: "pve1",
      ...(machine.createdFrom && { createdFrom: machine.createdFrom }),
      volumes: [kept(externalId, "root", 0), kept(externalId, "data", 1)],
    },
  });
}

/** As the ledger knows a disk that was declared. */
function kept(externalId: string, disk: string, index: number): object {
  const id = `fast:vm-${externalId}-disk-${index}`;
  return { id, disk, role: "Disk", storage: "fast", state: "Attached", onDelete: "Delete" };
}

export function vmOf(name: string, change: object = {}): object {
  return { apiVersion, kind: "VirtualMachine", metadata: { name }, spec: { ...spec, ...change } };
}

/** The plan of one machine's declaration, changed so. */
export async function planned(bench: Bench, change: object, name = "web"): Promise<Ran> {
  return planFile(bench, vmOf(name, change));
}

/** The plan of a file with these objects. */
export async function planFile(bench: Bench, ...objects: readonly object[]): Promise<Ran> {
  bench.input = objects.map((object) => JSON.stringify(object)).join("\n---\n");
  return bench.run(plan, runPlan, ["-f", "-"]);
}
