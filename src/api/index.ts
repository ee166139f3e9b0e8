export { annotations, apiVersion, finalizers, group, labels, version } from "./group.ts";
export { crdOf, crdsYaml } from "./derive/crd.ts";
export type { CustomResourceDefinition } from "./derive/crd.ts";
export type { BerthKind, ObjectOf, TypedObject, WrittenObjectOf } from "./kind.ts";
export { berthKinds, berthKinds as berthResources } from "./kinds.ts";
export {
  failureMeanings,
  failureReasons,
  sharedConditionMeanings,
  sharedReasonMeanings,
  sharedReasons,
} from "./reasons.ts";
export type { FailureCategory } from "./reasons.ts";
export type { Column, NativeBehaviour, Resource, ScaleSubresource } from "./resource.ts";
export type { JsonSchema, ValidationRule } from "./schema/json-schema.ts";

export { claimKind, currentClaim, isOldClaim } from "./claim/index.ts";
export type { Claim, ClaimSpec, WrittenClaim } from "./claim/index.ts";
export { gitSourceConditions, gitSourceKind, gitSourceReasons } from "./git-source/index.ts";
export type {
  GitSource,
  GitSourceSpec,
  GitSourceStatus,
  WrittenGitSource,
} from "./git-source/index.ts";
export {
  hypervisorConditions,
  hypervisorKind,
  hypervisorReasons,
  sweepLimits,
} from "./hypervisor/index.ts";
export type {
  Hypervisor,
  HypervisorSpec,
  HypervisorStatus,
  WrittenHypervisor,
} from "./hypervisor/index.ts";
export { orphanConditions, orphanKind, orphanReasons } from "./orphan/index.ts";
export type { Orphan, OrphanSpec, OrphanStatus, WrittenOrphan } from "./orphan/index.ts";
export { virtualMachineKind, vmConditions, vmReasons } from "./virtual-machine/index.ts";
export type {
  VirtualMachine,
  VirtualMachineSpec,
  VirtualMachineStatus,
  WrittenVirtualMachine,
  WrittenVirtualMachineSpec,
} from "./virtual-machine/index.ts";
export { vmClassKind } from "./vm-class/index.ts";
export type { VMClass, VMClassSpec, VMClassStatus, WrittenVMClass } from "./vm-class/index.ts";
export { vmImageConditions, vmImageKind, vmImageReasons } from "./vm-image/index.ts";
export type { VMImage, VMImageSpec, VMImageStatus, WrittenVMImage } from "./vm-image/index.ts";
export {
  migrationPhases,
  vmMigrationConditions,
  vmMigrationKind,
  vmMigrationReasons,
} from "./vm-migration/index.ts";
export type {
  VMMigration,
  VMMigrationSpec,
  VMMigrationStatus,
  WrittenVMMigration,
} from "./vm-migration/index.ts";
export { vmNetworkKind } from "./vm-network/index.ts";
export type {
  VMNetwork,
  VMNetworkSpec,
  VMNetworkStatus,
  WrittenVMNetwork,
} from "./vm-network/index.ts";
export { vmRestoreConditions, vmRestoreKind, vmRestoreReasons } from "./vm-restore/index.ts";
export type {
  VMRestore,
  VMRestoreSpec,
  VMRestoreStatus,
  WrittenVMRestore,
} from "./vm-restore/index.ts";
export { vmSetConditions, vmSetKind, vmSetReasons } from "./vm-set/index.ts";
export type { VMSet, VMSetSpec, VMSetStatus, WrittenVMSet } from "./vm-set/index.ts";
export { vmSnapshotConditions, vmSnapshotKind, vmSnapshotReasons } from "./vm-snapshot/index.ts";
export type {
  VMSnapshot,
  VMSnapshotSpec,
  VMSnapshotStatus,
  WrittenVMSnapshot,
} from "./vm-snapshot/index.ts";
