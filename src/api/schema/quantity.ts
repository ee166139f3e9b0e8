import { string } from "./builder.ts";
import type { Field } from "./field.ts";
import type { ValidationRule } from "./json-schema.ts";

/** Longest quantity that a pattern here lets through. */
const quantityLength = 20;

interface QuantityOptions {
  readonly rules?: readonly ValidationRule[];
}

/**
 * An amount of bytes that a person writes: a Kubernetes quantity with its unit.
 *
 * It is a string and not Kubernetes' int-or-string, for two reasons. A bare `size: 20` would be
 * taken for twenty bytes, where everybody means gigabytes. And CEL cannot bound an int-or-string:
 * comparing the sizes of 64 disks then costs eight times the budget of a rule.
 */
export function byteSize(description: string, options: QuantityOptions = {}): Field<string> {
  return string(description, {
    maxLength: quantityLength,
    pattern: "^[1-9][0-9]{0,11}(\\.[0-9]{1,3})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)$",
    ...options,
  });
}

/** An amount of bytes that Berth observed: it may be zero, and exact to the byte. */
export function observedBytes(description: string): Field<string> {
  return string(description, {
    maxLength: quantityLength,
    pattern: "^[0-9]{1,16}(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$",
  });
}

/** A number of cores that may be a fraction: `2`, `0.5` or `500m`. */
export function coreQuantity(description: string): Field<number | string> {
  return {
    presence: "required",
    schema: {
      description,
      "x-kubernetes-int-or-string": true,
      anyOf: [{ type: "integer" }, { type: "string" }],
      maxLength: quantityLength,
      pattern: "^([1-9][0-9]{0,4}|[0-9]{1,5}\\.[0-9]{1,3}|[1-9][0-9]{0,7}m)$",
    },
  };
}
