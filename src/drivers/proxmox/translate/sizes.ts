const units = { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3, T: 1024 ** 4 } as const;

export const mebibyte = 1024 ** 2;
const gibibyte = 1024 ** 3;

/** "32G", "528K", "1.5T", "4194304": the size of a volume as a config says it. */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)([KMGT]?)$/.exec(text);
  if (match === null) return undefined;
  const unit = match[2] ?? "";
  return Math.round(Number(match[1]) * (isUnit(unit) ? units[unit] : 1));
}

/** The largest unit that leaves a whole number: the form that Proxmox itself writes. */
export function formatSize(bytes: number): string {
  for (const unit of ["T", "G", "M", "K"] as const) {
    if (bytes > 0 && bytes % units[unit] === 0) return `${bytes / units[unit]}${unit}`;
  }
  return String(bytes);
}

/** A new volume's size is given in GiB. Whole MiB have an exact decimal form. */
export function formatGibibytes(bytes: number): string {
  return String((Math.ceil(bytes / mebibyte) * mebibyte) / gibibyte);
}

function isUnit(text: string): text is keyof typeof units {
  return text in units;
}
