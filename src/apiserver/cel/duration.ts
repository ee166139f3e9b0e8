/** Durations as Go writes them, in nanoseconds within 64 bits. */

const unitNanos: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

const durationNanosMax = 2n ** 63n - 1n;

const parts = /(\d*)\.?(\d*)(ns|us|µs|μs|ms|s|m|h)/g;

/** "1h30m", "-1.5s", "0". Undefined when it is no duration or does not fit. */
export function parseGoDuration(text: string): bigint | undefined {
  const body = text.replace(/^[+-]/, "");
  if (body === "0") return 0n;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(body)) return undefined;
  let nanos = 0n;
  for (const part of body.matchAll(parts)) nanos += partNanos(part);
  if (nanos > durationNanosMax) return undefined;
  return text.startsWith("-") ? -nanos : nanos;
}

function partNanos([, whole = "", fraction = "", unit = ""]: RegExpMatchArray): bigint {
  const scale = unitNanos[unit] ?? 0n;
  const nanos = BigInt(whole || "0") * scale;
  if (fraction === "") return nanos;
  return nanos + (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
}
