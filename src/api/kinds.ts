import { claimKind } from "./claim/index.ts";
import { gitSourceKind } from "./git-source/index.ts";
import { hypervisorKind } from "./hypervisor/index.ts";
import type { BerthKind } from "./kind.ts";
import { orphanKind } from "./orphan/index.ts";
import { virtualMachineKind } from "./virtual-machine/index.ts";
import { vmClassKind } from "./vm-class/index.ts";
import { vmImageKind } from "./vm-image/index.ts";
import { vmMigrationKind } from "./vm-migration/index.ts";
import { vmNetworkKind } from "./vm-network/index.ts";
import { vmRestoreKind } from "./vm-restore/index.ts";
import { vmSetKind } from "./vm-set/index.ts";
import { vmSnapshotKind } from "./vm-snapshot/index.ts";

/** All our kinds, in the order in which people meet them. */
export const berthKinds: readonly BerthKind[] = [
  hypervisorKind,
  virtualMachineKind,
  vmClassKind,
  vmImageKind,
  vmNetworkKind,
  vmSetKind,
  vmSnapshotKind,
  vmRestoreKind,
  vmMigrationKind,
  claimKind,
  orphanKind,
  gitSourceKind,
];
