import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  quantityOf,
  quantityToInt64,
  quantityToNumber,
  subtractQuantities,
  type Quantity,
} from "../../../kernel/quantity.ts";
import { CelError } from "../errors.ts";
import {
  containsIp,
  containsPrefix,
  formatIp,
  ipKinds,
  isIpv4Mapped,
  maskPrefix,
  parseIp,
  parsePrefix,
  type IpAddress,
  type IpPrefix,
} from "../ip.ts";
import { LiteralMap } from "../maps.ts";
import { namedFormats } from "../named-formats.ts";
import type { Definition } from "../overload.ts";
import { compilePattern, type Pattern } from "../pattern.ts";
import { parseQuery, parseUrl, type ParsedUrl } from "../url.ts";
import { CelList, none, Opaque, Optional, type Value } from "../values.ts";
import * as arg from "./arguments.ts";

/** Kubernetes' own functions: quantities, addresses, URLs, patterns and named formats. */
export const kubernetesLibrary: readonly Definition[] = [
  ["quantity(string): Quantity", (v) => ofQuantity(readQuantity(arg.text(v))), arg.traversal()],
  ["isQuantity(string): bool", (v) => parseQuantity(arg.text(v)) !== undefined, arg.traversal()],
  ["sign(Quantity): int", (v) => BigInt(compareQuantities(quantity(v), quantityOf(0n)))],
  ["Quantity.isInteger(): bool", (v) => quantityToInt64(quantity(v)) !== undefined],
  ["Quantity.asInteger(): int", (v) => asInteger(quantity(v))],
  ["Quantity.asApproximateFloat(): double", (v) => quantityToNumber(quantity(v))],
  ["Quantity.isGreaterThan(Quantity): bool", (a, b) => order(a, b) > 0],
  ["Quantity.isLessThan(Quantity): bool", (a, b) => order(a, b) < 0],
  ["Quantity.compareTo(Quantity): int", (a, b) => BigInt(order(a, b))],
  [
    "Quantity.add(Quantity): Quantity",
    (a, b) => ofQuantity(addQuantities(quantity(a), quantity(b))),
  ],
  ["Quantity.add(int): Quantity", (a, b) => ofQuantity(addQuantities(quantity(a), whole(b)))],
  [
    "Quantity.sub(Quantity): Quantity",
    (a, b) => ofQuantity(subtractQuantities(quantity(a), quantity(b))),
  ],
  ["Quantity.sub(int): Quantity", (a, b) => ofQuantity(subtractQuantities(quantity(a), whole(b)))],

  ["ip(string): IP", (v) => ofIp(readIp(arg.text(v))), arg.traversal()],
  ["isIP(string): bool", (v) => isAllowedIp(parseIp(arg.text(v))), arg.traversal()],
  ["ip.isCanonical(string): bool", (v) => isCanonical(arg.text(v)), arg.traversal(2)],
  ["IP.family(): int", (v) => (ip(v).bits === 32 ? 4n : 6n)],
  ["IP.isUnspecified(): bool", (v) => ipKinds.isUnspecified(ip(v))],
  ["IP.isLoopback(): bool", (v) => ipKinds.isLoopback(ip(v))],
  ["IP.isLinkLocalMulticast(): bool", (v) => ipKinds.isLinkLocalMulticast(ip(v))],
  ["IP.isLinkLocalUnicast(): bool", (v) => ipKinds.isLinkLocalUnicast(ip(v))],
  ["IP.isGlobalUnicast(): bool", (v) => ipKinds.isGlobalUnicast(ip(v))],

  ["cidr(string): CIDR", (v) => ofPrefix(readPrefix(arg.text(v))), arg.traversal()],
  ["isCIDR(string): bool", (v) => isAllowedPrefix(parsePrefix(arg.text(v))), arg.traversal()],
  ["CIDR.containsIP(IP): bool", (v, other) => containsIp(prefix(v), ip(other)), prefixCost],
  [
    "CIDR.containsIP(string): bool",
    (v, other) => containsIp(prefix(v), readIp(arg.text(other))),
    prefixTextCost,
  ],
  [
    "CIDR.containsCIDR(CIDR): bool",
    (v, other) => containsPrefix(prefix(v), prefix(other)),
    nestedCost,
  ],
  [
    "CIDR.containsCIDR(string): bool",
    (v, other) => containsPrefix(prefix(v), readPrefix(arg.text(other))),
    nestedTextCost,
  ],
  ["CIDR.ip(): IP", (v) => ofIp(prefix(v).address)],
  ["CIDR.masked(): CIDR", (v) => ofPrefix(maskPrefix(prefix(v)))],
  ["CIDR.prefixLength(): int", (v) => BigInt(prefix(v).length)],

  ["url(string): URL", (v) => ofUrl(arg.text(v)), arg.traversal()],
  ["isURL(string): bool", (v) => parseUrl(arg.text(v)) !== undefined],
  ["URL.getScheme(): string", (v) => url(v).scheme],
  ["URL.getHost(): string", (v) => url(v).host],
  ["URL.getHostname(): string", (v) => url(v).hostname],
  ["URL.getPort(): string", (v) => url(v).port],
  ["URL.getEscapedPath(): string", (v) => url(v).escapedPath],
  ["URL.getQuery(): map<string, list<string>>", (v) => queryOf(url(v))],

  ["string.matches(string): bool", (v, source) => patternOf(source).test(arg.text(v)), patternCost],
  [
    "matches(string, string): bool",
    (v, source) => patternOf(source).test(arg.text(v)),
    patternCost,
  ],
  [
    "string.find(string): string",
    (v, source) => patternOf(source).find(arg.text(v)) ?? "",
    patternCost,
  ],
  ["string.findAll(string): list<string>", (v, source) => findAll(v, source, -1), patternCost],
  [
    "string.findAll(string, int): list<string>",
    (v, source, n) => findAll(v, source, arg.index(n)),
    patternCost,
  ],

  ["format.named(string): optional<Format>", (v) => namedFormat(arg.text(v))],
  ["Format.validate(string): optional<list<string>>", validateFormat, formatCost],
  ...[...namedFormats].map(([name, format]): Definition => [
    `format.${name}(): Format`,
    () => new Opaque({ type: "kubernetes.NamedFormat", format }),
  ]),
];

