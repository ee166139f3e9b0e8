import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { berthResources } from "../../api/index.ts";
import type { JsonSchema } from "../../api/schema/index.ts";
import { createSchemaRunners } from "../../apiserver/index.ts";
import { cloneJson, isJsonObject } from "../../kernel/json.ts";
import { probeClaim } from "./probe.ts";

/** Only 0.1 wrote them: this release reads them, and writes them no more. */
const old = new Set([
  "comingDisks",
  "everStood",
  "keeper",
  "madeFrom",
  "preflightNode",
  "preflightVolumes",
]);

const claims = berthResources.find(({ kind }) => kind === "Claim");

/** The fields of a schema that a value does not have, or has as a server would fill them in. */
function missing(schema: JsonSchema, value: unknown, path = "spec"): string[] {
  if (value === undefined || JSON.stringify(value) === JSON.stringify(schema.default)) {
    return [path];
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined ? [] : missing(items, value[0], `${path}[]`);
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(schema.properties ?? {})
    .filter(([field]) => path !== "spec" || !old.has(field))
    .flatMap(([field, property]) => missing(property, value[field], `${path}.${field}`));
}

describe("the Claim by which a server is asked whether it stores all of a Claim", () => {
  it("has every field of the schema, with a value that is no default", () => {
    const spec = claims?.schema.properties?.["spec"];
    assert.ok(spec);
    assert.deepEqual(missing(spec, probeClaim().spec), []);
  });

  it("is admitted by the server as it is", () => {
    assert.ok(claims);
    const runner = createSchemaRunners()(claims);
    const probe = probeClaim();
    const admitted = cloneJson({ ...probe });
    runner.prune(admitted);
    runner.applyDefaults(admitted);
    assert.deepEqual(admitted, probe);
    assert.deepEqual(runner.validate(admitted, undefined), []);
  });
});
