/**
 * Kubernetes quantities: "500m", "1.5Gi", "12e6". Held exactly, as a whole number times a power of
 * ten, because capacity that is rounded twice is capacity that is sold twice.
 */
export interface Quantity {
  /** The value is `units` × 10^`exponent`. */
  readonly units: bigint;
  readonly exponent: number;
  /** How it was written, which is how it is printed. */
  readonly format: QuantityFormat;
  /** Whether Kubernetes would hold it in 64 bits. It matters only to `quantityToInt64`. */
  readonly isSmall: boolean;
}

export type QuantityFormat = "DecimalSI" | "BinarySI" | "DecimalExponent";

/** Kubernetes keeps nothing finer than 10^-9; what is finer is rounded up, away from zero. */
const finestExponent = -9;
const int64Max = 2n ** 63n - 1n;
/** The digits that are sure to fit into 64 bits. */
const int64Digits = 18;

/**
 * Bounds the work that a text can cause: Kubernetes takes any number of digits and an exponent of
 * 32 bits, with which one comparison could keep a machine busy for minutes.
 */
const textMax = 256;
const exponentMax = 1_000;

const binarySuffixes = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] as const;
const decimalSuffixes = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"] as const;

const syntax = /^([+-]?)0*(\d*)(?:\.(\d*))?([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i|)$/;

/**
 * Parses a quantity; undefined when it is none. As in Kubernetes the number may be left out, and
 * then it is zero: "Mi" and "." are quantities, the empty text is not.
 */
export function parseQuantity(text: string): Quantity | undefined {
  if (text === "" || text.length > textMax) return undefined;
  const match = syntax.exec(text);
  const scale = match === null ? undefined : scaleOf(match[4] ?? "");
  if (match === null || scale === undefined) return undefined;
  return scaled({ sign: match[1] ?? "", whole: match[2] ?? "", fraction: match[3] ?? "" }, scale);
}

interface Digits {
  readonly sign: string;
  readonly whole: string;
  readonly fraction: string;
}

function scaled(digits: Digits, scale: Scale): Quantity {
  const { sign, whole, fraction } = digits;
  const magnitude = BigInt(whole + fraction || "0") * scale.factor;
  const exponent = scale.exponent - fraction.length;
  const number = { units: sign === "-" ? -magnitude : magnitude, exponent, format: scale.format };
  if (!isSmallNumber(digits, scale, exponent)) return rounded(number);
  return { ...number, isSmall: true };
}

interface Scale {
  readonly factor: bigint;
  /** Of ten, for decimal suffixes. */
  readonly exponent: number;
  /** Of 1024, for binary suffixes. */
  readonly power: number;
  readonly format: QuantityFormat;
}

function scaleOf(suffix: string): Scale | undefined {
  if (/^[eE][+-]?\d/.test(suffix)) {
    const exponent = Number(suffix.slice(1));
    if (Math.abs(exponent) > exponentMax) return undefined;
    return { factor: 1n, exponent, power: 0, format: "DecimalExponent" };
  }
  const power = binarySuffixes.findIndex((candidate) => candidate === suffix);
  if (power > 0) return { factor: 1024n ** BigInt(power), exponent: 0, power, format: "BinarySI" };
  const step = decimalSuffixes.findIndex((candidate) => candidate === suffix);
  return { factor: 1n, exponent: step * 3 + finestExponent, power: 0, format: "DecimalSI" };
}

/** The very numbers for which Kubernetes takes its fast path, by the length of their digits. */
function isSmallNumber({ whole, fraction }: Digits, scale: Scale, exponent: number): boolean {
  const digits = Math.max(whole.length, 1);
  if (scale.format === "BinarySI") return fraction === "" && 14 - digits - 3 * scale.power >= 0;
  return digits + fraction.length <= int64Digits && exponent >= finestExponent;
}

/** Rounds to 10^-9, and caps what has a binary suffix at 64 bits as Kubernetes does. */
function rounded(number: Omit<Quantity, "isSmall">): Quantity {
  const isNegative = number.units < 0n;
  let units = isNegative ? -number.units : number.units;
  let { exponent, format } = number;
  if (exponent < finestExponent) {
    const divisor = tenTo(finestExponent - exponent);
    units = (units + divisor - 1n) / divisor;
    exponent = finestExponent;
  }
  if (format === "BinarySI") {
    const limit = int64Max * tenTo(-exponent);
    if (units > limit) [units, exponent] = [int64Max, 0];
    // Below one there is no binary suffix to print.
    if (units < tenTo(-exponent)) format = "DecimalSI";
  }
  return { units: isNegative ? -units : units, exponent, format, isSmall: false };
}

function tenTo(exponent: number): bigint {
  return 10n ** BigInt(exponent);
}

/** A quantity of a whole number within 64 bits, written plainly. */
export function quantityOf(value: bigint): Quantity {
  return { units: value, exponent: 0, format: "DecimalSI", isSmall: fitsInt64(value) };
}

function fitsInt64(value: bigint): boolean {
  return value >= -int64Max - 1n && value <= int64Max;
}

/** -1, 0 or 1. The order is that of the numbers; how they are written does not matter. */
export function compareQuantities(left: Quantity, right: Quantity): -1 | 0 | 1 {
  const { units, other } = aligned(left, right);
  if (units === other) return 0;
  return units < other ? -1 : 1;
}

/** The sum, in the format of the first that is not zero. */
export function addQuantities(left: Quantity, right: Quantity): Quantity {
  const format = left.units === 0n ? right.format : left.format;
  const areSmall = left.isSmall && right.isSmall;
  if (areSmall && right.units === 0n) return { ...left, format };
  if (areSmall && left.units === 0n) return right;
  const { units, other, exponent } = aligned(left, right);
  const isSmall = areSmall && [units, other, units + other].every(fitsInt64);
  return { units: units + other, exponent, format, isSmall };
}

export function subtractQuantities(left: Quantity, right: Quantity): Quantity {
  return addQuantities(left, { ...right, units: -right.units });
}

function aligned(
  left: Quantity,
  right: Quantity,
): { units: bigint; other: bigint; exponent: number } {
  const exponent = Math.min(left.exponent, right.exponent);
  return {
    units: left.units * tenTo(left.exponent - exponent),
    other: right.units * tenTo(right.exponent - exponent),
    exponent,
  };
}

/**
 * The value as a 64-bit integer where Kubernetes would give one: not for "1000m" or "1.5Gi", which
 * are whole numbers but not written as such. For arithmetic of your own use `quantityCeil`.
 */
export function quantityToInt64({ units, exponent, isSmall }: Quantity): bigint | undefined {
  if (!isSmall || exponent < 0) return undefined;
  const value = units * tenTo(exponent);
  return fitsInt64(value) ? value : undefined;
}

/** The value rounded up to a whole number: bytes, millicores and the like. */
export function quantityCeil({ units, exponent }: Quantity): bigint {
  if (exponent >= 0) return units * tenTo(exponent);
  const divisor = tenTo(-exponent);
  const quotient = units / divisor;
  return units > 0n && quotient * divisor !== units ? quotient + 1n : quotient;
}

/** The value as a number, with the rounding that Kubernetes' own conversion has. */
export function quantityToNumber({ units, exponent }: Quantity): number {
  return exponent === 0 ? Number(units) : Number(units) * Number(`1e${exponent}`);
}

/** The canonical form: no fraction, and the largest suffix that allows it. "1500m", "1536Mi". */
export function formatQuantity(quantity: Quantity): string {
  if (quantity.units === 0n) return "0";
  const { units, exponent } = trimmed(quantity);
  if (quantity.format === "BinarySI" && exponent >= 0) {
    const value = units * tenTo(exponent);
    if (value >= 1024n || value <= -1024n) return formatBinary(value);
  }
  const power = Math.floor(exponent / 3) * 3;
  if (quantity.format === "DecimalExponent") {
    const number = units * tenTo(exponent - power);
    return power === 0 ? `${number}` : `${number}e${power}`;
  }
  const step = Math.min((power - finestExponent) / 3, decimalSuffixes.length - 1);
  return `${units * tenTo(exponent - (step * 3 + finestExponent))}${decimalSuffixes[step] ?? ""}`;
}

function formatBinary(whole: bigint): string {
  let value = whole;
  let power = 0;
  while (value % 1024n === 0n && power < binarySuffixes.length - 1) {
    value /= 1024n;
    power++;
  }
  return `${value}${binarySuffixes[power] ?? ""}`;
}

/** Without trailing zeros. */
function trimmed({ units, exponent }: Quantity): { units: bigint; exponent: number } {
  let value = units;
  let power = exponent;
  while (value % 10n === 0n) {
    value /= 10n;
    power++;
  }
  return { units: value, exponent: power };
}
