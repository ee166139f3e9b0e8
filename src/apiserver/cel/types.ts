/** The types of CEL as the checker sees them. Values carry their own type, see values.ts. */
export type CelType =
  | { readonly kind: SimpleKind }
  | { readonly kind: "opaque"; readonly name: string }
  | { readonly kind: "list"; readonly item: CelType }
  | { readonly kind: "map"; readonly key: CelType; readonly value: CelType }
  | { readonly kind: "optional"; readonly value: CelType }
  | ObjectType
  | { readonly kind: "param"; readonly name: string };

type SimpleKind =
  | "dyn"
  | "bool"
  | "int"
  | "uint"
  | "double"
  | "string"
  | "bytes"
  | "null"
  | "timestamp"
  | "duration"
  | "type";

/** An object of a schema: its fields under the names by which CEL knows them. */
export interface ObjectType {
  readonly kind: "object";
  readonly fields: ReadonlyMap<string, ObjectField>;
}

export interface ObjectField {
  /** The name in JSON: "foo-bar" for the field `foo__dash__bar`. */
  readonly property: string;
  readonly type: CelType;
}

export const dyn: CelType = { kind: "dyn" };
export const bool: CelType = { kind: "bool" };
export const int: CelType = { kind: "int" };
export const uint: CelType = { kind: "uint" };
export const double: CelType = { kind: "double" };
export const string: CelType = { kind: "string" };
export const bytes: CelType = { kind: "bytes" };
export const nullType: CelType = { kind: "null" };
export const timestamp: CelType = { kind: "timestamp" };
export const duration: CelType = { kind: "duration" };
export const typeType: CelType = { kind: "type" };

export function listOf(item: CelType): CelType {
  return { kind: "list", item };
}

export function mapOf(key: CelType, value: CelType): CelType {
  return { kind: "map", key, value };
}

export function optionalOf(value: CelType): CelType {
  return { kind: "optional", value };
}

export function opaque(name: string): CelType {
  return { kind: "opaque", name };
}

/** The types that Kubernetes adds to CEL. */
export const quantityType = opaque("kubernetes.Quantity");
export const ipType = opaque("net.IP");
export const cidrType = opaque("net.CIDR");
export const urlType = opaque("kubernetes.URL");
export const formatType = opaque("kubernetes.NamedFormat");

/** As cel-go prints types in its errors. */
export function typeName(type: CelType): string {
  switch (type.kind) {
    case "list":
      return `list(${typeName(type.item)})`;
    case "map":
      return `map(${typeName(type.key)}, ${typeName(type.value)})`;
    case "optional":
      return `optional_type(${typeName(type.value)})`;
    case "opaque":
    case "param":
      return type.name;
    case "timestamp":
      return "timestamp";
    default:
      return type.kind;
  }
}

/** What the type parameters of an overload stand for in one call. */
export type Bindings = Map<string, CelType>;

/** Whether a value of type `actual` may be given where `wanted` is asked for. */
export function accepts(wanted: CelType, actual: CelType, bindings: Bindings): boolean {
  if (wanted.kind === "param") return bind(wanted.name, actual, bindings);
  if (wanted.kind === "dyn" || actual.kind === "dyn") return true;
  if (actual.kind === "null") return canBeNull(wanted);
  return wanted.kind === actual.kind && acceptsSameKind(wanted, actual, bindings);
}

function acceptsSameKind(wanted: CelType, actual: CelType, bindings: Bindings): boolean {
  if (wanted.kind === "opaque" && actual.kind === "opaque") return wanted.name === actual.name;
  if (wanted.kind === "object") return wanted === actual;
  const inner = innerTypes(actual);
  return innerTypes(wanted).every((type, index) => accepts(type, inner[index] ?? dyn, bindings));
}

function innerTypes(type: CelType): CelType[] {
  if (type.kind === "list") return [type.item];
  if (type.kind === "map") return [type.key, type.value];
  return type.kind === "optional" ? [type.value] : [];
}

function bind(name: string, actual: CelType, bindings: Bindings): boolean {
  const bound = bindings.get(name);
  if (bound === undefined || isDynamic(bound)) {
    if (bound === undefined || accepts(bound, actual, bindings)) {
      bindings.set(name, actual);
      return true;
    }
    return false;
  }
  return accepts(bound, actual, bindings) || accepts(actual, bound, bindings);
}

function canBeNull({ kind }: CelType): boolean {
  return kind === "null" || kind === "object" || kind === "timestamp" || kind === "duration";
}

/** Whether something in the type is known only when it runs. */
export function isDynamic(type: CelType): boolean {
  switch (type.kind) {
    case "dyn":
    case "param":
      return true;
    case "list":
      return isDynamic(type.item);
    case "map":
      return isDynamic(type.key) || isDynamic(type.value);
    case "optional":
      return isDynamic(type.value);
    default:
      return false;
  }
}

/** The type with its parameters filled in. What a call did not determine is dynamic. */
export function substitute(type: CelType, bindings: Bindings): CelType {
  switch (type.kind) {
    case "param":
      return bindings.get(type.name) ?? dyn;
    case "list":
      return listOf(substitute(type.item, bindings));
    case "map":
      return mapOf(substitute(type.key, bindings), substitute(type.value, bindings));
    case "optional":
      return optionalOf(substitute(type.value, bindings));
    default:
      return type;
  }
}

/** The type that both have, or undefined where they differ. */
export function unify(left: CelType, right: CelType): CelType | undefined {
  if (accepts(left, right, new Map())) return isDynamic(left) && left.kind !== "dyn" ? right : left;
  return accepts(right, left, new Map()) ? right : undefined;
}
