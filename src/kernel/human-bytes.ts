const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/**
 * "10 GiB", "1.5 TiB": as exact as people need it. Where two sizes are compared, the smaller is
 * rounded down and the larger up, so that they never read alike.
 */
export function humanBytes(bytes: number, round: (value: number) => number = Math.round): string {
  let rest = bytes;
  let unit = 0;
  while (rest >= 1024 && unit < units.length - 1) {
    rest /= 1024;
    unit += 1;
  }
  return `${round(rest * 10) / 10} ${units[unit] ?? "B"}`;
}
