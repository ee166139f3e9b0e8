import { rule, string } from "../schema/index.ts";
import type { Field, ValidationRule } from "../schema/index.ts";

const label = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";

interface NameOptions {
  readonly rules?: readonly ValidationRule[];
}

/** A short name that the user gives to a part of an object: a disk, a network. */
export function partName(description: string, options: NameOptions = {}): Field<string> {
  return string(description, { minLength: 1, maxLength: 63, pattern: `^${label}$`, ...options });
}

/** The name of another object. */
export function objectName(description: string, options: NameOptions = {}): Field<string> {
  return string(description, {
    minLength: 1,
    maxLength: 253,
    pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
    ...options,
  });
}

/** The name of a namespace. */
export function namespaceName(description: string): Field<string> {
  return string(description, { minLength: 1, maxLength: 63, pattern: `^${label}$` });
}

/** A namespace, or `*` for all of them. */
export function namespaceOrAll(description: string): Field<string> {
  return string(description, { minLength: 1, maxLength: 63, pattern: `^(\\*|${label})$` });
}

/**
 * A name that the hypervisor gave: a node, storage, bridge or pool. It ends up in parameter strings
 * and XML there, so what could open another parameter (`,`, `=`, `;`, `:`, quotes) is never let in.
 */
export function hypervisorName(description: string, options: NameOptions = {}): Field<string> {
  return string(description, {
    minLength: 1,
    maxLength: 80,
    pattern: "^[A-Za-z0-9_]([A-Za-z0-9 _.()+-]*[A-Za-z0-9_.)+-])?$",
    ...options,
  });
}

/** A path of such names: a folder or a nested pool. */
export function hypervisorPath(description: string): Field<string> {
  return string(description, {
    minLength: 1,
    maxLength: 255,
    pattern: "^[A-Za-z0-9_][A-Za-z0-9 _.()+-]*(/[A-Za-z0-9_][A-Za-z0-9 _.()+-]*)*$",
  });
}

/** How the hypervisor locates a machine: a VMID, a domain's UUID, an instance UUID. */
export function externalId(description: string, options: NameOptions = {}): Field<string> {
  return string(description, {
    minLength: 1,
    maxLength: 128,
    pattern: "^[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?$",
    ...options,
  });
}

/** How the hypervisor locates a volume: `local-zfs:vm-100-disk-0`, `[ds1] web/web.vmdk`, a path. */
export function volumeId(description: string): Field<string> {
  return string(description, {
    minLength: 1,
    maxLength: 512,
    pattern: "^[A-Za-z0-9_/\\[][A-Za-z0-9_ ./:@+()\\[\\]-]*$",
    rules: [rule("!self.contains('..')", "cannot contain '..': write the id without it")],
  });
}

/** A version 4 or other UUID, in lower case. */
export function uuid(description: string, options: NameOptions = {}): Field<string> {
  return string(description, {
    maxLength: 36,
    pattern: "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    ...options,
  });
}

/** A MAC address of one machine: not a multicast address. Either case is accepted. */
export function macAddress(description: string): Field<string> {
  return string(description, {
    maxLength: 17,
    pattern: "^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$",
  });
}

/** Free text for people. */
export function text(description: string, maxLength: number): Field<string> {
  return string(description, { maxLength });
}

/** A moment, as RFC 3339. */
export function time(description: string): Field<string> {
  return string(description, { maxLength: 64, format: "date-time" });
}
