export { fileNameOf, planTargets } from "./plan.ts";
export { reconcileImage, type ImageDeps, type ImageMemory } from "./reconcile.ts";
