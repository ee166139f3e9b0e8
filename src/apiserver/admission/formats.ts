import { isIpv4Text, isIpv6Text, parsePrefix } from "../cel/ip.ts";
import { parseGoDuration } from "../cel/duration.ts";
import { isDate, isDateTime } from "../cel/time.ts";
import { parseUrl } from "../cel/url.ts";

/**
 * The formats that Kubernetes enforces; all others (int32, int64 and double among them) are notes
 * for readers and clients. The name is the one that the schema wrote, for it appears in errors.
 */
export function checkedFormat(format: string | undefined): string | undefined {
  return format !== undefined && checks.has(normalize(format)) ? format : undefined;
}

export function formatCheckOf(format: string): (text: string) => boolean {
  return checks.get(normalize(format)) ?? (() => true);
}

function normalize(format: string): string {
  return format.replaceAll("-", "");
}

const uuid = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const uuid3 = /^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;
const uuid4 = /^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i;
const uuid5 = /^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$/i;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/;
const card =
  /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|(?:222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11}|6[27]\d{14})$/;

const checks: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ["bsonobjectid", (text) => /^[0-9a-f]{24}$/i.test(text)],
  ["byte", (text) => base64.test(text)],
  ["cidr", (text) => parsePrefix(text, { allowLeadingZeros: true }) !== undefined],
  ["creditcard", isCreditCard],
  ["date", isDate],
  ["datetime", isDateTime],
  ["duration", isDuration],
  ["email", isEmail],
  ["hexcolor", (text) => /^#?([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text)],
  ["hostname", isHostname],
  ["ipv4", isSloppyIpv4],
  ["ipv6", isIpv6Text],
  ["isbn", (text) => isIsbn10(text) || isIsbn13(text)],
  ["isbn10", isIsbn10],
  ["isbn13", isIsbn13],
  ["mac", isMac],
  ["password", () => true],
  ["rgbcolor", isRgbColor],
  ["ssn", (text) => /^\d{3}[- ]\d{2}[- ]\d{4}$/.test(text)],
  ["uri", isRequestUri],
  ["uuid", (text) => uuid.test(text)],
  ["uuid3", (text) => uuid3.test(text)],
  ["uuid4", (text) => uuid4.test(text)],
  ["uuid5", (text) => uuid5.test(text)],
]);

/** An address with dots. Kubernetes still lets leading zeros pass, and mixed IPv6 notation too. */
function isSloppyIpv4(text: string): boolean {
  if (!text.includes(".")) return false;
  return isIpv4Text(text.replaceAll(/(^|\.)0+(?=\d)/g, "$1")) || isIpv6Text(text);
}

const looseDuration = /\d+\s*([A-Za-zµ]+)/g;
const durationUnits =
  /^(ns|us|µs|ms|s|m|h|d|w|nanos?|micros?|millis?|hr|nanosecond.*|microsecond.*|millisecond.*|second.*|minute.*|hour.*|day.*|week.*)$/i;

/** A Go duration, or words such as "3 days". */
function isDuration(text: string): boolean {
  if (parseGoDuration(text) !== undefined) return true;
  return [...text.matchAll(looseDuration)].some((match) => durationUnits.test(match[1] ?? ""));
}

const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\\u0080-\\uffff-]+";
const address = `${atom}(?:\\.${atom})*@(?:${atom}(?:\\.${atom})*|\\[[^\\]]*\\])`;
const mailbox = new RegExp(
  `^\\s*(?:${address}|(?:"[^"]*"|${atom}(?:[ .]+${atom})*)?\\s*<${address}>)\\s*$`,
);

/** One mail address, with or without a display name. */
function isEmail(text: string): boolean {
  return text.length <= 1024 && mailbox.test(text);
}

const hostnameLabel = /^[a-zA-Z0-9\p{S}\p{L}](?:[a-zA-Z0-9\p{S}\p{L}-]*[a-zA-Z0-9\p{S}\p{L}])?$/u;

function isHostname(text: string): boolean {
  const labels = text.split(".");
  if (Buffer.byteLength(text) > 255) return false;
  if (labels.some((label) => Buffer.byteLength(label) > 63)) return false;
  if (labels.length === 1) {
    return /^[a-zA-Z0-9\p{S}\p{L}](-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?$/u.test(text);
  }
  const top = labels.pop() ?? "";
  return /^[a-zA-Z\p{L}]{2,63}$/u.test(top) && labels.every((label) => hostnameLabel.test(label));
}

function isMac(text: string): boolean {
  const bytes = "(?:[0-9a-f]{2}";
  const forms = [`${bytes}:)`, `${bytes}-)`].flatMap((pair) => {
    return [5, 7, 19].map((count) => `^${pair}{${count}}[0-9a-f]{2}$`);
  });
  const dotted = [2, 3, 9].map((count) => `^(?:[0-9a-f]{4}\\.){${count}}[0-9a-f]{4}$`);
  return [...forms, ...dotted].some((form) => new RegExp(form, "i").test(text));
}

function isRgbColor(text: string): boolean {
  const part = "\\s*(?:0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*";
  return new RegExp(`^rgb\\(${part},${part},${part}\\)$`).test(text);
}

/** An absolute URI or an absolute path. */
function isRequestUri(text: string): boolean {
  const url = parseUrl(text);
  return url !== undefined && (url.scheme !== "" || text.startsWith("/"));
}

function isIsbn10(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, "");
  if (!/^\d{9}[\dXx]$/.test(digits)) return false;
  const sum = [...digits].reduce((total, digit, i) => {
    return total + (i + 1) * (/x/i.test(digit) ? 10 : Number(digit));
  }, 0);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, "");
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = [...digits].reduce((total, digit, i) => total + (i % 2 ? 3 : 1) * Number(digit), 0);
  return sum % 10 === 0;
}

function isCreditCard(text: string): boolean {
  const digits = text.replaceAll(/[^0-9]+/g, "");
  if (!card.test(digits)) return false;
  const sum = [...digits].reverse().reduce((total, digit, i) => {
    const weighted = Number(digit) * (i % 2 ? 2 : 1);
    return total + (weighted > 9 ? weighted - 9 : weighted);
  }, 0);
  return sum % 10 === 0;
}
