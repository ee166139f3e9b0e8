/** A URL as Go's net/url reads it. JavaScript's own URL rewrites what it reads. */
export interface ParsedUrl {
  readonly scheme: string;
  /** Host and port as written: "example.com:80", "[::1]:80". */
  readonly host: string;
  readonly hostname: string;
  readonly port: string;
  readonly escapedPath: string;
  readonly rawQuery: string;
  readonly fragment: string;
}

/**
 * An absolute URL, or an absolute path: what Go's ParseRequestURI accepts, but a fragment is told
 * apart from the path as its Parse does. Undefined when it is neither.
 */
export function parseUrl(text: string): ParsedUrl | undefined {
  if (text === "" || hasControl(text)) return undefined;
  const [beforeHash, fragment] = cut(text, "#");
  const scheme = readScheme(beforeHash);
  if (scheme === undefined) return undefined;
  const rest = beforeHash.slice(scheme === "" ? 0 : scheme.length + 1);
  if (scheme === "" && !rest.startsWith("/")) return undefined;
  const [hierarchy, rawQuery] = cut(rest, "?");
  return parseHierarchy({ scheme: scheme.toLowerCase(), rawQuery, fragment }, hierarchy);
}

/** A text before and after the first mark. */
function cut(text: string, mark: string): [string, string] {
  const at = text.indexOf(mark);
  return at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}

type UrlBase = Pick<ParsedUrl, "scheme" | "rawQuery" | "fragment">;

function parseHierarchy(base: UrlBase, hierarchy: string): ParsedUrl | undefined {
  // "mailto:x": opaque, without host and path.
  if (!hierarchy.startsWith("/")) {
    return { ...base, host: "", hostname: "", port: "", escapedPath: "" };
  }
  if (base.scheme === "" || !hierarchy.startsWith("//")) return withAuthority(base, "", hierarchy);
  const slash = hierarchy.indexOf("/", 2);
  const authority = hierarchy.slice(2, slash < 0 ? undefined : slash);
  return withAuthority(base, authority, slash < 0 ? "" : hierarchy.slice(slash));
}

/** Go refuses ASCII control characters anywhere in a URL. */
function hasControl(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

/** The scheme before the first colon, "" where there is none, undefined where it is malformed. */
function readScheme(text: string): string | undefined {
  const match = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text);
  if (match !== null) return match[1];
  return text.startsWith(":") ? undefined : "";
}

function withAuthority(base: UrlBase, authority: string, path: string): ParsedUrl | undefined {
  const at = authority.lastIndexOf("@");
  const userInfo = at < 0 ? "" : authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(userInfo)) return undefined;
  const host = parseHost(authority.slice(at + 1));
  if (host === undefined || !hasValidEscapes(path) || !hasValidEscapes(userInfo)) return undefined;
  return { ...base, ...host, escapedPath: escapePath(path) };
}

function parseHost(host: string): { host: string; hostname: string; port: string } | undefined {
  if (host.startsWith("[")) {
    const match = /^\[([^\]]*)\](?::(\d*))?$/.exec(host);
    if (match === null) return undefined;
    return { host, hostname: match[1] ?? "", port: match[2] ?? "" };
  }
  const colon = host.lastIndexOf(":");
  const port = colon < 0 ? "" : host.slice(colon + 1);
  if (!/^\d*$/.test(port) || /[\s"<>\\^`{|}%]/.test(host)) return undefined;
  return { host, hostname: colon < 0 ? host : host.slice(0, colon), port };
}

function hasValidEscapes(text: string): boolean {
  return !/%(?![0-9a-fA-F]{2})/.test(text);
}

const plainInPath = /[^A-Za-z0-9\-._~$&+,/:;=@!'()*%[\]]/gu;

/** What is not allowed in a path is percent-encoded; what came encoded stays as it came. */
function escapePath(path: string): string {
  return path.replaceAll(plainInPath, (char) => {
    const bytes = [...new TextEncoder().encode(char)];
    return bytes.map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("");
  });
}

/** The decoded query: every key with all its values. Pairs that cannot be decoded are left out. */
export function parseQuery(rawQuery: string): Map<string, string[]> {
  const query = new Map<string, string[]>();
  for (const pair of rawQuery.split("&")) {
    // Go refuses semicolons, which were separators once.
    if (pair === "" || pair.includes(";")) continue;
    const equals = pair.indexOf("=");
    const key = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = decode(equals < 0 ? "" : pair.slice(equals + 1));
    if (key === undefined || value === undefined) continue;
    query.set(key, [...(query.get(key) ?? []), value]);
  }
  return query;
}

function decode(text: string): string | undefined {
  if (!hasValidEscapes(text)) return undefined;
  const bytes: number[] = [];
  for (const part of text.replaceAll("+", " ").split(/(%[0-9a-fA-F]{2})/)) {
    if (part.startsWith("%")) bytes.push(Number.parseInt(part.slice(1), 16));
    else bytes.push(...new TextEncoder().encode(part));
  }
  return new TextDecoder().decode(new Uint8Array(bytes));
}
