/** Parameters of a call. They go into the query of GET and DELETE and into the body otherwise. */
export type Params = Readonly<Record<string, string | number>>;

/** One call of the Proxmox VE API, freed from its transport. */
export interface PveRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below /api2/json, each part percent-encoded: "/nodes/pve1/qemu/100/config". */
  readonly path: string;
  readonly params?: Params;
  /** A file to upload: then the parameters travel beside it, as parts of a form. */
  readonly file?: UploadedFile;
  /** In place of the token: a login that was made for this call. */
  readonly ticket?: Ticket;
  /**
   * Present on every call that changes something. The transport asks it in the tick in which the
   * bytes leave, on a connection that stands already; if it says no, nothing is sent.
   */
  readonly mayWrite?: () => boolean;
}

/** A login by password, and what has to come with every write under it. */
export interface Ticket {
  readonly ticket: string;
  readonly csrf: string;
}

/** Who is calling: by the token, or by the ticket of this one call. */
export function authHeaders(
  { ticket }: Pick<PveRequest, "ticket">,
  token: { readonly id: string; readonly secret: string },
): Readonly<Record<string, string>> {
  if (ticket === undefined) return { authorization: `PVEAPIToken=${token.id}=${token.secret}` };
  return {
    cookie: `PVEAuthCookie=${encodeURIComponent(ticket.ticket)}`,
    csrfpreventiontoken: ticket.csrf,
  };
}

/** At hand, or as it comes: then its size is known all the same. */
export type UploadedFile =
  | { readonly name: string; readonly content: Uint8Array }
  | {
      readonly name: string;
      readonly sizeBytes: number;
      readonly chunks: AsyncIterable<Uint8Array>;
    };

/**
 * - `answered`: a whole HTTP reply. `from` names the endpoint that gave it.
 * - `notSent`: surely nothing of the request reached the server.
 * - `lost`: the request left and no whole reply came. Nobody knows what became of it.
 */
export type PveReply =
  | {
      readonly type: "answered";
      readonly status: number;
      /** Before pve-http-server 5.2 (2025-01) the text of an error is here and nowhere else. */
      readonly reason: string;
      readonly body: string;
      readonly from: string;
      /** The server's own time, as the header Date has it. */
      readonly date?: string;
    }
  | { readonly type: "notSent"; readonly why: NotSent; readonly detail: string }
  | { readonly type: "lost"; readonly detail: string };

export type NotSent = "fenced" | "unreachable" | "certificate";

/** Sends one request. Injected: HTTPS in production, the model itself in the simulation. */
export type Send = (request: PveRequest) => Promise<PveReply>;

/**
 * The form in which parameters travel. The server splits at `;` as well as at `&`, and at every
 * `=`, so all of them are encoded (pve-http-server AnyEvent.pm, decode_urlencoded).
 */
export function encodeParams(params: Params): string {
  return Object.entries(params)
    .map(([key, value]) => `${encode(key)}=${encode(String(value))}`)
    .join("&");
}

/** A request as HTTP has it, without who sends it. */
export interface HttpForm {
  /** With its query, below /api2/json. */
  readonly path: string;
  readonly contentType?: string;
  readonly body: string | Uint8Array | StreamedBody;
}

/** A body that is too large to be held. It can be read once. */
export interface StreamedBody {
  readonly lengthBytes: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** Everything of a body at once, for transports that are not a network. */
export async function wholeBody(body: HttpForm["body"]): Promise<string | Uint8Array> {
  if (typeof body === "string" || body instanceof Uint8Array) return body;
  const chunks: Uint8Array[] = [];
  for await (const chunk of body.chunks) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Parameters go into the query of GET and DELETE: a body on DELETE is refused with 501. */
export function httpForm({ method, path, params = {}, file }: PveRequest): HttpForm {
  const encoded = encodeParams(params);
  if (method === "GET" || method === "DELETE") {
    return { path: encoded === "" ? path : `${path}?${encoded}`, body: "" };
  }
  if (file === undefined) {
    return { path, contentType: "application/x-www-form-urlencoded", body: encoded };
  }
  return {
    path,
    contentType: `multipart/form-data; boundary=${boundary}`,
    body: multipart(params, file),
  };
}

/** Long enough to stand in no disc by chance, and the same each time. */
const boundary = "berth-7c1d0b5e4f3a49c68d2e-part";

/** The file is the last part: the server reads the fields before it (AnyEvent.pm, file_upload). */
function multipart(params: Params, file: UploadedFile): Uint8Array | StreamedBody {
  const fields = Object.entries(params).map(([key, value]) => {
    return `--${boundary}\r\nContent-Disposition: form-data; name="${key}"\r\n\r\n${value}\r\n`;
  });
  const head =
    `--${boundary}\r\nContent-Disposition: form-data; name="filename"; ` +
    `filename="${file.name}"\r\nContent-Type: application/octet-stream\r\n\r\n`;
  const before = Buffer.from(fields.join("") + head);
  const after = Buffer.from(`\r\n--${boundary}--\r\n`);
  if ("content" in file) return Buffer.concat([before, file.content, after]);
  const lengthBytes = before.length + file.sizeBytes + after.length;
  return { lengthBytes, chunks: around(before, file, after) };
}

/** A file that turns out to have another size than was said breaks off: the server drops it. */
async function* around(
  before: Uint8Array,
  { chunks, sizeBytes }: Extract<UploadedFile, { sizeBytes: number }>,
  after: Uint8Array,
): AsyncIterable<Uint8Array> {
  let seenBytes = 0;
  yield before;
  for await (const chunk of chunks) {
    seenBytes += chunk.length;
    if (seenBytes > sizeBytes) break;
    yield chunk;
  }
  if (seenBytes !== sizeBytes) throw new Error(`the file has not the ${sizeBytes} bytes it should`);
  yield after;
}

/** One part of a path, such as a volume id with its slashes. */
export function pathPart(text: string): string {
  return encode(text);
}

/** The node that works on a call, where the path names one. */
export function nodeOf(path: string): string | undefined {
  const part = /^\/nodes\/([^/]+)/.exec(path)?.[1];
  return part === undefined ? undefined : decodeURIComponent(part);
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
