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

export async function trouble(
  image: VMImage,
  deps: ImageDeps,
  { copies, failure }: { readonly copies: readonly Copy[]; readonly failure: Failure },
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
  report(image, deps, { failure, attempts, isNew, next });
  return next.type === "stall" ? stalled(failure.category) : again(failure.category, next.afterMs);
}

/** What an upload of ours left behind is told from a whole file only by this. */
function uploadOf(image: VMImage, { images }: ImageDeps): Pick<ImageView, "operation"> {
  const { operation } = images.get(objectKey(image.metadata))?.status ?? {};
  return operation?.step === "Upload" ? { operation } : {};
}

interface Told {
  readonly failure: Failure;
  readonly attempts: number;
  readonly isNew: boolean;
  readonly next: ReturnType<typeof nextAttempt>;
}

function report(
  image: VMImage,
  { reports }: ImageDeps,
  { failure, attempts, isNew, next }: Told,
): void {
  const isStalled = next.type === "stall";
  const isRetried = categoryPolicies[failure.category].next === "retry" && !isStalled;
  const wasStalled = isStalled && !isNew;
  const retryInMs = isRetried ? next.afterMs : undefined;
  reports.failed(image, failure, { attempts, isNew, isStalled, wasStalled, retryInMs });
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
