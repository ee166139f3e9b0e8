/** Parameters of a call. They go into the query of GET and DELETE and into the body otherwise. */
export type Params = Readonly<Record<string, string | number>>;

/** One call of the Proxmox VE API, freed from its transport. */
export interface PveRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Below /api2/json, each part percent-encoded: "/nodes/pve1/qemu/100/config". */
  readonly path: string;
  readonly params?: Params;
  /**
   * Present on every call that changes something. The transport asks it in the tick in which the
   * bytes leave, on a connection that stands already; if it says no, nothing is sent.
   */
  readonly mayWrite?: () => boolean;
}

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
