import type { Resource } from "../../api/resource.ts";
import { jsonEqual } from "../../kernel/json.ts";
import {
  validateFinalizers,
  validateMetadata,
  validateMetadataUpdate,
} from "../../kernel/names.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { invalid, type ApiError, type FieldError } from "../../kernel/status.ts";
import type { SchemaRunner } from "../contract.ts";
import type { ExpectedKind } from "./decode.ts";
import { isNamespaces } from "./namespaces.ts";
import type { FieldValidation } from "./options.ts";
import { scaleErrors } from "./scale.ts";

/** The kind that a resource's URLs serve. */
export function expectedKind(resource: Resource): ExpectedKind {
  const { group, version, kind } = resource;
  return { group, version, kind, isNative: resource.native !== undefined };
}

/**
 * Drops fields that the schema does not know and fills in defaults, in place: the object is then as
 * kube-apiserver's decoder would have made it. Returns warnings, or throws what `refuse` makes of
 * the complaint, as field validation wants it.
 */
export function settle(
  object: KubeObject,
  runner: SchemaRunner,
  strictness: {
    readonly fieldValidation: FieldValidation;
    readonly complaints: readonly string[];
    readonly refuse: (why: string) => ApiError;
  },
): string[] {
  const unknown = runner.prune(object);
  const complaints = [
    ...strictness.complaints,
    ...unknown.map((path) => `unknown field ${JSON.stringify(path)}`),
  ];
  if (complaints.length > 0 && strictness.fieldValidation === "Strict") {
    throw strictness.refuse(`strict decoding error: ${complaints.join(", ")}`);
  }
  runner.applyDefaults(object);
  return strictness.fieldValidation === "Warn" ? complaints : [];
}

/** Refuses an object that breaks a rule, with all the rules that it breaks. */
export function assertValid(
  object: KubeObject,
  current: KubeObject | undefined,
  rules: { readonly resource: Resource; readonly runner: SchemaRunner },
): void {
  const { resource, runner } = rules;
  const { scale } = resource.subresources;
  const errors = [
    ...metadataErrors(object, current, resource),
    ...runner.validate(object, current),
    ...(scale ? scaleErrors(object, scale) : []),
    ...(resource.native?.validate?.(object, current) ?? []),
  ];
  if (errors.length === 0) return;
  const { group, kind } = resource;
  throw invalid({ group, kind, name: object.metadata.name ?? "" }, withoutRepetition(errors));
}

function metadataErrors(
  object: KubeObject,
  current: KubeObject | undefined,
  resource: Resource,
): FieldError[] {
  const { namespaced } = resource;
  const name = isNamespaces(resource) ? "label" : "subdomain";
  if (!current) return validateMetadata(object.metadata, { namespaced, name });
  return [
    ...validateMetadataUpdate(object.metadata, current.metadata),
    ...validateFinalizers(object.metadata.finalizers ?? []),
  ];
}

/** A rule of the kind may say again what the metadata's own rules have said. */
function withoutRepetition(errors: readonly FieldError[]): FieldError[] {
  return errors.filter((error, at) => errors.findIndex((other) => jsonEqual(other, error)) === at);
}
