import type { KnownFile } from "./known-file.ts";
import type { Mark } from "./mark.ts";

/**
 * The machine in our words: what is declared, what is asked for and what is seen have one form, so
 * that comparing them needs no translation. Sizes are whole bytes. Absent means: not said.
 */
export interface Shape {
  readonly name?: string;
  /** The person's notes, without the mark. */
  readonly notes?: string;
  readonly tags?: readonly string[];
  readonly cpu?: CpuShape;
  readonly memory?: MemoryShape;
  readonly machineType?: string;
  readonly firmware?: FirmwareShape;
  readonly guestOs?: { readonly family: GuestFamily; readonly version?: string };
  readonly disks?: readonly DiskShape[];
  readonly cdroms?: readonly CdromShape[];
  readonly networks?: readonly NetworkShape[];
  /** Names of disks, drives and cards, in the order in which the firmware tries them. */
  readonly bootOrder?: readonly string[];
  readonly scsiController?: ScsiController;
  readonly serialConsole?: boolean;
  readonly display?: DisplayShape;
  readonly pci?: readonly PciShape[];
  readonly usb?: readonly UsbShape[];
  readonly guestAgent?: boolean;
  readonly agentOptions?: AgentOptions;
  readonly startOnBoot?: boolean;
  readonly startup?: StartupShape;
  readonly deletionProtection?: boolean;
  readonly cloudInit?: CloudInitShape;
  /** Whether the hypervisor watches over the machine, and how. It has an operation of its own. */
  readonly highAvailability?: HighAvailabilityShape;
}

/** How the machine starts. Its variables and the module's state are volumes of the machine. */
export interface FirmwareShape {
  readonly type?: "BIOS" | "UEFI";
  /** Only what is signed is started, with the usual keys enrolled. */
  readonly secureBoot?: boolean;
  readonly tpm?: "None" | "V1.2" | "V2.0";
  /** Where new ones of these volumes go. Absent: beside the disk that the machine boots from. */
  readonly storage?: string;
  /** Seen: whether the variables of UEFI outlive a restart, in a volume. */
  readonly keepsVariables?: boolean;
}

/** A drive for discs. */
export interface CdromShape {
  readonly name: string;
  readonly bus?: "sata" | "ide" | "scsi";
  /** What lies in it, by its id on the hypervisor: used, never owned. The empty text: nothing. */
  readonly medium?: string;
}

export interface DisplayShape {
  readonly type?: "None" | "Standard" | "Virtio" | "VirtioGL" | "QXL" | "VMware" | "Serial";
  readonly memoryBytes?: number;
}

/** A device of the node, by the hypervisor's own name for it on all nodes. */
export interface PciShape {
  readonly name: string;
  readonly mapping?: string;
  readonly mediatedType?: string;
  readonly pcie?: boolean;
  readonly primaryDisplay?: boolean;
  readonly romBar?: boolean;
}

export interface UsbShape {
  readonly name: string;
  readonly mapping?: string;
  readonly usb3?: boolean;
}

export interface AgentOptions {
  readonly trimAfterClone?: boolean;
  readonly freezeForBackup?: boolean;
}

export interface HighAvailabilityShape {
  readonly enabled?: boolean;
  readonly group?: string;
  readonly maxRestarts?: number;
  readonly maxRelocations?: number;
}

export type GuestFamily = "Linux" | "Windows" | "BSD" | "Solaris" | "Other";

export type ScsiController =
  | "Virtio"
  | "VirtioSingle"
  | "LSILogic"
  | "LSILogicSAS"
  | "BusLogic"
  | "MegaRAID"
  | "PVSCSI";

export interface CpuShape {
  readonly cores?: number;
  readonly sockets?: number;
  readonly model?: string;
  readonly features?: readonly { readonly name: string; readonly isEnabled: boolean }[];
  /** 0: no limit. */
  readonly limitMillicores?: number;
  readonly weight?: number;
  readonly numa?: boolean;
  readonly hostCpus?: string;
}

export interface MemoryShape {
  readonly sizeBytes?: number;
  readonly minimumBytes?: number;
  readonly ballooning?: boolean;
  readonly weight?: number;
  readonly hugePages?: "2Mi" | "1Gi";
}

