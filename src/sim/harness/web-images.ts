import type { WrittenVMImage } from "../../api/index.ts";
import type { Fetched } from "../proxmox/index.ts";

/** The one file that there is on the web of a history. */
const webFile = {
  url: "https://images.example/small.qcow2",
  sha256: "5f0c2a9e7d1b4836a2c9e05d7b31f8466e9d0c1b2a37485f9e6d5c4b3a291807",
  sizeBytes: 64 * 1024 ** 2,
  virtualBytes: 1024 ** 3,
} as const;

/** What a cluster gets when it fetches something. */
export async function fetchFromWeb(url: string): Promise<Fetched> {
  if (url !== webFile.url) return { kind: "status", status: 404, reason: "Not Found" };
  const { sha256, sizeBytes, virtualBytes } = webFile;
  return { kind: "file", sizeBytes, sha256, mimeType: "application/octet-stream", virtualBytes };
}

/** The image that is brought to a cluster from the web. */
export function webImage(site: string): WrittenVMImage {
  const { url, sha256 } = webFile;
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMImage",
    metadata: { namespace: "default", name: webImageName(site) },
    spec: {
      source: { http: { url, checksum: `sha256:${sha256}` } },
      prefetch: [{ hypervisor: site }],
    },
  };
}

export function webImageName(site: string): string {
  return `small-${site}`;
}
