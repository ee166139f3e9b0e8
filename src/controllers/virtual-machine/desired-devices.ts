import type { VirtualMachine, VMClass } from "../../api/index.ts";
import type {
  AgentOptions,
  CdromShape,
  DisplayShape,
  FirmwareShape,
  Shape,
} from "../../hypervisor/index.ts";
import { defined } from "../failures/index.ts";
import { bytesOf } from "./quantities.ts";

type Spec = VirtualMachine["spec"];

/** What is attached beside disks and networks. */
export type DeviceFields =
  | "guestOs"
  | "scsiController"
  | "serialConsole"
  | "display"
  | "pci"
  | "usb"
  | "guestAgent"
  | "agentOptions";

export function deviceShape(
  spec: Spec,
  guestOsDefault: Spec["guestOs"],
): Pick<Shape, DeviceFields> {
  const { devices = {}, guestAgent, guestOs = guestOsDefault } = spec;
  return defined<Pick<Shape, DeviceFields>>({
    guestOs: guestOs && defined({ family: guestOs.family, version: guestOs.version }),
    scsiController: devices.scsiController,
    serialConsole: devices.serialConsole ?? true,
    display: devices.display && displayShape(devices.display),
    pci: someOf(devices.pci),
    usb: someOf(devices.usb),
    guestAgent: guestAgent?.enabled ?? true,
    agentOptions: agentOptions(guestAgent ?? {}),
  });
}

function agentOptions({
  trimAfterClone,
  freezeForBackup,
}: NonNullable<Spec["guestAgent"]>): AgentOptions | undefined {
  const options = defined<AgentOptions>({ trimAfterClone, freezeForBackup });
  return Object.keys(options).length > 0 ? options : undefined;
}

type Display = NonNullable<NonNullable<Spec["devices"]>["display"]>;

function displayShape({ type, memory }: Display): DisplayShape {
  const memoryBytes = memory === undefined ? undefined : bytesOf(memory);
  return defined<DisplayShape>({ type, memoryBytes });
}

/** How it starts. Its volumes go beside the disk that the source fills, unless it is said. */
export function firmwareShape(
  { firmware }: Spec,
  vmClass: VMClass | undefined,
  beside: string | undefined,
): FirmwareShape | undefined {
  const { type, secureBoot, tpm, storage } = { ...vmClass?.spec.firmware, ...firmware };
  const shape = defined<FirmwareShape>({ type, secureBoot, tpm });
  if (Object.keys(shape).length === 0) return undefined;
  return defined<FirmwareShape>({ ...shape, storage: storage ?? beside });
}

/** The drives, with what lies in each by its id on the hypervisor. */
export function cdromShapes(
  cdroms: Spec["cdroms"],
  discs: ReadonlyMap<string, string>,
): readonly CdromShape[] | undefined {
  return someOf(
    cdroms?.map(({ name, bus, volume }) => {
      return defined<CdromShape>({ name, bus, medium: volume ?? discs.get(name) ?? "" });
    }),
  );
}

export function someOf<T>(items: readonly T[] | undefined): readonly T[] | undefined {
  return items !== undefined && items.length > 0 ? items : undefined;
}
