/** One line of log: a sentence and the facts that belong to it. */
export type Log = (level: LogLevel, message: string, fields?: LogFields) => void;

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** A single field of foreign text must not fill the disk. */
const fieldCharsMax = 2_000;
const order: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Lines such as `2026-11-15T08:00:00Z warn the disk is full path=.berth`. */
export function createLog(options: {
  readonly write: (line: string) => void;
  readonly nowMs: () => number;
  readonly level: LogLevel;
}): Log {
  return (level, message, fields = {}) => {
    if (order[level] < order[options.level]) return;
    const time = new Date(options.nowMs()).toISOString();
    const facts = Object.entries(fields).flatMap(([name, value]) => {
      return value === undefined ? [] : [`${name}=${formatValue(value)}`];
    });
    options.write([time, level, oneLine(message), ...facts].join(" "));
  };
}

function formatValue(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  const text = oneLine(value);
  return /[\s"=]/.test(text) || text === "" ? JSON.stringify(text) : text;
}

/** A line break in foreign text must not forge a second line of log. */
function oneLine(text: string): string {
  const flat = text.replaceAll(/[\u0000-\u001f\u007f]+/g, " ");
  return flat.length <= fieldCharsMax ? flat : `${flat.slice(0, fieldCharsMax)}…`;
}
