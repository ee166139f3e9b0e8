import { readMark, releasedMark, writeMark } from "../../../hypervisor/index.ts";
import type {
  Begun,
  Configure,
  Fence,
  Grow,
  Mark,
  Release,
  Stamp,
} from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import { judge } from "../identity.ts";
import { assignSlots } from "../translate/assign.ts";
import { type ConfigChange, joinChanges } from "../translate/config.ts";
import { identityOf } from "../translate/machine.ts";
import { cloudInitDrive, type Slots, writeShape } from "../translate/shape.ts";
import { formatSize, parseSize } from "../translate/sizes.ts";
import { cloudInitSlot } from "../translate/slots.ts";
import type { Values } from "../translate/values.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { notStamped } from "./add-disk.ts";
import { begunOf, refused } from "./begun.ts";
import { conflict, markFor, placeOf, standAt, type Standing } from "./standing.ts";

/** Grows to an absolute size, which is safe to repeat; "+5G" would not be. */
export async function grow(context: DriverContext, operation: Grow, fence: Fence): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { place, config, mark } = stood.standing;
  const { disk, sizeBytes } = operation;
  const slot = mark.disks[disk];
  const text = slot === undefined ? undefined : config.values[slot];
  if (slot === undefined || text === undefined) {
    return { outcome: "changed", detail: `there is no disk ${disk}` };
  }
  const seenBytes = parseSize(property(parseProperties(text, "file"), "size") ?? "") ?? 0;
  if (seenBytes === sizeBytes) return { outcome: "done" };
  if (seenBytes > sizeBytes) {
    const message = `the disk ${disk} has ${formatSize(seenBytes)} and cannot shrink`;
    return refused({ category: "ReplacementRequired", message });
  }
  const params = { disk: slot, size: formatSize(sizeBytes), digest: config.digest };
  const path = machinePath(place, "/resize");
  const result = await context.api.write("PUT", { path, params }, () => fence.mayWrite());
  return begunOf(result, `grow the disk ${disk} of VM ${place.externalId}`);
}

/** Writes what differs and nothing else. */
export async function configure(
  context: DriverContext,
  operation: Configure,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const { shape } = operation;
  const unknown = (shape.networks ?? []).find(({ name }) => !(name in standing.mark.networks));
  if (unknown !== undefined) return refused(notStamped(unknown.name));
  const { values } = standing.config;
  const change = joinChanges([
    writeShape(shape, standing.mark, values),
    describe(shape.notes, values, standing.mark),
    cloudInitDriveFor(shape.cloudInit?.storage, values),
  ]);
  return await send(context, { standing, change }, fence);
}

function describe(notes: string | undefined, values: Values, mark: Mark): ConfigChange {
  if (notes === undefined) return { set: {}, remove: [] };
  const { person } = readMark(values["description"] ?? "");
  const isSame = person === notes;
  return { set: isSame ? {} : { description: writeMark(notes, mark) }, remove: [] };
}

function cloudInitDriveFor(storage: string | undefined, values: Values): ConfigChange {
  if (storage === undefined || cloudInitDrive(values) !== undefined) return { set: {}, remove: [] };
  return { set: { [cloudInitSlot]: `${storage}:cloudinit` }, remove: [] };
}

/** Gives new names a place in the mark, before anything is made there. */
export async function stamp(
  context: DriverContext,
  operation: Stamp,
  fence: Fence,
): Promise<Begun> {
  const stood =
    operation.adopt === true
      ? await standForAdoption(context, operation)
      : await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const { values } = standing.config;
  const { disks, networks } = operation;
  const taken = Object.keys(values);
  const slots = assignSlots(standing.mark, { disks, networks, taken });
  if ("category" in slots) return refused(slots);
  return await writeMarkOf(context, standing, { mark: { ...standing.mark, ...slots }, fence });
}

export async function release(
  context: DriverContext,
  operation: Release,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  return await writeMarkOf(context, standing, { mark: releasedMark(standing.mark), fence });
}

/** A machine that is nobody's, or was let go by us, and has the identity that the Claim took. */
const adoptable = new Set(["Stranger", "MarkLost", "Released"]);

async function standForAdoption(
  context: DriverContext,
  operation: Stamp,
): ReturnType<typeof standAt> {
  const { claim, at } = operation;
  const place = placeOf(operation);
  const read = await context.configs.readAt(place, at.version);
  const config = read.type === "config" && read.config.digest === at.version && read.config;
  const verdict = config && judge(config, claim);
  // Ours already, changed, gone or empty: the same as for any other operation.
  if (!config || !verdict || verdict.is !== "foreign") return await standAt(context, operation);
  const isSame = identityOf(config.values) === claim.identity;
  if (!adoptable.has(verdict.reason) || !isSame) {
    return { ok: false, begun: refused(conflict(claim, verdict.detail)) };
  }
  const mark = markFor(claim, slotsOf(config.values));
  return { ok: true, standing: { place, config, mark } };
}

/** The places that an earlier mark gave. */
function slotsOf(values: Values): Slots {
  return readMark(values["description"] ?? "").mark ?? { disks: {}, networks: {} };
}

async function writeMarkOf(
  context: DriverContext,
  standing: Standing,
  { mark, fence }: { readonly mark: Mark; readonly fence: Fence },
): Promise<Begun> {
  const current = standing.config.values["description"] ?? "";
  const change = { set: { description: writeMark(current, mark) }, remove: [] };
  return await send(context, { standing, change }, fence);
}

/**
 * PUT is done when it returns; POST starts a worker, which only what makes a volume is worth: a
 * node that is short of workers fails to start one now and then.
 */
async function send(
  { api }: DriverContext,
  { standing, change }: { readonly standing: Standing; readonly change: ConfigChange },
  fence: Fence,
): Promise<Begun> {
  const { place, config } = standing;
  const set = Object.fromEntries(
    Object.entries(change.set).filter(([key, value]) => {
      // A password is shown as asterisks, and counts for the first boot only: it is never changed.
      const isKept = key === "cipassword" && config.values[key] !== undefined;
      return config.values[key] !== value && !isKept;
    }),
  );
  const remove = change.remove.filter((key) => config.values[key] !== undefined);
  if (Object.keys(set).length === 0 && remove.length === 0) return { outcome: "done" };
  const makesVolume = set[cloudInitSlot] !== undefined;
  const result = await api.write(
    makesVolume ? "POST" : "PUT",
    {
      path: machinePath(place, "/config"),
      params: {
        ...set,
        digest: config.digest,
        ...(remove.length > 0 ? { delete: remove.join(",") } : {}),
      },
    },
    () => fence.mayWrite(),
  );
  return begunOf(result, `configure VM ${place.externalId}`);
}
