import assert from "node:assert/strict";
import { test } from "node:test";
import { builtinResources } from "../../api/builtin/index.ts";
import { apiVersionOf } from "../../kernel/object.ts";
import { createSchemaRunners } from "../admission/index.ts";
import fixtures from "./fixtures.json" with { type: "json" };
import { decodeProtobuf } from "./index.ts";

const runnerOf = createSchemaRunners();

for (const resource of builtinResources) {
  const type = `${apiVersionOf(resource.group, resource.version)} ${resource.kind}`;
  const runner = runnerOf(resource);

  for (const filling of ["empty", "full"]) {
    test(`the schema of ${type} takes what Go's clients can send: ${filling}`, () => {
      const fixture = fixtures.find(({ name }) => name === `${type}, ${filling}`);
      assert(fixture);
      const object = decodeProtobuf(Buffer.from(fixture.protobuf, "base64"));
      assert.deepEqual(runner.prune(object), []);
      runner.applyDefaults(object);
      const prepared = resource.native?.prepare?.(object, undefined) ?? object;
      assert.deepEqual(runner.validate(prepared, undefined), []);
    });
  }
}
