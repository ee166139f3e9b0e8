import { guard } from "../../kernel/guard.ts";
import type { OperationRecord } from "./record.ts";
import type { Resumed } from "./resume.ts";
import { isOpen } from "./settle.ts";

/**
 * What a status keeps of the operation in it, whatever else is written: the record, while it is
 * open, and after a failure until a write tells that failure. Undefined: its end needs no record,
 * or the kind of the object decides what rests on it. Pure.
 */
export function keptUntilTold(
  record: OperationRecord,
  { record: { id }, settlement, task = record.task }: Resumed,
  /** The step whose failure the write tells. */
  toldStep: string | undefined,
): OperationRecord | undefined {
  if (record.id !== id || isOpen(settlement)) return record;
  // A person had it stopped, and knows that it did not end well.
  if (settlement.is !== "failed" || record.cancelRequested === true) return undefined;
  if (guard("record-kept-until-told", toldStep === record.step)) return undefined;
  return withoutSlots({ ...record, ...(task === undefined ? {} : { task }) });
}

/** A record that stays although nothing is at work any more: it holds no slots. */
export function withoutSlots(record: OperationRecord): OperationRecord {
  return { ...record, slots: [] };
}
