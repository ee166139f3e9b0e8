import type { ObjectMeta, OwnerReference } from "./object.ts";
import {
  asPrefix,
  dnsLabelErrors,
  dnsSubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
  type NameRule,
} from "./name-rules.ts";
import type { FieldError } from "./status.ts";

/** Kubernetes' bound on all keys and values of an object's annotations together. */
const annotationsBytesMax = 256 * 1024;

export interface MetadataRules {
  readonly namespaced: boolean;
  /** The form of the name. Absent: a DNS subdomain, as for all kinds but Namespace. */
  readonly name?: "subdomain" | "label";
}

/**
 * What is wrong with the metadata of an object that is to be created, in the order and words of
 * kube-apiserver. A name must have been generated before.
 */
export function validateMetadata(meta: ObjectMeta, rules: MetadataRules): FieldError[] {
  const rule = rules.name === "label" ? dnsLabelErrors : dnsSubdomainErrors;
  const errors: FieldError[] = [];
  if (meta.generateName) {
    errors.push(...checkName(meta.generateName, "metadata.generateName", asPrefix(rule)));
  }
  if (!meta.name) {
    const detail = "name or generateName is required";
    errors.push({ type: "FieldValueRequired", field: "metadata.name", detail });
  } else {
    errors.push(...checkName(meta.name, "metadata.name", rule));
  }
  errors.push(...checkNamespace(meta, rules));
  errors.push(...checkCommon(meta), ...validateFinalizers(meta.finalizers ?? []));
  return errors;
}

/** The same for an object that takes the place of another. */
export function validateMetadataUpdate(meta: ObjectMeta, previous: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (previous.deletionTimestamp !== undefined) {
    errors.push(...checkNoNewFinalizers(meta.finalizers ?? [], previous.finalizers ?? []));
  }
  for (const member of ["name", "namespace", "uid", "creationTimestamp"] as const) {
    errors.push(...checkImmutable(meta[member], previous[member], `metadata.${member}`));
  }
  for (const member of ["deletionTimestamp", "deletionGracePeriodSeconds"] as const) {
    errors.push(...checkImmutable(meta[member], previous[member], `metadata.${member}`));
  }
  return [...errors, ...checkCommon(meta)];
}

export function validateLabels(labels: Record<string, string>, field: string): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...checkName(key, field, qualifiedNameErrors),
    ...checkName(value, field, labelValueErrors),
  ]);
}

export function validateAnnotations(
  annotations: Record<string, string>,
  field: string,
): FieldError[] {
  const entries = Object.entries(annotations);
  // The case of an annotation's prefix does not matter, unlike that of a label's.
  const errors = entries.flatMap(([key]) =>
    checkName(key, field, (value) => qualifiedNameErrors(value.toLowerCase())),
  );
  const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(entry.join("")), 0);
  if (bytes > annotationsBytesMax) {
    const detail = `may not be more than ${annotationsBytesMax} bytes`;
    errors.push({ type: "FieldValueTooLong", field, detail });
  }
  return errors;
}

export function validateFinalizers(finalizers: readonly string[]): FieldError[] {
  const field = "metadata.finalizers";
  const errors = finalizers.flatMap((name) => checkName(name, field, qualifiedNameErrors));
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    const detail = "finalizer orphan and foregroundDeletion cannot be both set";
    errors.push(invalidValue(field, finalizers, detail));
  }
  return errors;
}

export function validateOwnerReferences(owners: readonly OwnerReference[]): FieldError[] {
  const field = "metadata.ownerReferences";
  const errors: FieldError[] = [];
  let controller: string | undefined;
  owners.forEach((owner, i) => {
    errors.push(...checkOwner(owner, `${field}[${i}]`));
    if (owner.controller !== true) return;
    const shown = `${owner.kind}/${owner.name}`;
    if (controller === undefined) {
      controller = shown;
      return;
    }
    const rule = "Only one reference can have Controller set to true.";
    const found = `Found "true" in references for ${controller} and ${shown}`;
    errors.push(invalidValue(field, owners, `${rule} ${found}`));
  });
  return errors;
}

function checkCommon(meta: ObjectMeta): FieldError[] {
  return [
    ...validateLabels(meta.labels ?? {}, "metadata.labels"),
    ...validateAnnotations(meta.annotations ?? {}, "metadata.annotations"),
    ...validateOwnerReferences(meta.ownerReferences ?? []),
  ];
}

function checkNamespace(meta: ObjectMeta, rules: MetadataRules): FieldError[] {
  const field = "metadata.namespace";
  if (rules.namespaced && !meta.namespace) {
    return [{ type: "FieldValueRequired", field, detail: "" }];
  }
  if (rules.namespaced) return checkName(meta.namespace ?? "", field, dnsLabelErrors);
  if (!meta.namespace) return [];
  return [{ type: "FieldValueForbidden", field, detail: "not allowed on this type" }];
}

function checkOwner(owner: OwnerReference, field: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const member of ["apiVersion", "kind", "name", "uid"] as const) {
    if (!owner[member]) {
      const detail = "must not be empty";
      errors.push({ type: "FieldValueRequired", field: `${field}.${member}`, detail });
    } else if (member === "apiVersion" && !/^([^/]*\/)?[^/]+$/.test(owner.apiVersion)) {
      const detail = "must be <group>/<version> or <version>";
      errors.push(invalidValue(`${field}.apiVersion`, owner.apiVersion, detail));
    }
  }
  if (owner.apiVersion === "v1" && owner.kind === "Event") {
    const detail = "/v1, Kind=Event is disallowed from being an owner";
    errors.push(invalidValue(field, owner, detail));
  }
  return errors;
}

function checkNoNewFinalizers(next: readonly string[], previous: readonly string[]): FieldError[] {
  const added = [...new Set(next)].filter((name) => !previous.includes(name)).toSorted();
  if (added.length === 0) return [];
  const rule = "no new finalizers can be added if the object is being deleted";
  // Go prints the list as source text.
  const shown = `[]string{${added.map((name) => JSON.stringify(name)).join(", ")}}`;
  const detail = `${rule}, found new finalizers ${shown}`;
  return [{ type: "FieldValueForbidden", field: "metadata.finalizers", detail }];
}

function checkImmutable(next: unknown, previous: unknown, field: string): FieldError[] {
  if ((next ?? undefined) === (previous ?? undefined)) return [];
  return [invalidValue(field, next ?? null, "field is immutable")];
}

function checkName(value: string, field: string, rule: NameRule): FieldError[] {
  return rule(value).map((detail) => invalidValue(field, value, detail));
}

function invalidValue(field: string, value: unknown, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, value: JSON.stringify(value), detail };
}
