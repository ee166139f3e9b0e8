export type { ImageCache, ImageDeps } from "./turn.ts";
export { openCopies } from "./copies.ts";
export { fileNameOf, imagesWanted, planTargets, wishesFor } from "./plan.ts";
export { claimBroughtFiles } from "./upgrade.ts";
export { unmetBy } from "./places.ts";
export { reconcileImage } from "./reconcile.ts";
export { notAllowed, type Web, type WebFile } from "./web.ts";
