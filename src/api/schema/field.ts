import type { JsonSchema } from "./json-schema.ts";

/** Whether a field has to be written: yes; no; or no, because admission fills in a default. */
export type Presence = "required" | "optional" | "defaulted";

/**
 * One value of the API: the structural schema that admission runs and CRDs print, and the
 * TypeScript types that the program sees. `Read` is the value after admission (defaults filled in),
 * `Written` what a person or a controller may send.
 */
export interface Field<Read, Written = Read, P extends Presence = "required"> {
  readonly schema: JsonSchema;
  readonly presence: P;
  /** Never set. It carries the two types through the compiler. */
  readonly types?: { readonly read: Read; readonly written: Written };
}

export type AnyField = Field<unknown, unknown, Presence>;

/** The properties of an object, by name. */
export type Shape = Readonly<Record<string, AnyField>>;

/** The type of a field's value after admission. */
export type ReadOf<F> = F extends Field<infer Read, unknown, Presence> ? Read : never;

/** The type of a field's value as it may be sent: what has a default may be left out. */
export type WrittenOf<F> = F extends Field<unknown, infer Written, Presence> ? Written : never;

export type ReadShape<S extends Shape> = Flat<
  {
    -readonly [K in keyof S as S[K]["presence"] extends "optional" ? never : K]: ReadOf<S[K]>;
  } & {
    -readonly [K in keyof S as S[K]["presence"] extends "optional" ? K : never]?: ReadOf<S[K]>;
  }
>;

export type WrittenShape<S extends Shape> = Flat<
  {
    -readonly [K in keyof S as S[K]["presence"] extends "required" ? K : never]: WrittenOf<S[K]>;
  } & {
    -readonly [K in keyof S as S[K]["presence"] extends "required" ? never : K]?: WrittenOf<S[K]>;
  }
>;

/** The keys of an object type that are always there: only those can key a list. */
export type PresentKey<T> = {
  [K in keyof T]-?: object extends Pick<T, K> ? never : K;
}[keyof T] &
  string;

/** Shows an intersection as one object type, so that errors and hovers stay readable. */
export type Flat<T> = { [K in keyof T]: T[K] };
