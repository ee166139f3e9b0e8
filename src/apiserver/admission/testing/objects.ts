import type { Resource } from "../../../api/resource.ts";
import type { JsonSchema } from "../../../api/schema/json-schema.ts";
import type { Json } from "../../../kernel/json.ts";
import type { KubeObject } from "../../../kernel/object.ts";
import type { SchemaRunner } from "../../contract.ts";
import { createSchemaRunners } from "../index.ts";

/** A kind with the given schema of the whole object, for tests that care for nothing else. */
export function resourceOf(schema: JsonSchema): Resource {
  return {
    group: "example.com",
    version: "v1",
    kind: "Foo",
    plural: "foos",
    singular: "foo",
    shortNames: [],
    categories: [],
    namespaced: true,
    description: "",
    schema,
    subresources: {},
    columns: [],
    served: true,
  };
}

export function runnerOf(schema: JsonSchema): SchemaRunner {
  return createSchemaRunners()(resourceOf(schema));
}

/** The runner of a kind of which only `spec` matters. */
export function specRunner(spec: JsonSchema): SchemaRunner {
  return runnerOf({ type: "object", properties: { spec } });
}

export function objectOf(spec: Json): KubeObject {
  return { apiVersion: "example.com/v1", kind: "Foo", metadata: { name: "x" }, spec };
}
