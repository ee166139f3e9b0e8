import { createHash } from "node:crypto";
import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";

/** As much as a status keeps of an annotation. */
const saidMax = 128;
/** So much of a longer one is kept to be read; its hash tells it from others that begin alike. */
const headMax = 60;

/** What an annotation says, as the status writes down that it was acted upon. */
export function saidOf(
  { annotations: written }: VirtualMachine["metadata"],
  name: keyof typeof annotations,
): string | undefined {
  const said = written?.[annotations[name]];
  if (said === undefined || said.length <= saidMax) return said;
  const hash = createHash("sha256").update(said).digest("hex");
  return `${said.slice(0, headMax)}… ${hash}`;
}
