import type { Quirks } from "../release.ts";
import type { RawParameters, RawValue } from "../schema/check.ts";
import { type ApiRequest, type ApiResponse, plainResponse } from "./message.ts";

/** An uploaded file, with the fields of its form beside it. */
export interface Upload {
  readonly filename: string;
  readonly bytes: Uint8Array;
}

export type Decoded =
  | { readonly kind: "parameters"; readonly parameters: RawParameters; readonly upload?: Upload }
  | { readonly kind: "refused"; readonly response: ApiResponse };

/** 64 KiB before pve-http-server 5.2.1. */
const bodyBytesMax = { old: 64 * 1024, now: 512 * 1024 };

/** The parameters of a request, from its query and its body. */
export function decodeRequest(request: ApiRequest, quirks: Quirks): Decoded {
  const parameters = decodeForm(queryOf(request.path));
  const body = bytesOf(request.body);
  if (body.length === 0) return { kind: "parameters", parameters };
  if (request.method !== "POST" && request.method !== "PUT") {
    return refused(quirks, 501, `Unexpected content for method '${request.method}'`);
  }
  const decoded = decodeBody(request, body, quirks);
  if (decoded.kind === "refused") return decoded;
  return { ...decoded, parameters: { ...parameters, ...decoded.parameters } };
}

function queryOf(path: string): string {
  const at = path.indexOf("?");
  return at < 0 ? "" : path.slice(at + 1);
}

function decodeBody(request: ApiRequest, body: Buffer, quirks: Quirks): Decoded {
  const type = request.headers["content-type"] ?? "";
  const boundary = /^multipart\/form-data;.*boundary="?([^";]+)"?/i.exec(type)?.[1];
  if (boundary !== undefined) return decodeMultipart(body, boundary);
  const limit = quirks.messageInBody ? bodyBytesMax.now : bodyBytesMax.old;
  if (body.length > limit) return refused(quirks, 501, "for data too large");
  if (/^application\/json/i.test(type)) return decodeJson(body.toString("utf8"), quirks);
  if (type === "" || /^application\/x-www-form-urlencoded/i.test(type)) {
    return { kind: "parameters", parameters: decodeForm(body.toString("utf8")) };
  }
  return refused(quirks, 506, `upload '${type}' not implemented`);
}

function decodeJson(text: string, quirks: Quirks): Decoded {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) {
      return { kind: "parameters", parameters: { ...value } };
    }
  } catch {
    // What is no JSON is refused like what is no object.
  }
  return refused(quirks, quirks.messageInBody ? 500 : 501, "malformed JSON string");
}

function refused(quirks: Quirks, status: number, reason: string): Decoded {
  const body = quirks.plainErrorBody ? reason : "";
  return { kind: "refused", response: plainResponse(status, reason, body) };
}

/**
 * Forms are split at "&" and ";", and every pair at each "=" without a limit: what is not
 * percent-encoded is cut off. Repeated names make a list.
 */
function decodeForm(text: string): RawParameters {
  const parameters: Record<string, RawValue> = {};
  if (text === "") return parameters;
  for (const pair of text.split(/[&;]/)) {
    if (pair === "") continue;
    const [name = "", value = ""] = pair.split("=", 2);
    const key = decodeText(name);
    const old = parameters[key];
    const read = decodeText(value);
    if (old === undefined || !Object.hasOwn(parameters, key)) parameters[key] = read;
    else parameters[key] = isList(old) ? [...old, read] : [old, read];
  }
  return parameters;
}

function isList(value: RawValue): value is readonly RawValue[] {
  return Array.isArray(value);
}

function decodeText(text: string): string {
  if (!/[+%]/.test(text)) return text;
  const spaced = text.replaceAll("+", " ");
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}

function decodeMultipart(body: Buffer, boundary: string): Decoded {
  const parameters: Record<string, RawValue> = {};
  let upload: Upload | undefined;
  for (const part of partsOf(body, boundary)) {
    const end = part.indexOf("\r\n\r\n");
    const head = part.subarray(0, Math.max(end, 0)).toString("utf8");
    const content = part.subarray(end + 4);
    const name = /name="([^"]*)"/.exec(head)?.[1];
    const filename = /filename="([^"]*)"/.exec(head)?.[1];
    if (filename !== undefined) {
      upload = { filename, bytes: content };
      parameters["filename"] = filename;
    } else if (name !== undefined) parameters[name] = content.toString("utf8");
  }
  return { kind: "parameters", parameters, ...(upload === undefined ? {} : { upload }) };
}

function partsOf(body: Buffer, boundary: string): Buffer[] {
  const mark = Buffer.from(`--${boundary}`);
  const parts: Buffer[] = [];
  let at = body.indexOf(mark);
  while (at >= 0) {
    const start = at + mark.length;
    at = body.indexOf(mark, start);
    // Between two marks lies "\r\n", the part, "\r\n".
    if (at >= 0) parts.push(body.subarray(start + 2, at - 2));
  }
  return parts;
}

const noBytes = Buffer.alloc(0);

function bytesOf(body: Uint8Array | string | undefined): Buffer {
  if (body === undefined) return noBytes;
  if (typeof body === "string") return Buffer.from(body);
  return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}
