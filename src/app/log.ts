import { redact } from "../kernel/redact.ts";

/** One line of log: a sentence and the facts that belong to it. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;
/** `text` is for people, `json` for programs: one object per line. */
export type LogFormat = "text" | "json";

/** A single field of foreign text must not fill the disk. */
const fieldCharsMax = 2_000;
const order: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Lines such as `2026-11-15T08:00:00Z warn the disk is full path=.berth`. */
export function createLog(options: {
  readonly write: (line: string) => void;
  readonly nowMs: () => number;
  readonly level: LogLevel;
  readonly format?: LogFormat | undefined;
}): Log {
  const format = options.format === "json" ? formatJson : formatText;
  return (level, message, fields = {}) => {
    if (order[level] < order[options.level]) return;
    const time = new Date(options.nowMs()).toISOString();
    options.write(format(time, level, { message: cleaned(message), fields: facts(fields) }));
  };
}

/** One log that writes into several. */
export function joinLogs(...logs: readonly Log[]): Log {
  return (level, message, fields) => {
    for (const log of logs) log(level, message, fields);
  };
}

type Facts = Readonly<Record<string, string | number | boolean>>;

interface Line {
  readonly message: string;
  readonly fields: Facts;
}

function facts(fields: LogFields): Facts {
  const known = Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return [];
    return [[name, typeof value === "string" ? cleaned(value) : value] as const];
  });
  return Object.fromEntries(known);
}

function formatText(time: string, level: LogLevel, { message, fields }: Line): string {
  const parts = Object.entries(fields).map(([name, value]) => `${name}=${formatValue(value)}`);
  return [time, level, message, ...parts].join(" ");
}

/** The facts come last: none of them can pass itself off as the time, the level or the message. */
function formatJson(time: string, level: LogLevel, { message, fields }: Line): string {
  const reserved = Object.entries(fields).map(([name, value]) => {
    return [name === "time" || name === "level" || name === "message" ? `_${name}` : name, value];
  });
  return JSON.stringify({ time, level, message, ...Object.fromEntries(reserved) });
}

function formatValue(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  return /[\s"=]/.test(value) || value === "" ? JSON.stringify(value) : value;
}

/** A line break in foreign text must not forge a second line of log, nor a secret get into it. */
function cleaned(text: string): string {
  const flat = redact(text).replaceAll(/[\u0000-\u001f\u007f]+/g, " ");
  return flat.length <= fieldCharsMax ? flat : `${flat.slice(0, fieldCharsMax)}…`;
}
