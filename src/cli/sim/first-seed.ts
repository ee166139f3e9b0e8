interface FirstSeed {
  /** What a person named; absent: any. */
  readonly from: number | undefined;
  readonly any: () => number;
  readonly print: (line: string) => void;
}

/** The first seed of a run. One chosen at random is printed, so that it can be repeated. */
export function firstSeed({ from, any, print }: FirstSeed): number {
  if (from !== undefined) return from;
  const chosen = any();
  print(`seeds from ${chosen} on, chosen at random`);
  return chosen;
}
