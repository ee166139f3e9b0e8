export {
  changedRows,
  Connections,
  type Connect,
  type Connection,
  type ConnectionListener,
  type Credentials,
  type Reach,
} from "./connections.ts";
export { reconcileHypervisor, type HypervisorDeps, type Session } from "./reconcile.ts";
export { nodeOf, slotNames, type SlotPlace } from "./slot-names.ts";
export type { SweepTrouble } from "./status.ts";
