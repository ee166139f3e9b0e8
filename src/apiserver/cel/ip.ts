/** IP addresses and networks, as Go's net/netip reads and prints them. */

export interface IpAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

export interface IpPrefix {
  readonly address: IpAddress;
  readonly length: number;
}

/** An address without zone. Undefined when it is none. */
export function parseIp(text: string): IpAddress | undefined {
  if (!text.includes(":")) return parseIpv4(text);
  const value = parseIpv6(text);
  return value === undefined ? undefined : { bits: 128, value };
}

export function isIpv4Text(text: string): boolean {
  return parseIpv4(text) !== undefined;
}

export function isIpv6Text(text: string): boolean {
  return text.includes(":") && parseIpv6(text) !== undefined;
}

function parseIpv4(text: string): IpAddress | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  let value = 0;
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    value = value * 256 + Number(part);
  }
  return { bits: 32, value: BigInt(value) };
}

function parseIpv6(text: string): bigint | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [head, tail] = halves.map(parseGroups);
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined;
  if (tail === undefined) return head.length === 8 ? joinGroups(head) : undefined;
  const missing = 8 - head.length - tail.length;
  // "::" stands for at least one group of zeros.
  if (missing < 1) return undefined;
  return joinGroups([...head, ...Array<number>(missing).fill(0), ...tail]);
}

function parseGroups(text: string): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    if (part.includes(".") && index === parts.length - 1) {
      const tail = parseIpv4(part);
      if (tail === undefined) return undefined;
      groups.push(Number(tail.value >> 16n), Number(tail.value & 0xffffn));
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

function joinGroups(groups: readonly number[]): bigint | undefined {
  if (groups.length !== 8) return undefined;
  return groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n);
}

/** `::ffff:1.2.3.4`, which the rules of Kubernetes refuse. */
export function isIpv4Mapped(ip: IpAddress): boolean {
  return ip.bits === 128 && ip.value >> 32n === 0xffffn;
}

/** A network such as 10.0.0.0/8. Bits after the prefix may be set. */
export function parsePrefix(
  text: string,
  options?: { allowLeadingZeros: boolean },
): IpPrefix | undefined {
  const slash = text.lastIndexOf("/");
  if (slash < 0) return undefined;
  const zeros = options?.allowLeadingZeros ?? false;
  const host = text.slice(0, slash);
  const address = parseIp(zeros ? host.replaceAll(/(^|\.)0+(?=\d)/g, "$1") : host);
  const digits = text.slice(slash + 1);
  if (address === undefined || !(zeros ? /^\d+$/ : /^(0|[1-9]\d{0,2})$/).test(digits)) {
    return undefined;
  }
  const length = Number(digits);
  return length <= address.bits ? { address, length } : undefined;
}

export function formatIp({ bits, value }: IpAddress): string {
  if (bits === 32) return formatIpv4(value);
  if (value >> 32n === 0xffffn) return `::ffff:${formatIpv4(value & 0xffffffffn)}`;
  const groups = Array.from({ length: 8 }, (_, i) => (value >> BigInt(112 - 16 * i)) & 0xffffn);
  const { start, length } = longestZeros(groups);
  const hex = (part: readonly bigint[]): string =>
    part.map((group) => group.toString(16)).join(":");
  if (length < 2) return hex(groups);
  return `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

function formatIpv4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".");
}

function longestZeros(groups: readonly bigint[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  for (let start = 0; start < groups.length; start++) {
    let end = start;
    while (groups[end] === 0n) end++;
    if (end - start > best.length) best = { start, length: end - start };
  }
  return best;
}

export function formatPrefix({ address, length }: IpPrefix): string {
  return `${formatIp(address)}/${length}`;
}

/** The network itself: the address with the bits after the prefix cleared. */
export function maskPrefix({ address, length }: IpPrefix): IpPrefix {
  const shift = BigInt(address.bits - length);
  return { address: { ...address, value: (address.value >> shift) << shift }, length };
}

export function containsIp({ address, length }: IpPrefix, ip: IpAddress): boolean {
  const shift = BigInt(address.bits - length);
  return ip.bits === address.bits && ip.value >> shift === address.value >> shift;
}

export function containsPrefix(outer: IpPrefix, inner: IpPrefix): boolean {
  return outer.length <= inner.length && containsIp(outer, inner.address);
}

/** What kind of address it is, in the terms of Go's netip. */
export const ipKinds = {
  isUnspecified: (ip: IpAddress): boolean => ip.value === 0n,
  isLoopback: (ip: IpAddress): boolean =>
    ip.bits === 32 ? ip.value >> 24n === 127n : ip.value === 1n,
  isLinkLocalUnicast: (ip: IpAddress): boolean =>
    ip.bits === 32 ? ip.value >> 16n === 0xa9fen : ip.value >> 118n === 0xfe80n >> 6n,
  isLinkLocalMulticast: (ip: IpAddress): boolean =>
    ip.bits === 32
      ? ip.value >> 8n === 0xe00000n
      : ip.value >> 120n === 0xffn && ((ip.value >> 112n) & 0xfn) === 2n,
  isGlobalUnicast: (ip: IpAddress): boolean => {
    const isMulticast = ip.bits === 32 ? ip.value >> 28n === 14n : ip.value >> 120n === 0xffn;
    const isBroadcast = ip.bits === 32 && ip.value === 0xffffffffn;
    const isOther = ipKinds.isUnspecified(ip) || ipKinds.isLoopback(ip) || isMulticast;
    return !isBroadcast && !isOther && !ipKinds.isLinkLocalUnicast(ip);
  },
} as const;
