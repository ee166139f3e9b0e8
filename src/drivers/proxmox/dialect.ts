import type { HypervisorDriver } from "../../hypervisor/index.ts";
import { changeOf } from "./changes/change-of.ts";
import { fitShape } from "./fit.ts";
import { newestKnown, parseRelease } from "./release.ts";

/** What the driver knows without asking anybody: how a release takes a shape, and changes. Pure. */
export function proxmoxDialect(version: string): Pick<HypervisorDriver, "fit" | "changeOf"> {
  const release = parseRelease(version) ?? newestKnown;
  return { fit: (shape) => fitShape(shape, release), changeOf };
}
