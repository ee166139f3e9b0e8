import type { VMImage } from "../../api/index.ts";
import type { Answer, Failure, KnownFile, PutImage } from "../../hypervisor/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { fileNameOf, useOf } from "./plan.ts";
import { addressRule, type Web, type WebFile } from "./web.ts";
import type { CopyWork } from "./copies.ts";
import { guard } from "../../kernel/guard.ts";

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
  const isMeant = size === undefined || Number(size) === opened.value.sizeBytes;
  if (guard("upload-size-as-declared", isMeant)) return opened;
  opened.value.close();
  return { ok: false, failure: otherSize(url, Number(size), opened.value.sizeBytes) };
}

export interface Uploading {
  readonly work: CopyWork;
  readonly file: WebFile;
  /** How much of it was sent. */
  readonly sent: { doneBytes: number };
  /** The part of it that is there, and is ours. */
  readonly part?: KnownFile | undefined;
}

/** The operation that sends a file. The hypervisor checks the sum. */
export function uploadOf(image: VMImage, { work, file, sent, part }: Uploading): PutImage {
  return {
    kind: "putImage",
    use: useOf(image),
    node: work.node,
    storage: work.place.storage,
    fileName: fileNameOf(image),
    checksum: image.spec.source.http?.checksum ?? "",
    sizeBytes: file.sizeBytes,
    chunks: counted(file, sent),
    ...(part === undefined ? {} : { knownFile: part }),
  };
}

async function* counted(file: WebFile, sent: Uploading["sent"]): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of file.chunks) {
      sent.doneBytes += chunk.length;
      yield chunk;
    }
  } finally {
    file.close();
  }
}

function otherSize(url: string, wanted: number, found: number): Failure {
  return {
    category: "ConfigurationError",
    message: `The file at ${url} has ${found} bytes, and spec.size says ${wanted}.`,
    remedy: "Correct spec.size or the URL. Nothing was brought.",
  };
}
