/**
 * The shape of a protobuf message and of the JSON that it stands for, as a table: field number to
 * field. Numbers, names and presence are facts of k8s.io/api 0.32 (generated.proto and the JSON
 * tags of the Go types); a field that is not in a table is skipped, so newer clients do no harm.
 */
export type Message = Readonly<Record<number, Field>>;

export interface Field {
  readonly name: string;
  readonly value: Value;
  readonly shape: "one" | "list" | "map";
  readonly presence: Presence;
}

/** A message in a message, or one of the values that have their own JSON form. */
export type Value = Scalar | Message;
export type Scalar =
  | "text"
  | "bytes"
  | "flag"
  | "int32"
  | "int64"
  | "time"
  | "microTime"
  | "fieldsV1"
  | "textList";

/**
 * When the JSON has the field, as Go's encoder decides it:
 * - `nonzero`: unless it is zero or empty (`omitempty`).
 * - `present`: whenever the bytes have it, also as zero (a pointer with `omitempty`).
 * - `always`: in any case, as zero where the bytes lack it.
 * - `nullable`: in any case, as null where the bytes lack it (a pointer or a list).
 */
export type Presence = "nonzero" | "present" | "always" | "nullable";

export function text(name: string, presence: Presence = "nonzero"): Field {
  return { name, value: "text", shape: "one", presence };
}

export function flag(name: string, presence: Presence = "nonzero"): Field {
  return { name, value: "flag", shape: "one", presence };
}

export function int32(name: string, presence: Presence = "nonzero"): Field {
  return { name, value: "int32", shape: "one", presence };
}

export function int64(name: string, presence: Presence = "nonzero"): Field {
  return { name, value: "int64", shape: "one", presence };
}

/** A time, which Go writes as null where it is not set. */
export function time(name: string, presence: Presence = "always"): Field {
  return { name, value: "time", shape: "one", presence };
}

export function microTime(name: string, presence: Presence = "always"): Field {
  return { name, value: "microTime", shape: "one", presence };
}

/** A struct that is part of its parent, and so always there. */
export function part(name: string, value: Message): Field {
  return { name, value, shape: "one", presence: "always" };
}

/** A struct that may be missing. */
export function pointer(name: string, value: Value, presence: Presence = "present"): Field {
  return { name, value, shape: "one", presence };
}

export function list(name: string, value: Value, presence: Presence = "nonzero"): Field {
  return { name, value, shape: "list", presence };
}

export function map(name: string, value: Scalar): Field {
  return { name, value, shape: "map", presence: "nonzero" };
}
