import { createHash } from "node:crypto";
import { get as getPlain, type IncomingMessage } from "node:http";
import { get as getSecure } from "node:https";
import { type Fetched, qcow2Size } from "./fetcher.ts";

/** The most that a simulated download takes in. */
const bytesMax = 4 * 1024 ** 3;
const headerBytes = 64;

/** Gets a URL for real, and keeps only what the model needs to know of the file. */
export function fetchUrl(url: string): Promise<Fetched> {
  return new Promise((resolve) => {
    const get = url.startsWith("https:") ? getSecure : getPlain;
    const request = get(url, (response) => {
      read(response).then(resolve, () => resolve({ kind: "unreachable" }));
    });
    request.on("error", () => resolve({ kind: "unreachable" }));
  });
}

async function read(response: IncomingMessage): Promise<Fetched> {
  const status = response.statusCode ?? 0;
  if (status !== 200) {
    response.resume();
    return { kind: "status", status, reason: response.statusMessage ?? "" };
  }
  const hash = createHash("sha256");
  let sizeBytes = 0;
  let header = Buffer.alloc(0);
  for await (const chunk of response) {
    const piece = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    sizeBytes += piece.length;
    if (sizeBytes > bytesMax) return { kind: "unreachable" };
    if (header.length < headerBytes)
      header = Buffer.concat([header, piece]).subarray(0, headerBytes);
    hash.update(piece);
  }
  const virtualBytes = qcow2Size(header);
  return {
    kind: "file",
    sizeBytes,
    sha256: hash.digest("hex"),
    mimeType: response.headers["content-type"] ?? "application/octet-stream",
    ...(virtualBytes === undefined ? {} : { virtualBytes }),
  };
}