function quantity(value: Value | undefined): Quantity {
  return arg.content(value, "kubernetes.Quantity").quantity;
}

function ofQuantity(value: Quantity): Opaque {
  return new Opaque({ type: "kubernetes.Quantity", quantity: value });
}

function whole(value: Value | undefined): Quantity {
  return quantityOf(arg.integer(value));
}

function readQuantity(text: string): Quantity {
  const value = parseQuantity(text);
  if (value !== undefined) return value;
  const isNumber = /^[+-]?[0-9]*\.?[0-9]*[eEinumkKMGTP]*[-+]?[0-9]*$/.test(text) && text !== "";
  if (isNumber) throw new CelError("unable to parse quantity's suffix");
  const pattern = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
  throw new CelError(`quantities must match the regular expression ${pattern}`);
}

function asInteger(value: Quantity): bigint {
  const integer = quantityToInt64(value);
  if (integer === undefined) throw new CelError("cannot convert value to integer");
  return integer;
}

function order(left: Value | undefined, right: Value | undefined): number {
  return compareQuantities(quantity(left), quantity(right));
}

function ip(value: Value | undefined): IpAddress {
  return arg.content(value, "net.IP").ip;
}

function ofIp(address: IpAddress): Opaque {
  return new Opaque({ type: "net.IP", ip: address });
}

function isAllowedIp(address: IpAddress | undefined): boolean {
  return address !== undefined && !isIpv4Mapped(address);
}

function readIp(text: string): IpAddress {
  const address = parseIp(text);
  const shown = JSON.stringify(text);
  if (address === undefined) {
    throw new CelError(
      `IP Address ${shown} parse error during conversion from string: ParseAddr(${shown}): unable to parse IP`,
    );
  }
  if (isIpv4Mapped(address)) throw new CelError(`IPv4-mapped IPv6 address ${shown} is not allowed`);
  return address;
}

function isCanonical(text: string): boolean {
  return formatIp(readIp(text)) === text;
}

function prefix(value: Value | undefined): IpPrefix {
  return arg.content(value, "net.CIDR").prefix;
}

