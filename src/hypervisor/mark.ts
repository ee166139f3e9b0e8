import { isJsonObject } from "../kernel/json.ts";

/**
 * What Berth stamps into a machine. A mark alone proves nothing, because clones and restores copy
 * it: it counts only if the id, the identity and the Claim agree with it.
 */
export interface Mark {
  /** Released: let go on purpose. It says whose the machine was, and that it no longer is. */
  readonly state: "Owned" | "Released";
  readonly installation: string;
  readonly owner: { readonly namespace: string; readonly name: string };
  readonly identity: string;
  /** The id that the machine had when it was stamped. A copy has another. */
  readonly externalId: string;
  /**
   * Where each disk and network card of the spec sits, as a word that only the driver understands.
   * So one read of the machine tells its parts by their names, whatever their order.
   */
  readonly disks: Readonly<Record<string, string>>;
  readonly networks: Readonly<Record<string, string>>;
  /** The same of drives and devices, where the spec names any. */
  readonly cdroms?: Readonly<Record<string, string>>;
  readonly pci?: Readonly<Record<string, string>>;
  readonly usb?: Readonly<Record<string, string>>;
}

/** Parts that most machines do not have: a mark without them says nothing of them. */
const rareParts = ["cdroms", "pci", "usb"] as const;

/** A text with a mark in it. `person` is everything else, byte for byte. */
export interface MarkedText {
  readonly person: string;
  readonly mark?: Mark;
  /** More than one mark, or one that cannot be read: nothing may be concluded from it. */
  readonly isBroken: boolean;
}

const opening = "<!-- berth:1 ";
const closing = " -->";
// A line of ours, also one that somebody damaged or that a later version wrote.
const line = /^<!-- berth:\d+ .*-->[ \t\r]*$/gm;

/**
 * Reads a mark. People write below our line as well as above it, so it counts wherever it stands;
 * the form is an HTML comment because notes are shown as Markdown, where it does not disturb.
 */
export function readMark(text: string): MarkedText {
  const found = [...text.matchAll(line)];
  const [first] = found;
  if (first === undefined) return { person: text, isBroken: false };
  const person = withoutLine(text, first.index, first[0].length);
  const mark = found.length === 1 ? parseLine(first[0].trimEnd()) : undefined;
  if (mark === undefined) return { person: withoutLines(text), isBroken: true };
  return { person, mark, isBroken: false };
}

/** The person's text with the mark as its last line, in place of any that was there. */
export function writeMark(text: string, mark: Mark): string {
  const person = withoutLines(text);
  return person === "" ? formatMark(mark) : `${person}\n${formatMark(mark)}`;
}

/** The text without any mark: what the person wrote. */
export function removeMark(text: string): string {
  return withoutLines(text);
}

/** The same mark, saying that the machine was let go. */
export function releasedMark(mark: Mark): Mark {
  return { ...mark, state: "Released" };
}

/** The mark by itself, for hypervisors that have a field of its own for it. */
export function formatMark(mark: Mark): string {
  const { state, installation, owner, identity, externalId, disks, networks } = mark;
  const { namespace, name } = owner;
  const ordered = {
    state,
    installation,
    owner: { namespace, name },
    identity,
    externalId,
    disks: sorted(disks),
    networks: sorted(networks),
    ...rareSlots((part) => mark[part] ?? {}),
  };
  return opening + JSON.stringify(ordered).replaceAll(unsafe, escaped) + closing;
}

/** What could end the comment or the line early is written as its number. */
const unsafe = /[>\u2028\u2029]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Only those of which there are any. */
function rareSlots(
  of: (part: (typeof rareParts)[number]) => Readonly<Record<string, string>>,
): Pick<Mark, (typeof rareParts)[number]> {
  const some = rareParts.filter((part) => Object.keys(of(part)).length > 0);
  return Object.fromEntries(some.map((part) => [part, sorted(of(part))]));
}

/** One form for one mark, so that writing it twice changes nothing. */
function sorted(slots: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(slots).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function parseLine(text: string): Mark | undefined {
  if (!text.startsWith(opening) || !text.endsWith(closing)) return undefined;
  try {
    return parseMark(JSON.parse(text.slice(opening.length, -closing.length)));
  } catch {
    // Not JSON: somebody edited it. The caller says that it is broken.
    return undefined;
  }
}

function parseMark(value: unknown): Mark | undefined {
  if (!isJsonObject(value)) return undefined;
  const { state, installation, identity, externalId } = value;
  const owner = parseOwner(value["owner"]);
  const disks = parseSlots(value["disks"]);
  const networks = parseSlots(value["networks"]);
  if (!isState(state) || owner === undefined) return undefined;
  if (!isText(installation) || !isText(identity) || !isText(externalId)) return undefined;
  if (disks === undefined || networks === undefined) return undefined;
  const rare = rareParts.map((part) => [part, parseSlots(value[part] ?? {})] as const);
  if (rare.some(([, slots]) => slots === undefined)) return undefined;
  const slotsOf = new Map(rare);
  return {
    state,
    installation,
    owner,
    identity,
    externalId,
    disks,
    networks,
    ...rareSlots((part) => slotsOf.get(part) ?? {}),
  };
}

function parseOwner(value: unknown): Mark["owner"] | undefined {
  if (!isJsonObject(value)) return undefined;
  const { namespace, name } = value;
  return isText(namespace) && isText(name) ? { namespace, name } : undefined;
}

function parseSlots(value: unknown): Record<string, string> | undefined {
  if (!isJsonObject(value)) return undefined;
  const entries: [string, string][] = [];
  for (const [name, slot] of Object.entries(value)) {
    if (typeof slot !== "string") return undefined;
    entries.push([name, slot]);
  }
  return Object.fromEntries(entries);
}

function isState(value: unknown): value is Mark["state"] {
  return value === "Owned" || value === "Released";
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function withoutLines(text: string): string {
  let rest = text;
  for (const match of [...text.matchAll(line)].toReversed()) {
    rest = withoutLine(rest, match.index, match[0].length);
  }
  return rest;
}

/** Takes the line out with the one newline that separates it from the person's text. */
function withoutLine(text: string, start: number, length: number): string {
  const before = text.slice(0, start);
  const after = text.slice(start + length);
  if (before.endsWith("\n")) return before.slice(0, -1) + after;
  return after.startsWith("\n") ? after.slice(1) : after;
}
