export type { ImageDeps, ImageMemory } from "./deps.ts";
export { fileNameOf, imagesWanted, planTargets, wishesFor } from "./plan.ts";
export { reconcileImage } from "./reconcile.ts";
export { notAllowed, type Web, type WebFile } from "./web.ts";
