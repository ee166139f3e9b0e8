import { hash } from "node:crypto";

/** One section of a guest's configuration: options by name, without the description. */
export type Section = Map<string, string>;

/** A guest's configuration file, taken apart. */
export interface GuestConfig {
  main: Section;
  pending: Section;
  /** Options whose removal waits, and whether their volumes go too. */
  pendingDelete: Map<string, { readonly isForced: boolean }>;
  snapshots: Map<string, Section>;
}

export function emptyConfig(): GuestConfig {
  return { main: new Map(), pending: new Map(), pendingDelete: new Map(), snapshots: new Map() };
}

/** What the digest parameter is compared with: of the whole file, snapshots and lock included. */
export function digestOf(text: string): string {
  return hash("sha1", text);
}

export function copyConfig(config: GuestConfig): GuestConfig {
  return {
    main: new Map(config.main),
    pending: new Map(config.pending),
    pendingDelete: new Map(config.pendingDelete),
    snapshots: new Map([...config.snapshots].map(([name, part]) => [name, new Map(part)])),
  };
}

export function formatConfig(config: GuestConfig): string {
  let text = formatSection(config.main);
  if (config.pending.size + config.pendingDelete.size + config.snapshots.size === 0) return text;
  const pending = new Map(config.pending);
  if (config.pendingDelete.size > 0) pending.set("delete", formatDeletes(config.pendingDelete));
  if (pending.size > 0) text += `\n[PENDING]\n${formatSection(pending)}`;
  const snapshots = [...config.snapshots].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [name, section] of snapshots) {
    text += `\n[${name}]\n${formatSection(section)}`;
  }
  return text;
}

/** The description stands as comments in front, percent-encoded where a line could break. */
function formatSection(section: Section): string {
  const description = section.get("description") ?? "";
  const comments = description === "" ? [] : description.replace(/\n$/, "").split("\n");
  let text = "";
  for (const line of comments) text += `#${encodeText(line)}\n`;
  for (const key of [...section.keys()].sort()) {
    if (key !== "description") text += `${key}: ${section.get(key) ?? ""}\n`;
  }
  return text;
}

function formatDeletes(deletes: ReadonlyMap<string, { readonly isForced: boolean }>): string {
  return [...deletes]
    .map(([key, { isForced }]) => `${isForced ? "!" : ""}${key}`)
    .sort()
    .join(",");
}

export function parseConfig(text: string): GuestConfig {
  const config = emptyConfig();
  let section = config.main;
  for (const line of text.split("\n")) {
    const head = line.startsWith("[") ? headOf(line) : undefined;
    if (head !== undefined) section = sectionOf(config, head);
    else parseLine(section, line);
  }
  readDeletes(config);
  for (const part of [config.main, config.pending, ...config.snapshots.values()]) trimText(part);
  return config;
}

function headOf(line: string): string | undefined {
  return /^\[([a-z][a-z0-9_-]+)\]\s*$/i.exec(line)?.[1];
}

function sectionOf(config: GuestConfig, head: string): Section {
  if (head.toLowerCase() === "pending") return config.pending;
  const section: Section = new Map();
  config.snapshots.set(head, section);
  return section;
}

function parseLine(section: Section, line: string): void {
  const comment = line.startsWith("#") ? /^#(.*)$/.exec(line)?.[1] : undefined;
  if (comment !== undefined) {
    section.set("description", `${section.get("description") ?? ""}${decodeText(comment)}\n`);
    return;
  }
  // An empty value reads back as one space: the expression needs a character, as Proxmox' does.
  const option = /^([a-z][a-z_-]*\d*):\s*(.+?)\s*$/i.exec(line);
  if (option?.[1] !== undefined) section.set(option[1], option[2] ?? "");
}

function readDeletes(config: GuestConfig): void {
  const names = config.pending.get("delete");
  config.pending.delete("delete");
  for (const name of names?.split(",") ?? []) {
    const isForced = name.startsWith("!");
    config.pendingDelete.set(isForced ? name.slice(1) : name, { isForced });
  }
}

function trimText(section: Section): void {
  const description = section.get("description");
  if (description !== undefined) section.set("description", description.replace(/\s+$/, ""));
}

function encodeText(text: string): string {
  if (!/[^ -~]|%/u.test(text)) return text;
  return text.replaceAll(/[^ -~]|%/gu, (character) => encodeURIComponent(character));
}

function decodeText(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
