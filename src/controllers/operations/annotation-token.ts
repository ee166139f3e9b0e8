import { createHash } from "node:crypto";
import { annotations } from "../../api/index.ts";
import type { ObjectMeta } from "../../kernel/object.ts";

/** As much as a status keeps of an annotation. */
const saidMax = 128;
/** So much of a longer one is kept to be read; its hash tells it from others that begin alike. */
const headMax = 60;

/** What an annotation says, in the form in which a status records that it was acted upon. */
export function annotationToken(
  { annotations: written }: Pick<ObjectMeta, "annotations">,
  name: keyof typeof annotations,
): string | undefined {
  const said = written?.[annotations[name]];
  if (said === undefined || said.length <= saidMax) return said;
  const hash = createHash("sha256").update(said).digest("hex");
  return `${said.slice(0, headMax)}… ${hash}`;
}

/** Whether a person asked for another try since. Who takes the annotation away asks for nothing. */
export function isRetryAsked({ metadata, status }: AskedObject): boolean {
  const asked = annotationToken(metadata, "reconcileAt");
  return asked !== undefined && asked !== status?.handledReconcileAt;
}

interface AskedObject {
  readonly metadata: Pick<ObjectMeta, "annotations">;
  readonly status?: { readonly handledReconcileAt?: string | undefined } | undefined;
}
