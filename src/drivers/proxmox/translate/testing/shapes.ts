import fc from "fast-check";
import type {
  CdromShape,
  DiskShape,
  NetworkShape,
  PciShape,
  Shape,
  UsbShape,
} from "../../../../hypervisor/index.ts";

/** Leaves out what is undefined: absent and undefined are two things. */
function some<T extends object>(members: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  // cast: every member is optional in the types that this is used for.
  return fc.record(members, { requiredKeys: [], noNullPrototype: true }) as fc.Arbitrary<T>;
}

const mebibytes = (min: number, max: number): fc.Arbitrary<number> => {
  return fc.integer({ min, max }).map((count) => count * 1024 ** 2);
};
const bytesPerSecond = fc.integer({ min: 1024, max: 4 * 1024 ** 3 });
const perSecond = fc.integer({ min: 10, max: 1_000_000 });
const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/);
const bridge = fc.constantFrom("vmbr0", "vmbr1", "vnet7");

const rates = {
  readBytesPerSecond: bytesPerSecond,
  writeBytesPerSecond: bytesPerSecond,
  readOperationsPerSecond: perSecond,
  writeOperationsPerSecond: perSecond,
};

const diskOptions = some<Omit<DiskShape, "name">>({
  bus: fc.constantFrom("scsi", "virtio", "sata"),
  cache: fc.constantFrom("None", "WriteThrough", "WriteBack", "DirectSync", "Unsafe"),
  discard: fc.boolean(),
  ioThread: fc.boolean(),
  asyncIo: fc.constantFrom("IoUring", "Native", "Threads"),
  ssd: fc.boolean(),
  readOnly: fc.boolean(),
  backup: fc.boolean(),
  replicate: fc.boolean(),
  serial: word,
  limits: some<NonNullable<DiskShape["limits"]>>({ ...rates, burst: some(rates) }),
}).map(({ limits, ...rest }) => (isEmpty(limits) ? rest : { ...rest, limits }));

function isEmpty(limits: DiskShape["limits"]): limits is undefined {
  if (limits === undefined) return true;
  const { burst, ...own } = limits;
  return Object.keys(own).length === 0 || (burst !== undefined && Object.keys(burst).length === 0);
}

const networkOptions = some<Omit<NetworkShape, "name">>({
  model: fc.constantFrom("virtio", "e1000", "e1000e", "rtl8139", "vmxnet3"),
  network: bridge,
  vlan: fc.integer({ min: 1, max: 4094 }),
  trunks: fc.uniqueArray(fc.integer({ min: 1, max: 4094 }), { minLength: 1, maxLength: 4 }),
  mtu: fc.integer({ min: 576, max: 9000 }),
  macAddress: fc
    .array(fc.integer({ min: 0, max: 255 }), { minLength: 5, maxLength: 5 })
    .map((bytes) => ["52", ...bytes.map((byte) => byte.toString(16).padStart(2, "0"))].join(":")),
  firewall: fc.boolean(),
  connected: fc.boolean(),
  queues: fc.integer({ min: 1, max: 64 }),
  bytesPerSecond,
});

function named<T extends object>(
  options: fc.Arbitrary<T>,
  prefix: string,
  maxLength = 4,
): fc.Arbitrary<(T & { name: string })[]> {
  return fc
    .array(options, { maxLength })
    .map((items) => items.map((item, index) => ({ ...item, name: `${prefix}${index}` })));
}

const key = "AAAAC3NzaC1lZDI1NTE5AAAAIHJ3b3JkcyBhcmUgbm90IGEga2V5IGJ1dCB0aGlzIGlzIG9u";
const keys = [`ssh-ed25519 ${key} ada@example`, `ssh-ed25519 ${key}`];

