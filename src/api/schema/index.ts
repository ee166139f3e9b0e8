export type { Field, Presence, ReadOf, Shape, WrittenOf } from "./field.ts";
export type { JsonSchema, ValidationRule } from "./json-schema.ts";
export {
  array,
  boolean,
  described,
  enumeration,
  integer,
  listMap,
  map,
  object,
  optional,
  ruled,
  set,
  string,
  withDefault,
} from "./builder.ts";
export { byteSize, coreQuantity, observedBytes } from "./quantity.ts";
export { atMostOne, exactlyOne, immutable, rule } from "./rule.ts";
