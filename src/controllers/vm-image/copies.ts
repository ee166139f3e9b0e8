import type { VMImage } from "../../api/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { declarationDigest, holders } from "../operations/index.ts";
import type {
  CountingObject,
  FailedStep,
  OpenHolder,
  OperationRecord,
} from "../operations/index.ts";
import { fileNameOf, placeKey, placeOfCopy, type Copy, type CopyPlace } from "./plan.ts";

/** The file of an image at one place, and the hypervisor that has the place. */
export interface CopyWork {
  readonly connection: Connection;
  /** The node that does the work; on a shared storage any of them. */
  readonly node: string;
  readonly place: CopyPlace;
}

export function copyAt(copies: readonly Copy[], place: CopyPlace): Copy | undefined {
  return copies.find((copy) => placeKey(placeOfCopy(copy)) === placeKey(place));
}

/** The copies with this one in its place. */
export function withCopy(copies: readonly Copy[], copy: Copy): Copy[] {
  const key = placeKey(placeOfCopy(copy));
  const index = copies.findIndex((one) => placeKey(placeOfCopy(one)) === key);
  return index < 0 ? [...copies, copy] : copies.with(index, copy);
}

export function withoutCopy(copies: readonly Copy[], place: CopyPlace): Copy[] {
  return copies.filter((one) => placeKey(placeOfCopy(one)) !== placeKey(place));
}

/** A copy that is only coming, under its Claim. */
export function comingCopy(image: VMImage, place: CopyPlace, claim?: string): Copy {
  const fileName = fileNameOf(image);
  const copy = { ...place, state: "Downloading", fileName, verified: false } as const;
  return claim === undefined ? { ...copy, brought: false } : { ...copy, brought: true, claim };
}

/** The open operation of a copy. 0.1 kept the only one beside the copies. */
export function recordOf(image: VMImage, place: CopyPlace): OperationRecord | undefined {
  const copy = copyAt(image.status?.copies ?? [], place);
  if (copy?.operation !== undefined) return copy.operation;
  return copy?.state === "Downloading" ? image.status?.operation : undefined;
}

/** The image with that one operation in its copy: the next status has it nowhere else. */
export function withRecords(image: VMImage): VMImage {
  const { status } = image;
  if (status?.operation === undefined) return image;
  const copies = (status.copies ?? []).map((copy) => {
    const operation = recordOf(image, placeOfCopy(copy));
    return operation === undefined ? copy : { ...copy, operation };
  });
  return { ...image, status: { ...status, copies } };
}

/** One copy as the engine counts its failures: another copy's are none of its business. */
export function countedCopy(image: VMImage, place: CopyPlace): CountingObject {
  const { metadata, status } = image;
  const { failure } = copyAt(status?.copies ?? [], place) ?? {};
  const { generation = 0 } = metadata;
  const failedSteps = countedFailures(image, place).map(
    ({ declaration: _declaration, ...told }): FailedStep => ({ ...told, generation }),
  );
  const { handledReconcileAt } = status ?? {};
  return { metadata, status: { failure, failedSteps, handledReconcileAt } };
}

type CountedFailure = NonNullable<Copy["failedSteps"]>[number];

/** So many are kept beside the one that is told. With more, the oldest starts again from one. */
const othersMax = 2;

/** The failures of steps at a place that happened under what is declared now, the told one last. */
function countedFailures({ metadata, status }: VMImage, place: CopyPlace): CountedFailure[] {
  const { failure, failedSteps = [] } = copyAt(status?.copies ?? [], place) ?? {};
  const all = failure === undefined ? failedSteps : [...failedSteps, ...stepOf(failure)];
  const declaration = declarationDigest({ metadata });
  return all.filter((one) => one.declaration === declaration);
}

function stepOf({ cause: _cause, step, ...told }: StatusFailure): CountedFailure[] {
  return step === undefined ? [] : [{ ...told, step }];
}

/** The copy with this failure told. What failed at a step before counts on, whatever is told. */
export function withFailure(image: VMImage, copy: Copy, failure: StatusFailure): Copy {
  const { failedSteps: _before, ...known } = copy;
  const others = countedFailures(image, placeOfCopy(copy))
    .filter(({ step, category }) => step !== failure.step || category !== failure.category)
    .slice(-othersMax);
  return { ...known, failure, ...(others.length === 0 ? {} : { failedSteps: others }) };
}

/** The copies of an image that an operation is open for, with who holds its slots. */
export function openCopies({ metadata, status }: VMImage): OpenHolder[] {
  const key = objectKey(metadata);
  return (status?.copies ?? []).flatMap((copy) => {
    const { operation: record } = copy;
    const holder = holders.copy(key, placeKey(placeOfCopy(copy)));
    return record === undefined ? [] : [{ holder, record }];
  });
}
