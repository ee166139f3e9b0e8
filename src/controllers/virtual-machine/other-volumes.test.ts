import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { hiddenFailure, isBelievedGone, otherVolumesAfter, type Listing } from "./other-volumes.ts";

const minute = 60_000;
const startMs = Date.UTC(2026, 0, 2);
const at = (minutes: number): string => formatTime(startMs + minutes * minute);

const seen = { id: "zfs:vm-310-disk-0", seenAt: at(-60) };
const hidden = { ...seen, missingSince: at(0) };
/** Only its name is remembered. */
const gone = { id: seen.id, missingSince: at(0) };
const listing: Listing = {
  listed: [],
  takes: [],
  isComplete: true,
  isAsked: false,
  nowMs: startMs,
  countedFromMs: startMs - minute,
};

interface Case {
  readonly reason: string;
  readonly known: NonNullable<ClaimSpec["otherVolumes"]>;
  readonly listing: Partial<Listing>;
  readonly after: NonNullable<ClaimSpec["otherVolumes"]>;
}

const cases: readonly Case[] = [
  {
    reason: "what is listed first is known from now on",
    known: [],
    listing: { listed: [seen.id, seen.id] },
    after: [{ id: seen.id, seenAt: at(0) }],
  },
  {
    reason: "what is listed again is there, since when it was first seen",
    known: [hidden],
    listing: { listed: [seen.id] },
    after: [seen],
  },
  { reason: "what is not listed is missing", known: [seen], listing: {}, after: [hidden] },
  {
    reason: "it is missing since the first such list",
    known: [hidden],
    listing: { nowMs: startMs + 9 * minute },
    after: [hidden],
  },
  {
    reason: "it is believed to be gone after ten minutes, and its name is remembered",
    known: [hidden],
    listing: { nowMs: startMs + 10 * minute },
    after: [gone],
  },
  {
    reason: "what is believed to be gone is so after an outage, and by a list that is not complete",
    known: [gone],
    listing: { nowMs: startMs + 60 * minute, countedFromMs: Infinity, isComplete: false },
    after: [gone],
  },
  {
    reason: "what was believed to be gone and is listed again is there",
    known: [gone],
    listing: { nowMs: startMs + 60 * minute, listed: [seen.id] },
    after: [{ id: seen.id, seenAt: at(60) }],
  },
  {
    reason: "one of which 0.1 did not write when it was seen is waited for like others",
    known: [{ id: seen.id }],
    listing: {},
    after: [{ id: seen.id, seenAt: at(0), missingSince: at(0) }],
  },
  {
    reason: "an absence that nobody watched begins anew",
    known: [hidden],
    listing: { nowMs: startMs + 60 * minute, countedFromMs: startMs + 59 * minute },
    after: [{ ...seen, missingSince: at(60) }],
  },
  {
    reason: "a list that is not complete says nothing of what it does not show",
    known: [hidden],
    listing: { nowMs: startMs + 60 * minute, isComplete: false },
    after: [seen],
  },
  {
    reason: "a person says that what is not listed is gone",
    known: [seen, hidden],
    listing: { isAsked: true },
    after: [gone, gone],
  },
  {
    reason: "and not that what is listed is",
    known: [seen],
    listing: { isAsked: true, listed: [seen.id] },
    after: [seen],
  },
  {
    reason: "also a person's word needs a complete list",
    known: [seen],
    listing: { isAsked: true, isComplete: false },
    after: [seen],
  },
  {
    reason: "what is to be taken over is in nobody's way",
    known: [seen],
    listing: { takes: [seen.id, "zfs:vm-310-disk-1"], listed: [seen.id, "zfs:vm-310-disk-1"] },
    after: [],
  },
];

describe("the volumes of others after one more list", () => {
  for (const { reason, known, listing: change, after } of cases) {
    it(reason, () => {
      assert.deepEqual(otherVolumesAfter(known, { ...listing, ...change }), after);
    });
  }

  it("keep a VM from being created while one of them is only missing", () => {
    assert.equal(hiddenFailure("310", [seen]), undefined);
    assert.equal(hiddenFailure("310", [seen, hidden])?.category, "OrphanedVolumes");
    assert.equal(hiddenFailure("310", [seen, gone]), undefined);
    assert.deepEqual([seen, hidden, gone].map(isBelievedGone), [false, false, true]);
  });
});
