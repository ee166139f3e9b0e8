import type { VMImage } from "../../api/index.ts";
import type { Answer, Begun, Failure, Fence, PutImage } from "../../hypervisor/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { fileNameOf, useOf, type Target } from "./plan.ts";
import { addressRule, type Web, type WebFile } from "./web.ts";

/** A file that passes through here on its way. Nothing of it is kept: it is begun anew. */
export interface Upload {
  readonly target: Target;
  readonly totalBytes: number;
  doneBytes: number;
  /** When it was last written down how far it is. */
  toldMs: number;
  begun?: Begun;
}

/** The file as its server has it, if it is the one that is meant. */
export async function openSource(
  web: Web,
  image: VMImage,
  { spec }: Connection,
): Promise<Answer<WebFile>> {
  const { url = "" } = image.spec.source.http ?? {};
  const opened = await web.open(url, addressRule(spec.privateImageNetworks));
  if (!opened.ok) return opened;
  const { size } = image.spec;
  if (size === undefined || Number(size) === opened.value.sizeBytes) return opened;
  opened.value.close();
  return { ok: false, failure: otherSize(url, Number(size), opened.value.sizeBytes) };
}

/** Begins to send it. The hypervisor checks the sum; how far it is stands in the Upload. */
export function startUpload(
  file: WebFile,
  { image, connection, target, fence }: Sending,
  nowMs: number,
): Upload {
  const { node, storage } = target;
  const { sizeBytes } = file;
  const upload: Upload = { target, totalBytes: sizeBytes, doneBytes: 0, toldMs: nowMs };
  const operation: PutImage = {
    kind: "putImage",
    use: useOf(image),
    node,
    storage,
    fileName: fileNameOf(image),
    checksum: image.spec.source.http?.checksum ?? "",
    sizeBytes,
    chunks: counted(file.chunks, upload),
  };
  const ended = (begun: Begun): void => {
    file.close();
    upload.begun = begun;
  };
  connection.driver.begin(operation, fence).then(ended, (error: unknown) => {
    const message = `The upload of ${operation.fileName} broke off: ${String(error)}`;
    ended({ outcome: "unknown", failure: { category: "NetworkError", message } });
  });
  return upload;
}

export interface Sending {
  readonly image: VMImage;
  readonly connection: Connection;
  readonly target: Target;
  readonly fence: Fence;
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  upload: Upload,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    upload.doneBytes += chunk.length;
    yield chunk;
  }
}

function otherSize(url: string, wanted: number, found: number): Failure {
  return {
    category: "ConfigurationError",
    message: `The file at ${url} has ${found} bytes, and spec.size says ${wanted}.`,
    remedy: "Correct spec.size or the URL. Nothing was brought.",
  };
}
