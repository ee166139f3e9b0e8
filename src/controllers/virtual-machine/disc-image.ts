/** A file on a disc: names have no directories here. */
export interface DiscFile {
  readonly name: string;
  readonly content: Uint8Array;
}

const sectorBytes = 2048;
/** Where the parts of the disc lie, in sectors. The first sixteen belong to nobody. */
const places = {
  primary: 16,
  supplementary: 17,
  terminator: 18,
  primaryPaths: { little: 19, big: 20 },
  supplementaryPaths: { little: 21, big: 22 },
  primaryRoot: 23,
  supplementaryRoot: 24,
  files: 25,
} as const;

/**
 * A disc of a few small files in one directory, as ISO 9660 with Joliet names: what guests of every
 * kind can read. The same files give the same bytes. Pure.
 */
export function discImage(label: string, files: readonly DiscFile[]): Uint8Array {
  const placed = placeFiles(files);
  const sectors = placed.reduce<number>(
    (end, { content }) => end + sectorsOf(content.length),
    places.files,
  );
  const image = Buffer.alloc(sectors * sectorBytes);
  const put = (sector: number, bytes: Uint8Array): void => image.set(bytes, sector * sectorBytes);
  put(places.primary, descriptor(plain, label, sectors));
  put(places.supplementary, descriptor(joliet, label, sectors));
  put(places.terminator, Buffer.from("\u00ffCD001\u0001", "latin1"));
  for (const volume of [plain, joliet]) {
    put(volume.paths.little, pathTable(volume.root, "little"));
    put(volume.paths.big, pathTable(volume.root, "big"));
    put(volume.root, directory(volume, placed));
  }
  for (const { sector, content } of placed) put(sector, content);
  return image;
}

/** One of the two trees over the same files: their names differ. */
interface Volume {
  readonly type: number;
  readonly root: number;
  readonly paths: { readonly little: number; readonly big: number };
  readonly nameOf: (name: string) => Buffer;
  readonly textOf: (text: string, bytes: number) => Buffer;
}

const plain: Volume = {
  type: 1,
  root: places.primaryRoot,
  paths: places.primaryPaths,
  nameOf: (name) => Buffer.from(`${name.toUpperCase()}.;1`, "latin1"),
  textOf: (text, bytes) => Buffer.from(text.slice(0, bytes).padEnd(bytes), "latin1"),
};

const joliet: Volume = {
  type: 2,
  root: places.supplementaryRoot,
  paths: places.supplementaryPaths,
  nameOf: (name) => wide(name),
  textOf: (text, bytes) => wide(text.slice(0, bytes / 2).padEnd(bytes / 2)),
};

/** UCS-2, the high byte first. */
function wide(text: string): Buffer {
  return Buffer.from(text, "utf16le").swap16();
}

interface PlacedFile extends DiscFile {
  readonly sector: number;
}

function placeFiles(files: readonly DiscFile[]): PlacedFile[] {
  let sector: number = places.files;
  return files
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map((file) => {
      const placed = { ...file, sector };
      sector += sectorsOf(file.content.length);
      return placed;
    });
}

function sectorsOf(bytes: number): number {
  return Math.ceil(bytes / sectorBytes);
}

/** ECMA-119, 8.4 and 8.5. Offsets are one less than in the standard, which counts from 1. */
function descriptor(volume: Volume, label: string, sectors: number): Buffer {
  const bytes = Buffer.alloc(sectorBytes);
  bytes.writeUInt8(volume.type, 0);
  bytes.write("CD001\u0001", 1, "latin1");
  volume.textOf("", 32).copy(bytes, 8);
  volume.textOf(label, 32).copy(bytes, 40);
  both32(bytes, 80, sectors);
  // Joliet, level 3: ISO/IEC 2022 escape.
  if (volume === joliet) bytes.write("%/E", 88, "latin1");
  both16(bytes, 120, 1);
  both16(bytes, 124, 1);
  both16(bytes, 128, sectorBytes);
  both32(bytes, 132, pathTable(volume.root, "little").length);
  bytes.writeUInt32LE(volume.paths.little, 140);
  bytes.writeUInt32BE(volume.paths.big, 148);
  record(self, { sector: volume.root, length: sectorBytes, isDirectory: true }).copy(bytes, 156);
  volume.textOf("", 624).copy(bytes, 190);
  for (const at of [813, 830, 847, 864]) bytes.write("0".repeat(16), at, "latin1");
  bytes.writeUInt8(1, 881);
  return bytes;
}

const self = Buffer.from([0]);
const parent = Buffer.from([1]);

function directory({ root, nameOf }: Volume, files: readonly PlacedFile[]): Buffer {
  const here = { sector: root, length: sectorBytes, isDirectory: true };
  return Buffer.concat([
    record(self, here),
    record(parent, here),
    ...files.map(({ name, sector, content }) => {
      return record(nameOf(name), { sector, length: content.length, isDirectory: false });
    }),
  ]);
}

interface Extent {
  readonly sector: number;
  readonly length: number;
  readonly isDirectory: boolean;
}

/** ECMA-119, 9.1. Its length is even. */
function record(name: Buffer, { sector, length, isDirectory }: Extent): Buffer {
  const bytes = Buffer.alloc(33 + name.length + ((name.length + 1) % 2));
  bytes.writeUInt8(bytes.length, 0);
  both32(bytes, 2, sector);
  both32(bytes, 10, length);
  // The first day of 2000: the same content gives the same disc.
  bytes.set([100, 1, 1], 18);
  bytes.writeUInt8(isDirectory ? 2 : 0, 25);
  both16(bytes, 28, 1);
  bytes.writeUInt8(name.length, 32);
  name.copy(bytes, 33);
  return bytes;
}

function pathTable(root: number, order: "little" | "big"): Buffer {
  const bytes = Buffer.alloc(10);
  bytes.writeUInt8(1, 0);
  if (order === "little") {
    bytes.writeUInt32LE(root, 2);
    bytes.writeUInt16LE(1, 6);
  } else {
    bytes.writeUInt32BE(root, 2);
    bytes.writeUInt16BE(1, 6);
  }
  return bytes;
}

function both32(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt32LE(value, at);
  bytes.writeUInt32BE(value, at + 4);
}

function both16(bytes: Buffer, at: number, value: number): void {
  bytes.writeUInt16LE(value, at);
  bytes.writeUInt16BE(value, at + 2);
}