export type Bus = "virtio" | "scsi" | "sata" | "ide" | "nvme";

/** How a disk is attached. What it holds and how large it is has operations of its own. */
export interface DiskShape {
  readonly name: string;
  readonly bus?: Bus;
  readonly cache?: "None" | "WriteThrough" | "WriteBack" | "DirectSync" | "Unsafe";
  readonly discard?: boolean;
  readonly ioThread?: boolean;
  readonly asyncIo?: "IoUring" | "Native" | "Threads";
  readonly ssd?: boolean;
  readonly readOnly?: boolean;
  readonly backup?: boolean;
  readonly replicate?: boolean;
  readonly serial?: string;
  readonly limits?: DiskLimits;
}

export interface DiskLimits extends DiskRates {
  readonly burst?: DiskRates;
}

export interface DiskRates {
  readonly readBytesPerSecond?: number;
  readonly writeBytesPerSecond?: number;
  readonly readOperationsPerSecond?: number;
  readonly writeOperationsPerSecond?: number;
}

/** A disk to be made. Its options are those of a DiskShape. */
export interface NewDisk extends DiskShape {
  readonly storage: string;
  /** Absent: as large as what fills it. A blank disk needs it. */
  readonly sizeBytes?: number;
  readonly format?: "raw" | "qcow2" | "vmdk";
  readonly fill: Fill;
}

/** What a new disk holds. */
export type Fill =
  | { readonly from: "blank" }
  /** A copy of an image file or of a volume, by its id on the hypervisor. */
  | {
      readonly from: "volume";
      readonly volume: string;
      /** The file that was verified. If another one is there by now, nothing is copied from it. */
      readonly knownFile?: KnownFile;
    }
  /** A full copy of another machine's disk, by name or slot. Absent: the one it boots from. */
  | { readonly from: "machine"; readonly externalId: string; readonly disk?: string };

export interface NetworkShape {
  readonly name: string;
  readonly model?: "virtio" | "e1000" | "e1000e" | "rtl8139" | "vmxnet3";
  /** The bridge, network or port group, by the hypervisor's name for it. */
  readonly network?: string;
  readonly vlan?: number;
  readonly trunks?: readonly number[];
  readonly mtu?: number;
  /** In lower case. */
  readonly macAddress?: string;
  readonly firewall?: boolean;
  readonly connected?: boolean;
  readonly queues?: number;
  readonly bytesPerSecond?: number;
}

export interface StartupShape {
  readonly order?: number;
  readonly delaySeconds?: number;
  readonly stopSeconds?: number;
}

/** What the guest is told at its first boot, as far as the hypervisor itself can tell it. */
export interface CloudInitShape {
  /** The storage for the drive that carries it. */
  readonly storage?: string;
  /** The form in which the guest finds it. */
  readonly datasource?: "NoCloud" | "ConfigDrive";
  readonly userName?: string;
  /** A crypt(3) hash. It is written, never read back. */
  readonly passwordHash?: string;
  readonly sshKeys?: readonly string[];
  readonly upgradePackages?: boolean;
  readonly dnsServers?: readonly string[];
  readonly searchDomains?: readonly string[];
  readonly addresses?: readonly GuestAddress[];
  /** Files that are already on the hypervisor, by their ids there. */
  readonly files?: {
    readonly userData?: string;
    readonly vendorData?: string;
    readonly metaData?: string;
    readonly networkData?: string;
  };
  /**
   * A disc that carries all of it, for what the hypervisor cannot tell itself: a file of ours, made
   * by `putSeed`. It takes the place of the hypervisor's own drive.
   */
  readonly seed?: SeedShape;
}

/** `Ejected`: the drive stays, and what it held does not lie in it any more. */
export type SeedShape =
  | { readonly state: "Inserted"; readonly storage: string; readonly fileName: string }
  | { readonly state: "Ejected" };

/** Addresses of one card. `address` is "dhcp", "auto", or an address with its prefix. */
export interface GuestAddress {
  readonly network: string;
  readonly ipv4?: { readonly address: string; readonly gateway?: string };
  readonly ipv6?: { readonly address: string; readonly gateway?: string };
}

