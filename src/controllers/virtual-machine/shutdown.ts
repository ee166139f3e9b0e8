import type { VirtualMachine } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { failedStepsOf, type FailedStep, type Resumed } from "../operations/index.ts";

const asks: ReadonlySet<string> = new Set(["Shutdown", "Reboot"]);

/** A VM and the operation in its status. */
interface Asked {
  readonly vm: VirtualMachine;
  readonly operation?: Resumed | undefined;
}

/**
 * Whether the guest was asked to shut down, and did not. The status remembers it among the steps
 * that failed until the VM is as declared, so that the guest is not asked again and again.
 */
export function isShutdownIgnored({ operation, vm }: Asked): boolean {
  if (operation?.settlement.is === "ignored") return true;
  return failedStepsOf(vm).some(({ step }) => asks.has(step));
}

/** The failed steps with what the status remembers of a guest that did not follow. */
export function withIgnored(
  { operation, vm }: Asked,
  failed: readonly FailedStep[],
  nowMs: number,
): readonly FailedStep[] {
  if (operation?.settlement.is !== "ignored") return failed;
  const at = formatTime(nowMs);
  const others = failed.filter(({ step }) => !asks.has(step));
  const ignored: FailedStep = {
    step: operation.record.step,
    category: "CreationFailed",
    message: "The guest did not shut down within the time that it was given.",
    attempts: 1,
    firstAt: at,
    lastAt: at,
    generation: vm.metadata.generation ?? 0,
  };
  return [...others.slice(1 - failedMax), ignored];
}

const failedMax = 4;
