import { isJsonObject } from "../../../kernel/json.ts";
import { asText } from "./rows.ts";
import type { NotSent, Params, PveReply, PveRequest, Send } from "./wire.ts";

/**
 * What a call came to, once the transport's and the server's ways of saying it are one.
 *
 * - `error`: the API refused. Nothing was done, as far as the API can be believed.
 * - `lost`: it may have been done.
 */
export type PveResult =
  | { readonly type: "data"; readonly data: unknown; readonly from: string }
  | PveError
  | { readonly type: "lost"; readonly detail: string }
  | { readonly type: "notSent"; readonly why: NotSent; readonly detail: string };

export interface PveError {
  readonly type: "error";
  readonly status: number;
  /** The message, without the newline that Perl puts at its end. */
  readonly text: string;
  /** What is wrong with single parameters. */
  readonly fields: Readonly<Record<string, string>>;
}

/** The API as the driver uses it. */
export class PveApi {
  readonly #send: Send;

  constructor(send: Send) {
    this.#send = send;
  }

  async get(path: string, params: Params = {}): Promise<PveResult> {
    return settle(await this.#send({ method: "GET", path, params }));
  }

  async write(
    method: "POST" | "PUT" | "DELETE",
    request: Omit<PveRequest, "method" | "mayWrite">,
    mayWrite: () => boolean,
  ): Promise<PveResult> {
    const result = settle(await this.#send({ ...request, method, mayWrite }));
    return result.type === "error" ? withoutSecrets(result, request.params ?? {}) : result;
  }
}

/** Parameters that nobody but the server may ever read. */
const secretParams: readonly string[] = ["cipassword", "password"];

/** A server repeats what it does not like; what was secret is cut out of its words. */
function withoutSecrets(error: PveError, params: Params): PveError {
  const secrets = secretParams
    .map((key) => String(params[key] ?? ""))
    .filter((text) => text !== "");
  const cut = (text: string): string => {
    return secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text);
  };
  const fields = Object.entries(error.fields).map(([key, text]) => [key, cut(text)] as const);
  return { ...error, text: cut(error.text), fields: Object.fromEntries(fields) };
}

/**
 * AnyEvent::HTTP's own codes, which pveproxy passes through when the owner node did not answer it:
 * 596 while sending or waiting for the head (30 s), 597 in the body, 599 anything else. The
 * operation may go on. 595 is a connection that never stood: surely nothing was done.
 */
const lostStatuses = new Set([596, 597, 599]);

function settle(reply: PveReply): PveResult {
  if (reply.type !== "answered") return reply;
  const { status, reason, from } = reply;
  if (lostStatuses.has(status)) return { type: "lost", detail: `${status} ${reason} (${from})` };
  const body = parseBody(reply.body);
  if (status >= 200 && status < 300) {
    if (isJsonObject(body) && "data" in body) return { type: "data", data: body["data"], from };
    return { type: "lost", detail: `${from} answered ${status} with something that is no JSON` };
  }
  return { type: "error", status, ...errorOf(body, reason) };
}

function errorOf(body: unknown, reason: string): Pick<PveError, "text" | "fields"> {
  if (!isJsonObject(body)) return { text: reason.trim(), fields: {} };
  const { message, errors } = body;
  const text = typeof message === "string" && message.trim() !== "" ? message : reason;
  const fields = isJsonObject(errors)
    ? Object.entries(errors).map(([key, value]) => [key, (asText(value) ?? "").trim()] as const)
    : [];
  return { text: text.trim(), fields: Object.fromEntries(fields) };
}

function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Errors of the HTTP server itself are plain text; the reason phrase says the same.
    return undefined;
  }
}
