import { finalizers, vmImageKind } from "../../api/index.ts";
import type { VMImage } from "../../api/index.ts";
import { addFinalizer } from "../../runtime/index.ts";
import type { ImageTurn } from "./turn.ts";

/** From now on there may be a file that Berth brought: the object does not go without it. */
export async function holdFiles(turn: ImageTurn): Promise<void> {
  const { deps, image } = turn;
  if (image.metadata.deletionTimestamp !== undefined) return;
  const objects = deps.client.of(vmImageKind);
  turn.image = deps.images.note(await addFinalizer<VMImage>(objects, image, finalizers.image));
}