function ofPrefix(value: IpPrefix): Opaque {
  return new Opaque({ type: "net.CIDR", prefix: value });
}

function isAllowedPrefix(value: IpPrefix | undefined): boolean {
  return value !== undefined && !isIpv4Mapped(value.address);
}

function readPrefix(text: string): IpPrefix {
  const value = parsePrefix(text);
  if (value !== undefined && isAllowedPrefix(value)) return value;
  throw new CelError(prefixProblem(text, value));
}

function prefixProblem(text: string, value: IpPrefix | undefined): string {
  const where = "network address parse error during conversion from string: ";
  const shown = JSON.stringify(text);
  if (value !== undefined) return `${where}IPv4-mapped IPv6 address ${shown} is not allowed`;
  const [address, length] = text.split("/");
  let problem = "prefix length out of range";
  if (length === undefined) problem = "no '/'";
  else if (parseIp(address ?? "") === undefined) {
    problem = `ParseAddr(${JSON.stringify(address)}): unable to parse IP`;
  } else if (!/^\d+$/.test(length)) problem = `bad bits after slash: ${JSON.stringify(length)}`;
  // Kubernetes says where twice.
  return `${where}${where}netip.ParsePrefix(${shown}): ${problem}`;
}

function prefixCost([subject]: readonly Value[]): number {
  return Math.ceil(arg.sizeOf(subject) * 2 * 0.1);
}

function prefixTextCost(args: readonly Value[]): number {
  return prefixCost(args) + Math.ceil(arg.sizeOf(args[1]) * 0.1);
}

function nestedCost(args: readonly Value[]): number {
  return prefixCost(args) + Math.ceil(arg.sizeOf(args[0]) * 0.1) + 1;
}

function nestedTextCost(args: readonly Value[]): number {
  return nestedCost(args) + Math.ceil(arg.sizeOf(args[1]) * 0.1);
}

function url(value: Value | undefined): ParsedUrl {
  return arg.content(value, "kubernetes.URL").url;
}

function ofUrl(text: string): Opaque {
  const parsed = parseUrl(text);
  if (parsed !== undefined) return new Opaque({ type: "kubernetes.URL", url: parsed, text });
  throw new CelError(
    `URL parse error during conversion from string: parse ${JSON.stringify(text)}: invalid URI for request`,
  );
}

function queryOf({ rawQuery }: ParsedUrl): LiteralMap {
  const entries = [...parseQuery(rawQuery)];
  return new LiteralMap(entries.map(([key, values]) => [key, CelList.of(values)]));
}

/** Patterns are mostly literals, so they are compiled once. */
const patterns = new Map<string, Pattern>();
/** Patterns that come from data must not pile up. */
const patternsMax = 1_000;

function patternOf(value: Value | undefined): Pattern {
  const source = arg.text(value);
  const known = patterns.get(source);
  if (known !== undefined) return known;
  if (patterns.size >= patternsMax) patterns.clear();
  const pattern = compileOrFail(source);
  patterns.set(source, pattern);
  return pattern;
}

function compileOrFail(source: string): Pattern {
  try {
    return compilePattern(source);
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new CelError(`error parsing regexp: ${problem}`);
  }
}

function patternCost([subject, source]: readonly Value[]): number {
  return Math.ceil((1 + arg.sizeOf(subject)) * 0.1) * Math.ceil(arg.sizeOf(source) * 0.25);
}

function findAll(value: Value | undefined, source: Value | undefined, limit: number): CelList {
  return CelList.of(patternOf(source).findAll(arg.text(value), limit));
}

function namedFormat(name: string): Optional {
  const format = namedFormats.get(name);
  return format === undefined
    ? none
    : new Optional(new Opaque({ type: "kubernetes.NamedFormat", format }));
}

function validateFormat(value?: Value, text?: Value): Optional {
  const { format } = arg.content(value, "kubernetes.NamedFormat");
  const problems = format.problemsOf(arg.text(text));
  return problems.length === 0 ? none : new Optional(CelList.of(problems));
}

function formatCost([format, text]: readonly Value[]): number {
  const { patternSize } = arg.content(format, "kubernetes.NamedFormat").format;
  return Math.ceil((1 + arg.sizeOf(text)) * 0.1) * Math.ceil(patternSize * 0.25);
}
