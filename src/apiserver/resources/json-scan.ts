/** What JSON.parse does not tell: how deep a text nests, and which members it names twice. */
export interface JsonScan {
  readonly depth: number;
  /** Paths as Kubernetes writes them, "spec.disks[0].name", at most `duplicatesMax` of them. */
  readonly duplicates: readonly string[];
}

/** So many are named; a text with more gains nothing from a longer answer. */
const duplicatesMax = 32;

const quote = 0x22;
const comma = 0x2c;
const openList = 0x5b;
const backslash = 0x5c;
const closeList = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

interface Frame {
  /** The members seen so far; undefined for a list. */
  readonly keys: Set<string> | undefined;
  /** Where we are within it: the name of the member, or the index in the list. */
  at: string | number;
  expectsKey: boolean;
}

interface Walk {
  readonly text: string;
  readonly frames: Frame[];
  readonly duplicates: string[];
  depth: number;
}

/**
 * Walks a text that JSON.parse has accepted, or will: on anything else the result means nothing,
 * but the walk still ends. It never recurses, so that depth can be judged before anything does.
 */
export function scanJson(text: string): JsonScan {
  const walk: Walk = { text, frames: [], duplicates: [], depth: 0 };
  for (let at = 0; at < text.length; at++) at = step(walk, at);
  return { depth: walk.depth, duplicates: walk.duplicates };
}

/** Reads what stands at a place, and returns where that ends. */
function step(walk: Walk, at: number): number {
  const { text, frames } = walk;
  switch (text.charCodeAt(at)) {
    case quote: {
      const end = stringEnd(text, at);
      if (frames.at(-1)?.expectsKey) noteKey(walk, at, end);
      return end;
    }
    case openObject:
      open(walk, new Set());
      return at;
    case openList:
      open(walk, undefined);
      return at;
    case closeObject:
    case closeList:
      frames.pop();
      return at;
    case comma:
      next(frames.at(-1));
      return at;
    default:
      return at;
  }
}

function open(walk: Walk, keys: Set<string> | undefined): void {
  walk.frames.push({ keys, at: 0, expectsKey: keys !== undefined });
  walk.depth = Math.max(walk.depth, walk.frames.length);
}

function next(frame: Frame | undefined): void {
  if (!frame) return;
  if (frame.keys) frame.expectsKey = true;
  else frame.at = Number(frame.at) + 1;
}

function noteKey({ text, frames, duplicates }: Walk, start: number, end: number): void {
  const frame = frames.at(-1);
  if (!frame?.keys) return;
  const key = keyText(text.slice(start, end + 1));
  frame.expectsKey = false;
  frame.at = key;
  if (!frame.keys.has(key)) frame.keys.add(key);
  else if (duplicates.length < duplicatesMax) duplicates.push(pathOf(frames));
}

/** The index of the closing quote. */
function stringEnd(text: string, start: number): number {
  let at = text.indexOf('"', start + 1);
  while (at > 0 && isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at < 0 ? text.length : at;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === backslash) slashes++;
  return slashes % 2 === 1;
}

function keyText(quoted: string): string {
  if (!quoted.includes("\\")) return quoted.slice(1, -1);
  try {
    return String(JSON.parse(quoted));
  } catch {
    // Not JSON; JSON.parse of the whole text says so in its own words.
    return quoted;
  }
}

function pathOf(frames: readonly Frame[]): string {
  const steps = frames.map(({ at }) => (typeof at === "number" ? `[${at}]` : `.${at}`));
  return steps.join("").replace(/^\./, "");
}
