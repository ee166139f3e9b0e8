import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../kernel/object.ts";
import { berthKinds, crdOf, failureReasons } from "./index.ts";
import type { VirtualMachine, WrittenVirtualMachine } from "./index.ts";
import type { JsonSchema } from "./schema/index.ts";
import { structuralProblems } from "./schema/testing/structural.ts";

/** kubectl's client-side apply keeps the whole object in an annotation, and these have a bound. */
const annotationBytesMax = 256 * 1024;

for (const kind of berthKinds) {
  describe(kind.kind, () => {
    test("has a structural schema in which every field is described and bounded", () => {
      assert.deepEqual(structuralProblems(kind.schema), []);
    });

    test("has no default inside a list, which every kubectl apply would take for a change", () => {
      // Client-side apply compares lists whole, so an item that the server filled up differs.
      assert.deepEqual(defaultsInLists(kind.schema, ""), []);
    });

    test("has columns that show fields which exist, and ends with its age", () => {
      for (const { name, jsonPath } of kind.columns) {
        assert.ok(leadsSomewhere(kind.schema, jsonPath), `${name}: ${jsonPath}`);
      }
      assert.equal(kind.columns.at(-1)?.name, "Age");
    });

    test("has a status subresource if it has a status", () => {
      const hasStatus = kind.schema.properties?.["status"] !== undefined;
      assert.equal(kind.subresources.status === true, hasStatus);
      assert.equal(hasStatus, kind.kind !== "Claim", "only a Claim is all spec");
    });

    test("has conditions and reasons that a condition can carry", () => {
      const { types, reasons } = kind.conditions;
      for (const word of [...Object.keys(types), ...Object.keys(reasons)]) {
        assert.match(word, /^[A-Z][A-Za-z0-9]{1,63}$/);
      }
    });

    test("fits into what kubectl apply can carry", () => {
      assert.ok(JSON.stringify(crdOf(kind)).length < annotationBytesMax);
    });
  });
}

describe("all kinds together", () => {
  test("can be told apart by every name that kubectl takes", () => {
    const names = berthKinds.flatMap((kind) => [
      ...new Set([kind.plural, kind.singular, ...kind.shortNames]),
    ]);
    assert.deepEqual(names, [...new Set(names)]);
  });

  test("are shown together by kubectl get berth", () => {
    for (const kind of berthKinds) assert.deepEqual(kind.categories, ["berth"]);
  });

  test("are served only where a controller is there or is not needed", () => {
    const served = berthKinds.filter((kind) => kind.served).map((kind) => kind.kind);
    assert.deepEqual(served, [
      "Hypervisor",
      "VirtualMachine",
      "VMClass",
      "VMImage",
      "VMNetwork",
      "Claim",
      "Orphan",
    ]);
  });

  test("speak of a failure in the same words", () => {
    assert.equal(Object.keys(failureReasons).length, 16);
    for (const [key, word] of Object.entries(failureReasons)) assert.equal(key, word);
  });
});

test("a VirtualMachine can be written in TypeScript without its defaults", () => {
  const written = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name: "a", namespace: "default" },
    spec: {
      hypervisorRef: { name: "demo" },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      source: { blank: {} },
      disks: [{ name: "root", size: "1Gi" }],
    },
  } satisfies WrittenVirtualMachine;
  const untyped: KubeObject = written;
  assert.ok(untyped);
});

test("a VirtualMachine that was read has its defaults, and its status only perhaps", () => {
  const read = (vm: VirtualMachine): [KubeObject, "Live" | "Reboot" | "PowerOff", string[]] => {
    // @ts-expect-error a status may not be there yet
    void vm.status.node;
    return [vm, vm.spec.updatePolicy, (vm.spec.disks ?? []).map((disk) => disk.name)];
  };
  assert.ok(read);
});

function defaultsInLists(schema: JsonSchema, path: string, isInside = false): string[] {
  const { properties = {}, items, additionalProperties } = schema;
  const values = typeof additionalProperties === "object" ? additionalProperties : {};
  return [
    ...(isInside && schema.default !== undefined ? [path] : []),
    ...Object.entries(properties).flatMap(([name, child]) => {
      return defaultsInLists(child, `${path}.${name}`, isInside);
    }),
    ...(items ? defaultsInLists(items, `${path}[]`, true) : []),
    ...(values === additionalProperties ? defaultsInLists(values, `${path}{}`, isInside) : []),
  ];
}

/** Whether a column's path, such as `.status.conditions[?(@.type=="Ready")].status`, is one. */
function leadsSomewhere(schema: JsonSchema, jsonPath: string): boolean {
  if (jsonPath.startsWith(".metadata.")) return true;
  let at: JsonSchema | undefined = schema;
  for (const part of jsonPath
    .replaceAll(/\[[^\]]*\]/g, ".[]")
    .split(".")
    .filter(Boolean)) {
    at = part === "[]" ? at?.items : at?.properties?.[part];
  }
  return at !== undefined;
}
