/**
 * Which run of an installation may act on a hypervisor. A run is one term of leadership of one
 * process; a restored backup is another run of the same installation. Each run writes the next
 * number before it writes anything else, so a run that sees a number that it did not write knows
 * that another one acts, and stops.
 */
export interface EpochView {
  /** Counts up, and is never used twice. */
  readonly number: number;
  /** The run that wrote it; absent where the hypervisor no longer shows it. */
  readonly run?: string;
  /** When that was, by the clock of whoever wrote it. */
  readonly at?: string;
  /** Where that run is, for people: a host name. */
  readonly place?: string;
  /** What the hypervisor shows it by, for people who have to remove it there. */
  readonly shownBy?: string;
}

/** An epoch as a run writes it. */
export type WrittenEpoch = Required<Omit<EpochView, "shownBy">>;

/** An epoch as the bulk list shows it: of any installation that uses this hypervisor. */
export interface ListedEpoch {
  readonly installation: string;
  readonly number: number;
}

/**
 * A compare-and-swap of the epoch of one installation. Safe to repeat: when `to` was written by the
 * same run already, it is done.
 */
export interface EpochChange {
  readonly installation: string;
  /** The number that has to be there; absent: there has to be none. */
  readonly from?: number | undefined;
  readonly to: WrittenEpoch;
}
