import { rule } from "../schema/index.ts";
import type { ValidationRule } from "../schema/index.ts";

const adoptsOnly = "(has(self.adopt) && self.adopt == 'Only')";

/** What the parts of a spec ask of each other. Each sentence says what to do. */
export const specRules: readonly ValidationRule[] = [
  rule(
    `has(self.source) || ${adoptsOnly}`,
    "source is missing: give exactly one of image, clone, importedDisk and blank (only adopt: Only can do without)",
    { reason: "FieldValueRequired", fieldPath: ".source" },
  ),
  rule(
    `has(self.classRef) || ${adoptsOnly} || ` +
      "(has(self.cpu) && has(self.cpu.cores) && has(self.memory) && has(self.memory.size))",
    "say how large the machine is: by classRef, or by cpu.cores and memory.size",
    { reason: "FieldValueRequired" },
  ),
  rule(
    "!has(self.adopt) || has(self.externalId)",
    "adopt needs externalId: the id of the machine to take over",
    { reason: "FieldValueRequired", fieldPath: ".externalId" },
  ),
  rule(
    `!${adoptsOnly} || self.onMissing != 'Recreate'`,
    "adopt: Only never makes a machine, so onMissing: Recreate cannot be: use Stall, or adopt: IfPresent",
    { fieldPath: ".onMissing" },
  ),
  filledDisk("image"),
  filledDisk("importedDisk"),
  filledDisk("clone"),
  rule(
    "!has(self.source) || !has(self.source.clone) || !has(self.source.clone.disks) || " +
      `self.source.clone.disks.all(c, ${isNamed("disks", "c.name")})`,
    "every name in source.clone.disks must be the name of an entry of disks",
    { fieldPath: ".source.clone.disks" },
  ),
  rule(
    "!has(self.disks) || has(self.adopt) || " +
      "self.disks.all(d, has(d.size) || (has(d.state) && d.state == 'Absent') || (has(self.source) && " +
      `(has(self.source.clone) || ${fills("image")} || ${fills("importedDisk")})))`,
    "a disk that nothing fills needs a size",
    { fieldPath: ".disks" },
  ),
  rule(
    "!has(self.bootOrder) || self.bootOrder.all(b, " +
      `(has(b.disk) && ${isNamed("disks", "b.disk")}) || ` +
      `(has(b.cdrom) && ${isNamed("cdroms", "b.cdrom")}) || ` +
      `(has(b.network) && ${isNamed("networks", "b.network")}))`,
    "every entry of bootOrder must name an entry of disks, cdroms or networks",
    { fieldPath: ".bootOrder" },
  ),
  rule(
    "!has(self.cloudInit) || !has(self.cloudInit.networks) || " +
      `self.cloudInit.networks.all(c, ${isNamed("networks", "c.name")})`,
    "every name in cloudInit.networks must be the name of an entry of networks",
    { fieldPath: ".cloudInit.networks" },
  ),
];

/** Over the whole object: where the machine stands decides whether the reference may change. */
export const objectRules: readonly ValidationRule[] = [
  rule(
    "size(self.metadata.name) <= 63",
    "the name of a VirtualMachine has at most 63 characters, because it becomes a host name",
  ),
  rule(
    "self.spec.hypervisorRef.name == oldSelf.spec.hypervisorRef.name || " +
      "!has(oldSelf.status) || !has(oldSelf.status.hypervisor) || " +
      "oldSelf.status.hypervisor == self.spec.hypervisorRef.name",
    "the machine stands on another hypervisor: move it with a VMMigration (berth migrate VM --to HYPERVISOR), or write the hypervisor that status.hypervisor shows",
    { reason: "FieldValueForbidden", fieldPath: ".spec.hypervisorRef" },
  ),
];

/** The disk that a source fills has to be declared. */
function filledDisk(kind: "image" | "importedDisk" | "clone"): ValidationRule {
  const at = `self.source.${kind}`;
  return rule(
    `!has(self.source) || !has(${at}) || (${isNamed("disks", `${at}.disk`)})`,
    `source.${kind}.disk must be the name of an entry of disks (it is "root" unless you say otherwise)`,
    { fieldPath: `.source.${kind}` },
  );
}

/** Whether the source fills disk `d`. */
function fills(kind: "image" | "importedDisk"): string {
  return `(has(self.source.${kind}) && self.source.${kind}.disk == d.name)`;
}

/** Whether a name is that of an entry of a list. */
function isNamed(listName: "disks" | "cdroms" | "networks", name: string): string {
  return `has(self.${listName}) && self.${listName}.exists(x, x.name == ${name})`;
}
