import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { humanAge, humanDuration } from "./human-duration.ts";

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

const table: [number, string, string][] = [
  [-2 * second, "<invalid>", "two seconds into the future is no clock skew"],
  [-second - 1, "0s", "seconds are cut, not rounded"],
  [-1, "0s", "a little into the future is now"],
  [0, "0s", "now"],
  [999, "0s", "a started second does not count"],
  [119 * second, "119s", "seconds up to two minutes"],
  [2 * minute, "2m", "no seconds when there are none"],
  [2 * minute + 5 * second, "2m5s", "minutes and seconds below ten minutes"],
  [10 * minute + 5 * second, "10m", "minutes alone from ten on"],
  [3 * hour - 1, "179m", "minutes up to three hours"],
  [3 * hour, "3h", "whole hours"],
  [7 * hour + 59 * minute, "7h59m", "hours and minutes below eight hours"],
  [8 * hour + 59 * minute, "8h", "hours alone from eight on"],
  [48 * hour - 1, "47h", "hours up to two days"],
  [2 * day, "2d", "whole days"],
  [7 * day + 23 * hour, "7d23h", "days and hours below eight days"],
  [8 * day + 23 * hour, "8d", "days alone from eight on"],
  [2 * year - 1, "729d", "days up to two years"],
  [2 * year, "2y", "whole years"],
  [2 * year + 3 * day, "2y3d", "years and days below eight years"],
  [8 * year + 3 * day, "8y", "years alone from eight on"],
];

for (const [durationMs, shown, reason] of table) {
  test(`a duration of ${durationMs} ms is shown as ${shown}: ${reason}`, () => {
    assert.equal(humanDuration(durationMs), shown);
  });
}

test("a duration is never longer than the eight characters a column gives it", () => {
  fc.assert(
    fc.property(fc.integer({ min: -2 * second + 1, max: 90 * year }), (durationMs) => {
      assert.match(humanDuration(durationMs), /^\d{1,3}[smhdy](\d{1,3}[smhd])?$/);
    }),
  );
});

test("the age of a timestamp is told, and a missing or broken one is unknown", () => {
  assert.equal(humanAge("1970-01-01T00:00:10Z", 15_000), "5s");
  assert.equal(humanAge(undefined, 0), "<unknown>");
  assert.equal(humanAge(null, 0), "<unknown>");
  assert.equal(humanAge("yesterday", 0), "<unknown>");
});
