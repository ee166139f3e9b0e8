import type { JsonSchema } from "../../src/api/index.ts";

/** An object of a schema, as one section of a page. */
export interface Section {
  /** "spec.disks[]". */
  readonly path: string;
  readonly description: string;
  readonly rows: readonly Row[];
}

interface Row {
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly description: string;
  /** The section that describes what is in it. */
  readonly section: string | undefined;
}

/** One sentence that admission may answer with. */
export interface Refusal {
  readonly path: string;
  readonly message: string;
  /** Whether it is about a change, and not about the object as such. */
  readonly onUpdate: boolean;
}

/** Where a page speaks of what another page already describes. */
export const elsewhere: Readonly<Record<string, string>> = {
  "spec.template.spec": "virtualmachine.md#spec",
};

/** Every object below a field, in the order in which a reader meets them. */
export function sectionsOf(path: string, schema: JsonSchema): Section[] {
  const { properties = {}, required = [] } = schema;
  const entries = Object.entries(properties);
  const rows = entries.map(([name, field]): Row => {
    const inner = insideOf(`${path}.${name}`, field);
    return {
      name,
      type: typeOf(field),
      isRequired: required.includes(name),
      description: field.description ?? "",
      section: isOpened(name, inner?.schema) ? inner?.path : undefined,
    };
  });
  const below = entries.flatMap(([name, field]) => {
    const inner = insideOf(`${path}.${name}`, field);
    if (!inner || inner.path in elsewhere || !isOpened(name, inner.schema)) return [];
    return sectionsOf(inner.path, inner.schema);
  });
  return [{ path, description: schema.description ?? "", rows }, ...below];
}

/** Every rule below a field. */
export function refusalsOf(path: string, schema: JsonSchema): Refusal[] {
  if (path.slice(1) in elsewhere) return [];
  const own = (schema["x-kubernetes-validations"] ?? []).map((rule): Refusal => {
    return {
      path: `${path}${rule.fieldPath ?? ""}`.replace(/^\./, ""),
      message: rule.message ?? rule.rule,
      onUpdate: /\boldSelf\b/.test(rule.rule),
    };
  });
  const { properties = {}, items, additionalProperties } = schema;
  const inside = Object.entries(properties).flatMap(([name, field]) =>
    refusalsOf(`${path}.${name}`, field),
  );
  const listed = items ? refusalsOf(`${path}[]`, items) : [];
  const mapped =
    typeof additionalProperties === "object" ? refusalsOf(`${path}{}`, additionalProperties) : [];
  return [...own, ...inside, ...listed, ...mapped];
}

/** The object that a field leads to, through lists and maps. */
function insideOf(
  path: string,
  field: JsonSchema,
): { path: string; schema: JsonSchema } | undefined {
  if (field.items) return insideOf(`${path}[]`, field.items);
  if (typeof field.additionalProperties === "object") {
    return insideOf(`${path}{}`, field.additionalProperties);
  }
  return field.properties ? { path, schema: field } : undefined;
}

/** Conditions are Kubernetes' own, and an object without fields has nothing to show. */
function isOpened(name: string, schema: JsonSchema | undefined): boolean {
  return name !== "conditions" && Object.keys(schema?.properties ?? {}).length > 0;
}

function typeOf(schema: JsonSchema): string {
  const text = bareType(schema);
  const { default: value } = schema;
  if (value === undefined || (typeof value === "object" && value !== null)) return text;
  return `${text}, default \`${typeof value === "string" ? value : JSON.stringify(value)}\``;
}

function bareType(schema: JsonSchema): string {
  if (schema["x-kubernetes-int-or-string"]) return "integer or string";
  if (schema.enum)
    return schema.enum
      .map((word) => `\`${typeof word === "string" ? word : JSON.stringify(word)}\``)
      .join(", ");
  switch (schema.type) {
    case "array":
      return `${listWord(schema)} of at most ${schema.maxItems}: ${bareType(schema.items ?? {})}`;
    case "integer":
      return `integer, ${bound(schema.minimum)} to ${bound(schema.maximum)}`;
    case "string":
      return schema.format === "date-time" ? "time" : `string of up to ${schema.maxLength}`;
    case "object":
      if (typeof schema.additionalProperties !== "object") return "object";
      return `map to ${bareType(schema.additionalProperties)}`;
    default:
      return schema.type ?? "any";
  }
}

function listWord(schema: JsonSchema): string {
  const keys = schema["x-kubernetes-list-map-keys"];
  if (keys) return `list by \`${keys.join(", ")}\``;
  return schema["x-kubernetes-list-type"] === "set" ? "set" : "list";
}

function bound(value: number | undefined): string {
  return value === Number.MAX_SAFE_INTEGER ? "any" : String(value);
}
