const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;

/**
 * A duration as kubectl shows ages: "3s", "2m5s", "47h", "2d3h", "1y" …, two or three significant
 * figures. Clocks of two machines may disagree a little, so less than two seconds into the future
 * is shown as now, and more as "<invalid>".
 */
export function humanDuration(durationMs: number): string {
  const seconds = Math.trunc(durationMs / secondMs);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 2 * 60) return `${seconds}s`;
  const minutes = Math.trunc(durationMs / minuteMs);
  if (minutes < 10) return twoUnits(`${minutes}m`, seconds % 60, "s");
  if (minutes < 3 * 60) return `${minutes}m`;
  const hours = Math.trunc(durationMs / hourMs);
  if (hours < 8) return twoUnits(`${hours}h`, minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  return humanDays(Math.trunc(hours / 24), hours % 24);
}

function humanDays(days: number, hours: number): string {
  if (days < 8) return twoUnits(`${days}d`, hours, "h");
  if (days < 2 * 365) return `${days}d`;
  const years = Math.trunc(days / 365);
  if (years < 8) return twoUnits(`${years}y`, days % 365, "d");
  return `${years}y`;
}

function twoUnits(large: string, small: number, unit: string): string {
  return small === 0 ? large : `${large}${small}${unit}`;
}

/** The age of a timestamp, or "<unknown>" where there is none that can be read. */
export function humanAge(timestamp: unknown, nowMs: number): string {
  const timeMs = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
  return Number.isNaN(timeMs) ? "<unknown>" : humanDuration(nowMs - timeMs);
}
