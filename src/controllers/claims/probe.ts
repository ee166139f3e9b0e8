import { apiVersion } from "../../api/index.ts";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import { claimName } from "./claim-name.ts";

type Said<Field extends keyof ClaimSpec> = NonNullable<ClaimSpec[Field]>;

const time = "2026-01-01T00:00:00Z";
const uuid = "00000000-0000-4000-8000-000000000000";
const size = "1";

const volumes: Said<"volumes"> = [
  {
    id: "probe:volume",
    role: "Disk",
    disk: "probe",
    storage: "probe",
    size,
    growsTo: size,
    state: "Detached",
    onDelete: "Retain",
    since: time,
    madeBy: "probe",
    proof: "Followed",
  },
];

const allocation: Said<"allocation"> = {
  operation: "probe",
  node: "probe",
  storage: "probe",
  disk: "probe",
  size,
  volume: "probe:named",
  earlier: ["probe:earlier"],
  also: [{ storage: "probe", size }],
  source: "1",
  since: time,
  task: "probe",
  listed: ["probe:other"],
  complete: true,
  settledAt: time,
};

const file: Said<"file"> = {
  storage: "probe",
  name: "probe",
  content: "Image",
  checksum: "probe",
  size,
  createdAt: time,
  volume: "probe:file",
  operation: {
    id: "probe",
    key: "probe",
    step: "Download",
    node: "probe",
    since: time,
    task: "probe",
  },
};

const probable: Said<"probableVolumes"> = [
  {
    id: "probe:probable",
    storage: "probe",
    node: "probe",
    size,
    operation: "probe",
    seenAt: time,
    evidence: ["probe"],
  },
];

/**
 * A Claim that says everything that a Claim of this release can say: a test compares it with the
 * schema, so that a new field is not forgotten here. It is never stored.
 */
export function probeClaim(): Claim {
  const hypervisor = { name: "probe", systemId: "berth-probe" };
  return {
    apiVersion,
    kind: "Claim",
    metadata: { name: claimName(hypervisor.systemId, "0") },
    spec: {
      target: "File",
      file,
      hypervisor,
      externalId: "probe/0",
      idChosenBy: "User",
      state: "Reserved",
      role: "DiskHolder",
      origin: "Created",
      everExisted: true,
      identity: uuid,
      installation: uuid,
      owner: { namespace: "berth-system", name: "probe", uid: uuid },
      node: "probe",
      volumes,
      expectedDisks: ["probe"],
      otherVolumes: [{ id: "probe:other", seenAt: time, missingSince: time }],
      allocation,
      probableVolumes: probable,
      preflight: "Pending",
      workerNeverStarted: true,
      driver: { version: 1, data: "{}" },
      diskHolder: { externalId: "0", identity: uuid },
      createdFrom: [{ field: "spec.source", digest: "probe" }],
      resources: { cpu: 1, memory: size, storage: size },
      reservedAt: time,
      boundAt: time,
      quarantineUntil: time,
      releasedAt: time,
      releaseReason: "probe",
    },
  };
}