/** Shapes as a spec can say them. Some do not fit, and then `fit` says so. */
export const anyShape: fc.Arbitrary<Shape> = some<Shape>({
  name: word,
  notes: fc.string(),
  tags: fc.uniqueArray(word, { maxLength: 4 }),
  cpu: some<NonNullable<Shape["cpu"]>>({
    cores: fc.integer({ min: 1, max: 64 }),
    sockets: fc.integer({ min: 1, max: 4 }),
    model: fc.constantFrom("host", "x86-64-v2-AES"),
    features: fc
      .uniqueArray(fc.constantFrom("aes", "pcid", "pdpe1gb"))
      .map((names) => names.map((name) => ({ name, isEnabled: name !== "pcid" }))),
    limitMillicores: fc.integer({ min: 0, max: 64_000 }),
    weight: fc.integer({ min: 1, max: 10_000 }),
    numa: fc.boolean(),
  }),
  memory: some<NonNullable<Shape["memory"]>>({
    // The least is never more than the whole, which is 512 MiB where nothing is said.
    sizeBytes: mebibytes(512, 1 << 20),
    minimumBytes: mebibytes(16, 512),
    ballooning: fc.constant(true),
    weight: fc.integer({ min: 0, max: 50_000 }),
  }),
  machineType: fc.constantFrom("q35", "pc-i440fx-9.0"),
  guestOs: fc.constantFrom<NonNullable<Shape["guestOs"]>>(
    { family: "Linux" },
    { family: "BSD" },
    { family: "Windows", version: "2022" },
    { family: "Windows", version: "10" },
  ),
  firmware: some<NonNullable<Shape["firmware"]>>({
    type: fc.constantFrom("BIOS", "UEFI"),
    secureBoot: fc.boolean(),
    tpm: fc.constantFrom("None", "V1.2", "V2.0"),
  }).map((firmware) => ({ ...firmware, storage: "local-zfs" })),
  disks: named(diskOptions, "disk"),
  cdroms: named(
    some<Omit<CdromShape, "name">>({
      bus: fc.constantFrom("sata", "ide", "scsi"),
      medium: fc.constant(""),
    }),
    "disc",
    2,
  ),
  display: some<NonNullable<Shape["display"]>>({
    type: fc.constantFrom("None", "Standard", "Virtio", "VirtioGL", "QXL", "VMware", "Serial"),
    memoryBytes: mebibytes(4, 512),
  }),
  agentOptions: some<NonNullable<Shape["agentOptions"]>>({
    trimAfterClone: fc.boolean(),
    freezeForBackup: fc.boolean(),
  }),
  networks: named(networkOptions, "lan"),
  scsiController: fc.constantFrom("Virtio", "VirtioSingle", "LSILogic", "MegaRAID", "PVSCSI"),
  serialConsole: fc.boolean(),
  guestAgent: fc.boolean(),
  startOnBoot: fc.boolean(),
  startup: fc.record(
    { order: fc.nat(100), delaySeconds: fc.nat(600), stopSeconds: fc.nat(600) },
    { noNullPrototype: true },
  ),
  deletionProtection: fc.boolean(),
  cloudInit: some<NonNullable<Shape["cloudInit"]>>({
    userName: word,
    datasource: fc.constantFrom("NoCloud", "ConfigDrive"),
    sshKeys: fc.uniqueArray(fc.constantFrom(...keys), { minLength: 1 }),
    upgradePackages: fc.boolean(),
    dnsServers: fc.constantFrom(["10.0.0.1"], ["10.0.0.1", "2001:db8::1"]),
    searchDomains: fc.constantFrom(["example.org"], ["a.example", "b.example"]),
  }),
});

/** Devices of nodes, by mappings of which nobody asks whether they exist. */
export const anyDevices: fc.Arbitrary<Pick<Shape, "pci" | "usb">> = some<
  Pick<Shape, "pci" | "usb">
>({
  pci: named(
    mapped<Omit<PciShape, "name" | "mapping">>({
      mediatedType: fc.constantFrom("nvidia-256", "i915-GVTg_V5_4"),
      pcie: fc.boolean(),
      primaryDisplay: fc.boolean(),
      romBar: fc.boolean(),
    }),
    "gpu",
    2,
  ),
  usb: named(mapped<Omit<UsbShape, "name" | "mapping">>({ usb3: fc.boolean() }), "key", 2),
});

function mapped<T extends object>(members: {
  [K in keyof T]: fc.Arbitrary<T[K]>;
}): fc.Arbitrary<T & { mapping: string }> {
  const id = fc.stringMatching(/^[a-z][a-z0-9_-]{1,8}$/);
  return fc.tuple(some<T>(members), id).map(([options, mapping]) => ({ ...options, mapping }));
}
