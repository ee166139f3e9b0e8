import { unauthorized } from "../../kernel/status.ts";
import type { WireRequest } from "../../kernel/wire.ts";
import type { User } from "../contract.ts";

/** Recognises one sort of credentials: users' tokens now, service accounts' later. */
export interface Authenticator {
  /** Undefined: not of this sort, or not valid. The next authenticator is asked. */
  authenticate(token: string): User | undefined;
}

/** Longer than any token that we or a service account would carry. */
const tokenCharsMax = 4_096;

const wrongToken =
  "Unauthorized: the token is not valid here. It was revoked, or belongs to another Berth; " +
  "an admin can make a new one with `berth user add`.";

/**
 * Who sent this. Throws 401 without saying more than that the token is unknown: which part was
 * wrong is nobody's business.
 */
export function authenticate(
  authenticators: readonly Authenticator[],
  headers: WireRequest["headers"],
): User {
  const header = headers["authorization"];
  if (header === undefined) throw unauthorized();
  const token = bearerToken(header);
  if (token === undefined) throw unauthorized("Unauthorized: only bearer tokens are accepted.");
  for (const authenticator of authenticators) {
    const user = authenticator.authenticate(token);
    if (user !== undefined) return user;
  }
  throw unauthorized(wrongToken);
}

function bearerToken(header: string): string | undefined {
  if (header.length > tokenCharsMax || header.slice(0, 7).toLowerCase() !== "bearer ") {
    return undefined;
  }
  return header.slice(7).trim() || undefined;
}
