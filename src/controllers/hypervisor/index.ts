export {
  changedRows,
  Connections,
  type Connect,
  type Connection,
  type ConnectionListener,
  type Credentials,
  type Reach,
} from "./connections.ts";
export type { Place, Run } from "./epoch.ts";
export { writeHome } from "./epoch-records.ts";
export { reconcileHypervisor, type HypervisorDeps, type Session } from "./reconcile.ts";
export { reconnect } from "./reconnect.ts";
export { nodeOf, slotNames, type SlotPlace } from "./slot-names.ts";
export type { SweepTrouble } from "./status.ts";
