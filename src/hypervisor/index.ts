export { answered, categoryPolicies, failed, severities } from "./categories.ts";
export type { Answer, CategoryPolicy, Failure } from "./categories.ts";
export {
  isFollowed,
  isProvenOurs,
  isProvenVolume,
  mayBeOurs,
  recordedSizes,
} from "./allocation.ts";
export type { Allocating, Leftover, NewVolume } from "./allocation.ts";
export type {
  Advanced,
  Begun,
  Change,
  Draft,
  DriverNotes,
  Fence,
  FileTarget,
  Fitted,
  ForeignReason,
  ForeignSeen,
  GuestCard,
  GuestView,
  HypervisorDriver,
  ImageFile,
  ImagePlace,
  ObserveHints,
  PartSlots,
  HistoryHints,
  PastTask,
  Preflight,
  RecalledTask,
  RecallHints,
  RecallTarget,
  Seen,
  TaskHandle,
  TaskSpan,
  TaskView,
  Work,
} from "./contract.ts";
export { taskTimeSlackMs } from "./task-times.ts";
export { checks, connectionProblems } from "./diagnosis.ts";
export type { Check, Diagnosis, Finding, HypervisorDoctor, OwnTask, OwnWork } from "./diagnosis.ts";
export { shapeDifferences } from "./differences.ts";
export type { Difference } from "./differences.ts";
export type { EpochChange, EpochView, ListedEpoch, WrittenEpoch } from "./epoch.ts";
export { imageChecksum, isBerthFile, isSeedOf, seedFileName, seedIdentity } from "./file-names.ts";
export { provesFile } from "./image-operation.ts";
export { fileDifference, isSameFile, knownFileOf } from "./known-file.ts";
export type { KnownFile } from "./known-file.ts";
export type { ClaimedFile, FetchImage, PutImage, RemoveImage } from "./image-operation.ts";
export type {
  Capability,
  Inventory,
  InventoryMachine,
  InventoryNode,
  InventoryStorage,
  StorageContent,
  SystemView,
} from "./inventory.ts";
export type {
  AgentOptions,
  Bus,
  CdromShape,
  CloudInitShape,
  CpuShape,
  DiskLimits,
  DiskRates,
  DiskShape,
  DisplayShape,
  Fill,
  FirmwareShape,
  GuestAddress,
  GuestFamily,
  HighAvailabilityShape,
  Lock,
  LockKind,
  LockWork,
  Machine,
  MemoryShape,
  NetworkShape,
  NewDisk,
  PciShape,
  Power,
  ScsiController,
  SeedShape,
  SeenDisk,
  SeenHighAvailability,
  SeenNetwork,
  SeenVolume,
  Shape,
  StartupShape,
  UsbShape,
} from "./machine.ts";
export { formatMark, readMark, releasedMark, removeMark, writeMark } from "./mark.ts";
export type { Mark, MarkedText } from "./mark.ts";
export { proposeNames } from "./names.ts";
export type {
  AddDisk,
  Attach,
  Basis,
  ClaimedMachine,
  ClearHusk,
  Clone,
  Configure,
  CreateShell,
  Destroy,
  DestroyDisk,
  Detach,
  DiscardVolume,
  Grow,
  Guard,
  HandOver,
  Migrate,
  MoveDisk,
  Operation,
  PartName,
  PowerOff,
  PowerOn,
  PutSeed,
  Reboot,
  Regroup,
  Release,
  RemoveSeed,
  RemoveVolume,
  Resume,
  Stamp,
  StampedDisk,
  StampedPart,
  Suspend,
  Unlock,
} from "./operation.ts";
export { isAsSeen } from "./seen-file.ts";
export type { SeenFile } from "./seen-file.ts";
export type { Survey, SurveyedFile, SurveyedMachine, SurveyedVolume } from "./survey.ts";
export type { BlockRange, DiskBlock, DiskBlocks } from "./disk-blocks.ts";
