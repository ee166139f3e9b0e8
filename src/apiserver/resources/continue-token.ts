import { isJsonObject } from "../../kernel/json.ts";
import { badRequest } from "../../kernel/status.ts";

/** Where a list goes on, and at which revision. The form is Kubernetes' own. */
export interface ContinueToken {
  /** -1: at the newest one, because the list's own is no longer known. */
  readonly revision: number;
  /** The id, without the list's prefix, after which to go on. */
  readonly after: string;
}

const version = "meta.k8s.io/v1";
const tokenBytesMax = 4096;

export function encodeContinue({ revision, after }: ContinueToken): string {
  const token = JSON.stringify({ v: version, rv: revision, start: `${after}\0` });
  return Buffer.from(token).toString("base64url");
}

/** Throws 400 for what no server of ours has made. */
export function decodeContinue(text: string): ContinueToken {
  const token = parseToken(text);
  if (!isJsonObject(token)) throw invalidToken("continue key is not valid");
  const { v, rv, start } = token;
  if (v !== version) {
    const known = typeof v === "string" ? v : "";
    throw invalidToken(
      `continue key is not valid: server does not recognize this encoded version ${known}`,
    );
  }
  if (!Number.isSafeInteger(rv) || rv === 0) {
    throw invalidToken(
      `continue key is not valid: incorrect encoded start resourceVersion (version ${version})`,
    );
  }
  if (typeof start !== "string" || start === "") {
    throw invalidToken(`continue key is not valid: encoded start key empty (version ${version})`);
  }
  return { revision: Number(rv), after: start.replace(/\0$/, "") };
}

function parseToken(text: string): unknown {
  if (text.length > tokenBytesMax) return undefined;
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    // Not JSON, so not ours; the caller refuses it.
    return undefined;
  }
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: ${why}`);
}
