import { hypervisorKind, vmImageKind } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { answered } from "../../hypervisor/index.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { Web } from "../index.ts";
import type { StageOptions } from "./simulated-proxmox.ts";
import { content, sha256 } from "./small-disk.ts";

/** How the image of a saga comes to the cluster: its nodes fetch it, or Berth puts it there. */
export type Bringing = "fetched" | "put";

/** The image that the machine of a saga is made from. */
const sagaImage = "own";
const at = { namespace: "default", name: sagaImage };

/** A web with one file, as the nodes of the cluster see it. */
export const nodesWeb: Pick<StageOptions, "fetch"> = {
  fetch: () => {
    const virtualBytes = 2 ** 30;
    const mimeType = "application/octet-stream";
    const sizeBytes = content.length;
    return Promise.resolve({ kind: "file", sizeBytes, sha256, mimeType, virtualBytes });
  },
};

/** The same web, as Berth sees it. */
export function webOf(clock: VirtualClock): Web {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    await new Promise<void>((resolve) => void clock.after(1_000, resolve));
    yield content;
  }
  return {
    resolve: () => Promise.resolve(answered(["203.0.113.7"])),
    open: () => {
      const file = { sizeBytes: content.length, chunks: chunks(), close: () => undefined };
      return Promise.resolve(answered(file));
    },
  };
}

export async function declareImage(client: Client, bringing: Bringing): Promise<void> {
  const spec = { imageDownload: bringing === "put" ? "ViaBerth" : "Direct" };
  await client.of(hypervisorKind).patch({ name: "model" }, { merge: { spec } });
  const http = { url: "https://images.example/own.qcow2", checksum: `sha256:${sha256}` };
  await client.of(vmImageKind).create({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: at,
    spec: { source: { http } },
  });
}

export async function deleteImage(client: Client): Promise<void> {
  await client.of(vmImageKind).delete(at);
}

export async function isImageGone(client: Client): Promise<boolean> {
  const { items } = await client.of(vmImageKind).list();
  return !items.some(({ metadata }) => metadata.name === sagaImage);
}
