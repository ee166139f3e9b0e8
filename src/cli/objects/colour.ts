import type { Machine } from "./machine.ts";

export type Colour = "good" | "bad" | "doubtful" | "strong" | "faint";

const codes: Readonly<Record<Colour, number>> = {
  good: 32,
  bad: 31,
  doubtful: 33,
  strong: 1,
  faint: 2,
};

/** Colours text for a person's terminal, and leaves it alone for files, pipes and NO_COLOR. */
export type Paint = (colour: Colour, text: string) => string;

export function createPaint(machine: Machine): Paint {
  const isPlain = !machine.isTerminal || machine.environment("NO_COLOR") !== undefined;
  if (isPlain || machine.environment("TERM") === "dumb") return (_, text) => text;
  return (colour, text) => `\u001b[${codes[colour]}m${text}\u001b[0m`;
}

/** The colour of a condition's status, wherever it stands in a table. */
export function paintStatus(paint: Paint, cell: string): string {
  switch (cell.trim()) {
    case "True":
      return paint("good", cell);
    case "False":
      return paint("bad", cell);
    case "Unknown":
      return paint("doubtful", cell);
    default:
      return cell;
  }
}
