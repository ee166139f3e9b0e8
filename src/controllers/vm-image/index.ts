export { fileNameOf, imagesWanted, planTargets, wishesFor } from "./plan.ts";
export { reconcileImage, type ImageDeps, type ImageMemory } from "./reconcile.ts";
