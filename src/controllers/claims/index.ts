export { claimName } from "./claim-name.ts";
export {
  claimIndexes,
  isHeld,
  Ledger,
  quarantineMs,
  type LedgerOptions,
  type Reservation,
  type Reserved,
} from "./ledger.ts";
export { reconcileClaim, type ClaimDeps } from "./reconcile.ts";
export { WrittenObjects } from "./written.ts";
