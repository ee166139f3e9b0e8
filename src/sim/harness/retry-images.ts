import { annotations, vmImageKind } from "../../api/index.ts";
import type { People } from "./people.ts";
import type { World } from "./world.ts";

/** `berth retry`, for images of which Berth says that it tries nothing more by itself. */
export function retryImages({ records, clock }: World, people: People): void {
  const merge = { metadata: { annotations: { [annotations.reconcileAt]: `${clock.nowMs()}` } } };
  for (const { metadata, status } of records.images.values()) {
    const { namespace = "default", name = "" } = metadata;
    const stalled = status?.conditions?.find(({ type }) => type === "Stalled");
    if (stalled?.status !== "True") continue;
    people.ask(`retries the image ${name}`, (client) => {
      return client.of(vmImageKind).patch({ namespace, name }, { merge });
    });
  }
}
