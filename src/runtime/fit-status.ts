import { limits } from "../kernel/limits.ts";

/** Members that only people read. Nothing is decided by them, so they may be shortened. */
const texts: ReadonlySet<string> = new Set([
  "message",
  "cause",
  "remedy",
  "intent",
  "detail",
  "evidence",
]);

const lengths = [2048, 1024, 512, 256, 128, 64, 32, 16, 8] as const;

/**
 * A status within its bound: where it is too large, its longest texts are cut, all alike, until it
 * fits. The same status is always cut in the same way, so it is not written again for that.
 */
export function fitStatus<Status>(status: Status): Status {
  let fitted = status;
  for (const most of lengths) {
    if (statusBytes(fitted) <= limits.statusBytes) return fitted;
    fitted = withShorterTexts(status, most);
  }
  return fitted;
}

export function statusBytes(status: unknown): number {
  return Buffer.byteLength(JSON.stringify(status ?? null));
}

function withShorterTexts<Status>(status: Status, most: number): Status {
  const isText = new WeakSet<object>();
  const text = JSON.stringify(status, function shorten(this: object, key, value: unknown) {
    const isForPeople = texts.has(key) || isText.has(this);
    if (isForPeople && Array.isArray(value)) isText.add(value);
    return isForPeople && typeof value === "string" ? shortened(value, most) : value;
  });
  // cast: a copy of it, with shorter texts.
  return JSON.parse(text) as Status;
}

function shortened(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
