import { limits } from "../../kernel/limits.ts";
import { ApiError, badRequest } from "../../kernel/status.ts";

/** A request's address, decoded. */
export interface ParsedUrl {
  /** The path as sent, for logs. */
  readonly path: string;
  /** Decoded, without the empty one before the first slash: "/api/v1" is ["api", "v1"]. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
}

/** Takes an address apart. Throws 400 or 414 for one that no client of ours would send. */
export function parseUrl(url: string): ParsedUrl {
  if (url.length > limits.urlBytes) {
    const message = `the URL is longer than ${limits.urlBytes} bytes`;
    throw new ApiError(414, "RequestURITooLong", message);
  }
  if (!url.startsWith("/")) throw badRequest("the URL does not start with a slash");
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? "" : url.slice(mark + 1);
  return { path, segments: parsePath(path), query: parseQuery(query) };
}

function parsePath(path: string): string[] {
  // One slash at the end makes no difference, as people type it: "/apis/".
  const end = path.length > 1 && path.endsWith("/") ? path.length - 1 : path.length;
  const segments = path.slice(1, end).split("/");
  return path.includes("%") ? segments.map(decodeSegment) : segments;
}

function decodeSegment(segment: string): string {
  const decoded = decode(segment, "path");
  // A slash that hides in a segment would be a name that reaches into another namespace.
  if (/[/\u0000-\u001f\u007f]/.test(decoded)) {
    throw badRequest("a segment of the path contains a slash or a control character");
  }
  return decoded;
}

function parseQuery(query: string): URLSearchParams {
  // URLSearchParams forgives bad encoding, and would so select other objects than were meant.
  if (query.includes("%")) decode(query, "query");
  return new URLSearchParams(query);
}

function decode(text: string, part: "path" | "query"): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    throw badRequest(`the ${part} is not percent-encoded as it should be`);
  }
}

/** A boolean of the query as Kubernetes reads it: "?watch" and "?watch=1" are true. */
export function queryFlag(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}