export type Power = "Running" | "Stopped" | "Paused" | "Suspended" | "Unknown";

/** A machine as it was seen, at one moment and under one version. */
export interface Machine {
  readonly externalId: string;
  readonly node: string;
  /**
   * Changes with every change of the machine's configuration. A change says under which version it
   * was decided, and is refused if the machine has another by then.
   */
  readonly version: string;
  readonly power: Power;
  readonly isTemplate: boolean;
  /** What the hypervisor itself says of the machine's identity: its UUID. */
  readonly identity?: string;
  readonly mark?: Mark;
  /** As it will be after its next start; `pending` says what of it is not so yet. */
  readonly shape: Shape;
  readonly disks: readonly SeenDisk[];
  readonly networks: readonly SeenNetwork[];
  readonly cloudInitDrive?: { readonly slot: string; readonly volume: string };
  readonly lock?: Lock;
  /** Fields of the shape whose new value waits for the next start of the machine. */
  readonly pending: readonly string[];
  /** Everything that the machine refers to, in its present and pending form. */
  readonly volumes: readonly SeenVolume[];
  readonly hasSnapshots: boolean;
  /** Of a machine that runs. */
  readonly uptimeSeconds?: number;
  /** Present where high availability watches over the machine: then power is asked for there. */
  readonly highAvailability?: SeenHighAvailability;
}

/** Requests to a machine that is watched over are queued: the power follows some time later. */
export interface SeenHighAvailability {
  /** The power that was asked for. `Ignored`: it is left to people for now. */
  readonly requested: "Running" | "Stopped" | "Ignored";
  /** The hypervisor's own word for what it is doing. */
  readonly detail: string;
  /** Present where it has given up and follows no request: what a person can do. */
  readonly remedy?: string;
}

/** A disk. Without a name it is one that no spec ever named. */
export interface SeenDisk {
  readonly name?: string;
  /** The driver's own word for where it sits. */
  readonly slot: string;
  readonly volume: string;
  readonly storage: string;
  readonly sizeBytes: number;
  readonly bus: Bus;
}

export interface SeenNetwork {
  readonly name?: string;
  readonly slot: string;
  readonly macAddress?: string;
}

export interface SeenVolume {
  readonly id: string;
  readonly role: "Disk" | "Firmware" | "TPM" | "CloudInit" | "State";
  readonly storage: string;
  readonly state: "Attached" | "Detached";
  readonly disk?: string;
  /** The driver's own word for where firmware variables or the state of a TPM are. */
  readonly slot?: string;
  readonly sizeBytes?: number;
  /** Whether the volume bears the machine's own id: only then does it go with the machine. */
  readonly isOwn: boolean;
}

/** Why nothing can be done to the machine now. */
export interface Lock {
  readonly kind: LockKind;
  /** The hypervisor's word for it. */
  readonly detail: string;
  /** Dead: the work that set it was ours and has ended. Only such a lock may ever be broken. */
  readonly state: "Held" | "Dead" | "Unknown";
  /** The work of ours that set it, where that is known. */
  readonly task?: string;
  /** When that began; and when and how it ended: on the hypervisor's own clock, in its words. */
  readonly sinceMs?: number;
  readonly endedMs?: number;
  /** How far that clock is ahead of Berth's, within seconds. */
  readonly aheadMs?: number;
  readonly end?: string;
  /** Somebody else's work that holds it, or that ended badly and left it. It proves nothing. */
  readonly others?: LockWork;
  /** How a person clears it. */
  readonly remedy?: string;
}

/** Work on a machine, as the hypervisor lists it. */
export interface LockWork {
  readonly task: string;
  readonly user: string;
  /** On the hypervisor's own clock. */
  readonly sinceMs: number;
  readonly endedMs?: number;
  /** How far that clock is ahead of Berth's, within seconds. */
  readonly aheadMs?: number;
  readonly end?: string;
}

export type LockKind =
  | "Create"
  | "Clone"
  | "Backup"
  | "Restore"
  | "Migrate"
  | "Snapshot"
  | "Suspend"
  | "Destroy"
  | "Other";
