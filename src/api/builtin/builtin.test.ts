import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../../kernel/object.ts";
import { fieldErrorMessage } from "../../kernel/status.ts";
import type { JsonSchema } from "../schema/json-schema.ts";
import { builtinResources } from "./index.ts";
import { leaseResource } from "./lease.ts";
import { namespaceResource } from "./namespace.ts";
import { serviceAccountResource } from "./service-account.ts";

function schemaAt(schema: JsonSchema, path: string): JsonSchema | undefined {
  let found: JsonSchema | undefined = schema;
  for (const field of path.split(".")) found = (found?.items ?? found)?.properties?.[field];
  return found;
}

function undocumented(schema: JsonSchema, path: string): string[] {
  const missing = schema.description ? [] : [path];
  const children = Object.entries(schema.properties ?? {});
  return [
    ...missing,
    ...children.flatMap(([name, child]) => undocumented(child, `${path}.${name}`)),
  ];
}

for (const resource of builtinResources) {
  describe(`the built-in kind ${resource.kind}`, () => {
    const { native } = resource;
    assert(native?.prepare && native.cells);
    const { prepare, cells, validate } = native;

    test("has words for every field", () => {
      assert.deepEqual(undocumented(resource.schema, resource.kind), []);
    });

    test("merges only lists that its schema has", () => {
      for (const path of Object.keys(native.mergeKeys)) {
        if (path.startsWith("metadata.")) continue;
        assert.equal(schemaAt(resource.schema, path)?.type, "array", path);
      }
    });

    test("has a cell for every column of any object, however malformed", () => {
      for (const value of [undefined, null, 7, "text", [], {}, { a: null }, [{}]]) {
        const fields = Object.keys(resource.schema.properties ?? {}).map((name) => [name, value]);
        const object: KubeObject = {
          apiVersion: "v1",
          kind: resource.kind,
          metadata: { name: "x" },
          ...Object.fromEntries(fields.filter(([, given]) => given !== undefined)),
        };
        const prepared = prepare(object, undefined);
        validate?.(prepared, prepared);
        // Were it not so, an update that changes nothing would be a change.
        assert.deepEqual(prepare(prepared, prepared), prepared);
        assert.equal(cells(prepared, 0).length, resource.columns.length);
      }
    });
  });
}

describe("a Namespace", () => {
  const { prepare, cells } = namespaceResource.native ?? {};
  assert(prepare && cells);
  const namespace = (metadata: object, fields: object = {}): KubeObject => {
    return { apiVersion: "v1", kind: "Namespace", metadata, ...fields };
  };

  test("is active from the start, and labelled with its name", () => {
    const prepared = prepare(namespace({ name: "prod", labels: { a: "b" } }), undefined);
    const labels = { a: "b", "kubernetes.io/metadata.name": "prod" };
    assert.deepEqual(
      prepared,
      namespace({ name: "prod", labels }, { status: { phase: "Active" } }),
    );
  });

  test("keeps the label of its name, whatever a client makes of it", () => {
    const labels = { "kubernetes.io/metadata.name": "other" };
    const prepared = prepare(namespace({ name: "prod", labels }), undefined);
    assert.equal(prepared.metadata.labels?.["kubernetes.io/metadata.name"], "prod");
  });

  test("is terminating while it is being deleted, and its conditions stay", () => {
    const status = { phase: "Active", conditions: [{ type: "X", status: "True" }] };
    const metadata = { name: "prod", deletionTimestamp: "1970-01-01T00:00:00Z" };
    const prepared = prepare(namespace(metadata, { status }), undefined);
    assert.deepEqual(prepared.status, { ...status, phase: "Terminating" });
    assert.deepEqual(cells(prepared, 0), ["Terminating", "<unknown>"]);
  });
});

describe("a Lease", () => {
  const { prepare, validate, cells } = leaseResource.native ?? {};
  assert(prepare && validate && cells);
  const lease = (spec: object): KubeObject => {
    return { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "l" }, spec };
  };

  test("reads times of null as not set", () => {
    const prepared = prepare(lease({ holderIdentity: "a", renewTime: null }), undefined);
    assert.deepEqual(prepared.spec, { holderIdentity: "a" });
  });

  test("lasts longer than nothing and changes hands no less than never", () => {
    const spec = { leaseDurationSeconds: 0, leaseTransitions: -1, preferredHolder: "b" };
    const errors = validate(lease(spec), undefined);
    assert.deepEqual(
      errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`),
      [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
      ],
    );
    assert.deepEqual(
      validate(lease({ leaseDurationSeconds: 15, leaseTransitions: 0 }), undefined),
      [],
    );
  });

  test("shows its holder", () => {
    assert.deepEqual(cells(lease({ holderIdentity: "a" }), 0), ["a", "<unknown>"]);
    assert.deepEqual(cells(lease({}), 0), ["", "<unknown>"]);
  });
});

test("a ServiceAccount's row counts its secrets", () => {
  const { cells } = serviceAccountResource.native ?? {};
  const object = { apiVersion: "v1", kind: "ServiceAccount", metadata: {}, secrets: [{}, {}] };
  assert.deepEqual(cells?.(object, 0), [2, "<unknown>"]);
});
