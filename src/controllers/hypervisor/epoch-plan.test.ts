import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { planEpoch, type EpochInput, type EpochPlan } from "./epoch-plan.ts";

const at = "2026-11-16T12:00:00Z";
const none: EpochInput = {
  record: undefined,
  seen: undefined,
  run: "new",
  place: "here",
  homes: ["here"],
  takeover: undefined,
};
const act = (number: number): EpochPlan => ({ do: "act", number });
const superseded: EpochPlan = { do: "observe", why: "Superseded" };
const moved: EpochPlan = { do: "observe", why: "PlaceChanged" };

function advance(
  from: number | undefined,
  number: number,
  why: "Start" | "Missing" | "Takeover" = "Start",
): EpochPlan {
  return { do: "advance", from, number, why };
}

const record = (number: number, run: string): NonNullable<EpochInput["record"]> => {
  return { number, run, at };
};
const seen = (number: number, run?: string): NonNullable<EpochInput["seen"]> => {
  return { number, ...(run === undefined ? {} : { run }) };
};

const table: readonly (readonly [string, Partial<EpochInput>, EpochPlan])[] = [
  ["writes the first epoch at first contact", {}, advance(undefined, 1)],
  [
    "advances the epoch of the run before it",
    { record: record(4, "old"), seen: seen(4, "old") },
    advance(4, 5),
  ],
  [
    "does not act under a number that another run has passed, whatever became of its comment",
    { record: record(5, "new"), seen: seen(6) },
    superseded,
  ],
  ["acts on its own epoch", { record: record(5, "new"), seen: seen(5, "new") }, act(5)],
  [
    "goes on with what a killed run recorded and never sent",
    { record: record(6, "old"), seen: seen(5, "older") },
    advance(5, 7),
  ],
  [
    "sends again what it recorded itself and is not there",
    { record: record(6, "new"), seen: seen(5, "older") },
    advance(5, 6),
  ],
  [
    "puts back an epoch that is missing",
    { record: record(6, "new") },
    advance(undefined, 6, "Missing"),
  ],
  [
    "does not put back an epoch that is missing after it was superseded",
    { record: record(6, "new"), observing: { newest: seen(7, "other") } },
    superseded,
  ],
  [
    "does not advance after a restart when the epoch that superseded it is gone",
    { record: record(6, "old"), observing: { newest: seen(6, "other") }, seen: seen(5, "older") },
    superseded,
  ],
  [
    "does not act on its own epoch, which somebody put back, after it was superseded",
    { record: record(6, "new"), observing: { newest: seen(7) }, seen: seen(6, "new") },
    superseded,
  ],
  [
    "does not write a first epoch where another one was seen before",
    { observing: { newest: seen(2, "other") } },
    superseded,
  ],
  [
    "observes when the list showed a newer epoch that was gone when it was read",
    { record: record(6, "new"), listed: 7 },
    superseded,
  ],
  [
    "acts after a takeover, whatever superseded it before",
    { record: record(8, "new"), observing: { newest: seen(7, "other") }, seen: seen(8, "new") },
    act(8),
  ],
  [
    "takes over with a number that nobody ever used",
    { record: record(6, "old"), observing: { newest: seen(9, "other") }, takeover: "t1 new" },
    advance(undefined, 10, "Takeover"),
  ],
  [
    "observes where nobody can tell its place any more and it was in another one before",
    { place: undefined, record: record(5, "old"), observing: { elsewhere: "there" } },
    moved,
  ],
  [
    "puts back the epoch of the run before it under the next number",
    { record: record(6, "old") },
    advance(undefined, 7, "Missing"),
  ],
  [
    "observes when the epoch is newer than its record",
    { record: record(4, "old"), seen: seen(5, "other") },
    superseded,
  ],
  [
    "observes when another run was faster with the same number",
    { record: record(5, "new"), seen: seen(5, "other") },
    superseded,
  ],
  [
    "observes when a killed run recorded a number that another run wrote",
    { record: record(5, "old"), seen: seen(5, "other") },
    superseded,
  ],
  ["observes when it has no record of an epoch that exists", { seen: seen(3, "x") }, superseded],
  [
    "believes its record where nobody can tell any more who wrote the same number",
    { record: record(5, "old"), seen: seen(5) },
    advance(5, 6),
  ],
  [
    "observes in another place, also on its own epoch",
    { record: { ...record(5, "old"), place: "there" }, seen: seen(5, "old") },
    moved,
  ],
  ["observes in another place, also at first contact", { homes: ["there"] }, moved],
  [
    "acts on a new hypervisor in a place that a person confirmed",
    { homes: ["there", "here"] },
    advance(undefined, 1),
  ],
  [
    "acts where nobody can tell its place",
    { place: undefined, homes: ["there"] },
    advance(undefined, 1),
  ],
  ["acts where no place was ever recorded", { homes: [] }, advance(undefined, 1)],
  [
    "takes over from a newer epoch",
    { record: record(4, "old"), seen: seen(9, "other"), takeover: "t1 new" },
    advance(9, 10, "Takeover"),
  ],
  [
    "takes over in another place",
    { record: { ...record(4, "old"), place: "there" }, seen: seen(4, "old"), takeover: "t1 new" },
    advance(4, 5, "Takeover"),
  ],
  [
    "takes over once for each time that a person asks",
    {
      record: { ...record(4, "old"), takeover: "t1 new" },
      seen: seen(9, "other"),
      takeover: "t1 new",
    },
    superseded,
  ],
  [
    "takes over again when a person asks again",
    {
      record: { ...record(4, "old"), takeover: "t1 new" },
      seen: seen(9, "other"),
      takeover: "t2 new",
    },
    advance(9, 10, "Takeover"),
  ],
  [
    "observes where the takeover is for another run: the backup has its annotation",
    { record: record(4, "old"), seen: seen(9, "other"), takeover: "t1 old" },
    superseded,
  ],
  [
    "observes in another place where the takeover is for another run",
    { record: { ...record(4, "old"), place: "there" }, seen: seen(4, "old"), takeover: "t1 old" },
    moved,
  ],
  [
    "observes where a takeover names no run",
    { record: record(4, "old"), seen: seen(9, "other"), takeover: "t1" },
    superseded,
  ],
  [
    "does not take over from a number that no run can have written, and does not count on from it",
    { record: record(4, "old"), seen: seen(999_999_999_999_999), takeover: "t1 new" },
    { do: "refuse", seen: seen(999_999_999_999_999) },
  ],
  [
    "goes on when such a number is gone, whatever was listed or kept of it",
    {
      record: record(4, "old"),
      observing: { newest: seen(999_999_999_999_999) },
      seen: seen(4, "old"),
      listed: 999_999_999_999_999,
    },
    advance(4, 5),
  ],
  [
    "takes over from a number that a run may have written, however often it was started",
    { record: record(4, "old"), seen: seen(900_000_000, "other"), takeover: "t1 new" },
    advance(900_000_000, 900_000_001, "Takeover"),
  ],
  [
    "sends a takeover again that it recorded and is not there",
    {
      record: { ...record(10, "new"), takeover: "t1 new" },
      seen: seen(9, "other"),
      takeover: "t1 new",
    },
    advance(9, 10),
  ],
];

describe("the plan for an epoch", () => {
  for (const [says, input, plan] of table) {
    it(says, () => assert.deepEqual(planEpoch({ ...none, ...input }), plan));
  }
});
