/**
 * Splits a JSON pointer (RFC 6901) into its decoded tokens; undefined where it is none. The whole
 * document is the empty list.
 */
export function parseJsonPointer(pointer: string): string[] | undefined {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return undefined;
  return pointer.slice(1).split("/").map(decodeToken);
}

/** The pointer of these tokens. */
export function formatJsonPointer(tokens: readonly string[]): string {
  return tokens.map((token) => `/${encodeToken(token)}`).join("");
}

function decodeToken(token: string): string {
  // The order matters: "~01" is "~1", not "/".
  return token.replaceAll("~1", "/").replaceAll("~0", "~");
}

function encodeToken(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}
