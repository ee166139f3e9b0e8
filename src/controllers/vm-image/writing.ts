import { vmImageKind } from "../../api/index.ts";
import type { VMImage } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";
import {
  again,
  nextAttempt,
  settled,
  stalled,
  writeStatus,
  type Outcome,
} from "../../runtime/index.ts";
import type { Reach } from "../hypervisor/index.ts";
import type { ReportedOperation } from "../reports/index.ts";
import type { ImageDeps, ImageMemory } from "./deps.ts";
import type { Copy } from "./plan.ts";
import { imageStatusOf, type ImageView } from "./status.ts";

export async function rest(
  image: VMImage,
  deps: ImageDeps,
  copies: readonly Copy[],
): Promise<Outcome> {
  await write(image, deps, { copies });
  return settled;
}

/** What is wrong, where, and with which work. */
export interface Trouble {
  readonly copies: readonly Copy[];
  readonly failure: Failure;
  readonly hypervisor?: string | undefined;
  readonly operation?: ReportedOperation | undefined;
}

export async function trouble(
  image: VMImage,
  deps: ImageDeps,
  { copies, failure, hypervisor, operation }: Trouble,
): Promise<Outcome> {
  const old = image.status?.failure;
  const policy = categoryPolicies[failure.category];
  const isCounted = policy.next === "retry" && old?.category === failure.category;
  const attempts = isCounted ? old.attempts + 1 : 1;
  const next = nextAttempt(policy, attempts, deps.random);
  const isStalled = next.type === "stall";
  const isRetried = policy.next === "retry" && !isStalled;
  const nextRetryMs = isRetried ? deps.clock.nowMs() + next.afterMs : undefined;
  const moment = { attempts, nextRetryMs, isStalled };
  await write(image, deps, { copies, failure, ...moment, ...uploadOf(image, deps) });
  const isNew = old?.category !== failure.category;
  report(image, deps, { failure, attempts, isNew, next, hypervisor, operation });
  return next.type === "stall" ? stalled(failure.category) : again(failure.category, next.afterMs);
}

/** What an upload of ours left behind is told from a whole file only by this. */
function uploadOf(image: VMImage, { images }: ImageDeps): Pick<ImageView, "operation"> {
  const { operation } = images.get(objectKey(image.metadata))?.status ?? {};
  return operation?.step === "Upload" ? { operation } : {};
}

/** Somebody looks after the Hypervisor; this is for the case that what it finds wakes nobody. */
const overdueMs = 60_000;

/**
 * The Hypervisor is away, and only the one who looks after it asks it anything. Nothing was tried,
 * so no attempt is counted, however often the image is looked at meanwhile.
 */
export async function waitForHypervisor(
  image: VMImage,
  deps: ImageDeps,
  { copies, away, hypervisor }: Waiting,
): Promise<Outcome> {
  const { failure, nextLookMs } = away;
  if (nextLookMs === undefined) return trouble(image, deps, { copies, failure, hypervisor });
  const old = image.status?.failure;
  const isNew = old?.category !== failure.category;
  const attempts = isNew ? 1 : old.attempts;
  const waitingFor = { kind: "Dependency", name: `Hypervisor ${hypervisor}` } as const;
  await write(image, deps, { copies, failure, attempts, waitingFor, ...uploadOf(image, deps) });
  const told = { attempts, isNew, isStalled: false, wasStalled: false, hypervisor };
  deps.reports.failed(image, failure, told);
  return again(failure.category, Math.max(nextLookMs - deps.clock.nowMs(), overdueMs));
}

export interface Waiting {
  readonly copies: readonly Copy[];
  readonly away: Reach & { readonly is: "away" };
  readonly hypervisor: string;
}

interface Told extends Pick<Trouble, "hypervisor" | "operation"> {
  readonly failure: Failure;
  readonly attempts: number;
  readonly isNew: boolean;
  readonly next: ReturnType<typeof nextAttempt>;
}

function report(
  image: VMImage,
  { reports }: ImageDeps,
  { failure, attempts, isNew, next, hypervisor, operation }: Told,
): void {
  const isStalled = next.type === "stall";
  const isRetried = categoryPolicies[failure.category].next === "retry" && !isStalled;
  const { conditions = [] } = image.status ?? {};
  const wasStalled = conditions.some(({ type, status }) => type === "Stalled" && status === "True");
  const retryInMs = isRetried ? next.afterMs : undefined;
  const work = { operation, step: operation?.step, hypervisor };
  reports.failed(image, failure, { ...work, attempts, isNew, isStalled, wasStalled, retryInMs });
}

export async function write(found: VMImage, deps: ImageDeps, view: ImageView): Promise<void> {
  const image = deps.images.get(objectKey(found.metadata)) ?? found;
  const status = imageStatusOf(image, view, deps.clock.nowMs());
  deps.images.note(await writeStatus<VMImage>(deps.client.of(vmImageKind), image, status));
}

export function memoryOf({ metadata }: VMImage, { memory }: ImageDeps): ImageMemory {
  const remembered = memory.get(objectKey(metadata)) ?? {};
  memory.set(objectKey(metadata), remembered);
  return remembered;
}
