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
  // What an upload of ours left behind is told from a whole file only by this.
  const { operation } = deps.images.get(objectKey(image.metadata))?.status ?? {};
  const open = operation?.step === "Upload" ? { operation } : {};
  await write(image, deps, { copies, failure, attempts, ...open });
  const next = nextAttempt(policy, attempts, deps.random);
  return next.type === "stall" ? stalled(failure.category) : again(failure.category, next.afterMs);
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
