/** The name of a seed's disc: whose it is, and by its content's SHA-256 which one. */
export function seedFileName(identity: string, sha256: string): string {
  return `berth-seed-${identity}-${sha256.slice(0, 16)}.iso`;
}

/** Whether a file is the seed of this identity: only such a one is ever removed. */
export function isSeedOf(identity: string, fileName: string): boolean {
  return fileName.startsWith(`berth-seed-${identity}-`) && fileName.endsWith(".iso");
}

/** Whether a file has a name that only Berth gives: a disc of a machine, or an image it brought. */
export function isBerthFile(fileName: string): boolean {
  return seedIdentity(fileName) !== undefined || imageChecksum(fileName) !== undefined;
}

/** The machine whose first boot a disc was made for. */
export function seedIdentity(fileName: string): string | undefined {
  return /^berth-seed-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-[0-9a-f]{16}\.iso$/.exec(
    fileName,
  )?.[1];
}

/** The checksum of an image that Berth brought, as its name carries it. */
export function imageChecksum(fileName: string): string | undefined {
  const [, algorithm, digest] = /^berth-(sha256|sha512)-([0-9a-f]{64})\.\w+$/.exec(fileName) ?? [];
  return algorithm === undefined ? undefined : `${algorithm}:${digest ?? ""}`;
}
