import { CelError } from "../errors.ts";
import type { Definition } from "../overload.ts";
import { floorDivide } from "../time.ts";
import type { Value } from "../values.ts";
import * as arg from "./arguments.ts";

type Part = (date: Date, nanos: bigint) => number;

const parts: readonly (readonly [string, Part])[] = [
  ["getFullYear", (date) => date.getUTCFullYear()],
  ["getMonth", (date) => date.getUTCMonth()],
  ["getDate", (date) => date.getUTCDate()],
  ["getDayOfMonth", (date) => date.getUTCDate() - 1],
  ["getDayOfWeek", (date) => date.getUTCDay()],
  ["getDayOfYear", dayOfYear],
  ["getHours", (date) => date.getUTCHours()],
  ["getMinutes", (date) => date.getUTCMinutes()],
  ["getSeconds", (date) => date.getUTCSeconds()],
  ["getMilliseconds", (date) => date.getUTCMilliseconds()],
];

/** The parts of timestamps (in UTC or a named zone) and of durations. */
export const timeLibrary: readonly Definition[] = [
  ...parts.flatMap(([name, part]): Definition[] => [
    [`timestamp.${name}(): int`, (v) => read(part, arg.timestampNanos(v), "UTC")],
    [
      `timestamp.${name}(string): int`,
      (v, zone) => read(part, arg.timestampNanos(v), arg.text(zone)),
    ],
  ]),
  ["duration.getHours(): int", (v) => arg.durationNanos(v) / 3_600_000_000_000n],
  ["duration.getMinutes(): int", (v) => arg.durationNanos(v) / 60_000_000_000n],
  ["duration.getSeconds(): int", (v) => arg.durationNanos(v) / 1_000_000_000n],
  ["duration.getMilliseconds(): int", (v) => arg.durationNanos(v) / 1_000_000n],
];

function read(part: Part, nanos: bigint, zone: string): Value {
  const ms = Number(floorDivide(nanos, 1_000_000n));
  return BigInt(part(new Date(ms + offsetMs(ms, zone)), nanos));
}

function dayOfYear(date: Date): number {
  return Math.floor((date.getTime() - Date.UTC(date.getUTCFullYear(), 0, 1)) / 86_400_000);
}

/** How far a zone is ahead of UTC: "+02:00", or a name such as "Europe/Berlin". */
function offsetMs(ms: number, zone: string): number {
  if (zone === "UTC" || zone === "") return 0;
  const fixed = /^([+-]?)(\d\d):(\d\d)$/.exec(zone);
  if (fixed !== null) {
    const minutes = Number(fixed[2]) * 60 + Number(fixed[3]);
    return (fixed[1] === "-" ? -minutes : minutes) * 60_000;
  }
  try {
    const format = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" });
    const name = format.formatToParts(new Date(ms)).find(({ type }) => type === "timeZoneName");
    return offsetMs(ms, (name?.value ?? "GMT").replace("GMT", ""));
  } catch {
    // The names come from the machine's time zone database: an unknown one is the rule's mistake.
    throw new CelError(`unknown time zone ${zone}`);
  }
}
