import type { Quirks } from "../release.ts";
import type { ClusterState, TokenState } from "../state.ts";
import type { Caller, Rights } from "./rights.ts";

export type Authentication =
  | { readonly kind: "caller"; readonly caller: Caller }
  | { readonly kind: "nobody" }
  /** Refused, in the words of the reply. */
  | { readonly kind: "refused"; readonly reason: string };

export interface Credentials {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly nowMs: number;
}

/** Who sent this: by ticket, which wins, or by API token. */
export function authenticate(
  { state, rights, quirks }: { state: ClusterState; rights: Rights; quirks: Quirks },
  credentials: Credentials,
): Authentication {
  const cookie = /(?:^|;\s*)PVEAuthCookie=([^;]*)/.exec(credentials.headers["cookie"] ?? "")?.[1];
  if (cookie !== undefined) return byTicket({ state, quirks }, cookie, credentials);
  const header = /^PVEAPIToken=(.*)$/.exec(credentials.headers["authorization"] ?? "")?.[1];
  if (header === undefined) return { kind: "nobody" };
  const outcome = byToken(rights, header, credentials.nowMs);
  if (typeof outcome !== "string") return { kind: "caller", caller: outcome };
  const reason = quirks.tellsAuthFailure ? outcome : "Authentication failed!";
  return { kind: "refused", reason };
}

function byTicket(
  { state, quirks }: { state: ClusterState; quirks: Quirks },
  cookie: string,
  { method, headers, nowMs }: Credentials,
): Authentication {
  const text = decodeCookie(cookie);
  const found = state.tickets.find(({ ticket, expiresMs }) => ticket === text && expiresMs > nowMs);
  if (found === undefined) {
    const reason = "permission denied - invalid PVE ticket";
    return { kind: "refused", reason: quirks.tellsAuthFailure ? reason : "Authentication failed!" };
  }
  if (method !== "GET" && headers["csrfpreventiontoken"] !== found.csrf) {
    return { kind: "refused", reason: "Permission denied - invalid csrf token" };
  }
  return { kind: "caller", caller: { id: found.userid, userid: found.userid } };
}

/** The caller, or what is wrong with the token. */
function byToken(rights: Rights, header: string, nowMs: number): Caller | string {
  const parts = /^([^!]+)!([^=]+)=(.*)$/.exec(header);
  if (parts === null) return "no tokenid specified";
  const [, userid = "", tokenid = "", secret = ""] = parts;
  const user = rights.user(userid);
  if (user === undefined) return `no such user ('${userid}')`;
  const token = rights.token(userid, tokenid);
  if (token === undefined) return `no such token '${tokenid}' for user '${userid}'`;
  if (!user.isEnabled) return "user account disabled";
  if (hasExpired(token, nowMs)) return "token expired";
  if (token.secret !== secret) return "invalid token value!";
  return { id: `${userid}!${tokenid}`, userid, token: tokenid };
}

function hasExpired({ expire }: TokenState, nowMs: number): boolean {
  return expire > 0 && expire * 1000 < nowMs;
}

function decodeCookie(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
