import type { Json } from "../../kernel/json.ts";
import type { JsonSchema } from "../../api/schema/json-schema.ts";

/**
 * A schema made ready for walking objects: lookups by Map, flags already read. Pruning, defaults,
 * list types, rules and the correlation of old and new objects all walk along this spine.
 */
export interface Structural {
  readonly schema: JsonSchema;
  readonly properties: ReadonlyMap<string, Structural>;
  /** The schema of values under keys that `properties` does not name. */
  readonly additional: Structural | undefined;
  /** `additionalProperties: true`: any key, but nothing is known of the values. */
  readonly allowsAnyKey: boolean;
  readonly items: Structural | undefined;
  /** Carries apiVersion, kind and metadata: the root, and x-kubernetes-embedded-resource. */
  readonly isResource: boolean;
  /** Already pruned, so that a default cannot bring in what pruning would drop. */
  readonly defaultValue: Json | undefined;
  /** The properties that have a default, in the order of the schema. */
  readonly defaults: readonly (readonly [string, Json])[];
}
