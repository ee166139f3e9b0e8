import type { Claim } from "../../api/index.ts";
import { assert } from "../../kernel/assert.ts";
import { defined } from "../failures/index.ts";
import type { OperationRecord } from "../operations/index.ts";
import { isOfChecksum } from "./file-claims.ts";
import { holdFiles } from "./holding.ts";
import type { Copy } from "./plan.ts";
import { copiesOf, type ImageTurn } from "./turn.ts";

const windowMs = 60_000;

/**
 * Copies that the ledger knows and the status does not: it was lost, or never written. All of them
 * are also asked for when the image goes. Nothing is written by this; the next status has them.
 */
export async function recoverCopies(turn: ImageTurn): Promise<void> {
  const { deps, image } = turn;
  const isLost = image.status?.observedGeneration === undefined;
  const isGoing = image.metadata.deletionTimestamp !== undefined;
  if (image.spec.source.http === undefined || !(isLost || isGoing)) return;
  const known = new Set(copiesOf(turn).map(({ claim }) => claim));
  const claims = (await deps.files.ownedBy(image)).filter(({ metadata }) => {
    return !known.has(metadata.name);
  });
  if (claims.length > 0) await holdFiles(turn);
  const copies = [...copiesOf(turn)];
  for (const found of claims) {
    // The object that it names is gone: this one has its name.
    const isIts = found.spec.owner.uid === image.metadata.uid;
    if (!isIts && !isOfChecksum(image, found.spec.file)) continue;
    copies.push(copyFrom(isIts ? found : await deps.files.giveTo(found, image)));
  }
  turn.image = { ...turn.image, status: { ...image.status, copies } };
}

/** What a Claim says of a copy. Whether the file is there has to be observed. */
export function copyFrom({ metadata, spec }: Claim): Copy {
  assert(spec.file, "the Claim of a file says which file it is");
  const { hypervisor, node, file } = spec;
  return defined<Copy>({
    hypervisor: hypervisor.name,
    storage: file.storage,
    node,
    fileName: file.name,
    size: file.size,
    brought: true,
    verified: false,
    claim: metadata.name,
    ...progressOf(spec),
  });
}

function progressOf(spec: Claim["spec"]): Pick<Copy, "state" | "message" | "operation"> {
  if (spec.state === "Bound") {
    return { state: "Missing", message: "The file was not looked for yet." };
  }
  const operation = recordFrom(spec);
  return operation === undefined ? { state: "Failed" } : { state: "Downloading", operation };
}

/**
 * The record of the operation that was to bring the file. It belongs to no boot, so it is taken
 * over like one of another machine, and its task is recalled.
 */
function recordFrom({ file }: Claim["spec"]): OperationRecord | undefined {
  const { operation, name = "", storage = "" } = file ?? {};
  if (operation === undefined) return undefined;
  const { id, key, step, node, since } = operation;
  const intent = `Bring ${name} to ${storage} on ${node}.`;
  const attempt = 1;
  return defined<OperationRecord>({ version: 1, id, key, step, intent, attempt, since, windowMs });
}
