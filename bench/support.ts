import { readFileSync } from "node:fs";

/** Order statistics of a run, in milliseconds. */
export interface Spread {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export function spreadOf(samplesMs: readonly number[]): Spread {
  const sorted = [...samplesMs].sort((a, b) => a - b);
  const at = (share: number): number => {
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  };
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}

export function show(name: string, values: Readonly<Record<string, string | number>>): void {
  const shown = Object.entries(values).map(([key, value]) => {
    return `${key} ${typeof value === "number" ? round(value) : value}`;
  });
  process.stdout.write(`${name.padEnd(34)} ${shown.join("  ")}\n`);
}

function round(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(2);
}

/** Runs `work` so many times, at most `parallel` at once; returns each one's milliseconds. */
export async function timeEach(
  count: number,
  parallel: number,
  work: (index: number) => Promise<void>,
): Promise<{ samplesMs: number[]; totalMs: number }> {
  const samplesMs: number[] = [];
  let next = 0;
  const startedMs = performance.now();
  const worker = async (): Promise<void> => {
    for (let index = next++; index < count; index = next++) {
      const beginMs = performance.now();
      await work(index);
      samplesMs.push(performance.now() - beginMs);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return { samplesMs, totalMs: performance.now() - startedMs };
}

/** Processor time that a process has used so far. */
export function usedCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  // In user mode and in the kernel, in hundredths of a second (proc(5), fields 14 and 15).
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Memory that a process has of the machine's own. */
export function residentBytes(pid: number): number {
  const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(found?.[1] ?? 0) * 1024;
}
