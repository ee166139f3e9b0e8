import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { berthKinds, claimKind, crdOf, crdsYaml, virtualMachineKind, vmSetKind } from "../index.ts";
import type { CustomResourceDefinition } from "../index.ts";

interface Version {
  readonly served: boolean;
  readonly storage: boolean;
  readonly subresources?: unknown;
  readonly additionalPrinterColumns: readonly { readonly name: string }[];
  readonly schema: { readonly openAPIV3Schema: { readonly properties: object } };
}

function versionOf(crd: CustomResourceDefinition): Version {
  const [version] = crd.spec["versions"] as unknown as Version[];
  assert.ok(version);
  return version;
}

describe("the CRD of a kind", () => {
  test("names it as kubectl and other clients will", () => {
    const { metadata, spec } = crdOf(virtualMachineKind);
    assert.equal(metadata.name, "virtualmachines.berth.dev");
    assert.deepEqual(spec["names"], {
      kind: "VirtualMachine",
      listKind: "VirtualMachineList",
      plural: "virtualmachines",
      singular: "virtualmachine",
      shortNames: ["vm", "bvm"],
      categories: ["berth"],
    });
    assert.equal(spec["scope"], "Namespaced");
    assert.equal(crdOf(claimKind).spec["scope"], "Cluster");
  });

  test("is served whatever this build serves, because somebody chose to apply it", () => {
    assert.equal(vmSetKind.served, false);
    assert.deepEqual(
      [versionOf(crdOf(vmSetKind)).served, versionOf(crdOf(vmSetKind)).storage],
      [true, true],
    );
  });

  test("has the columns that people look for in a list of machines", () => {
    const columns = versionOf(crdOf(virtualMachineKind)).additionalPrinterColumns;
    assert.deepEqual(
      columns.map(({ name }) => name.toUpperCase()),
      ["HYPERVISOR", "NODE", "ID", "POWER", "ADDRESS", "SYNCED", "READY", "REASON", "AGE"],
    );
  });

  test("has the subresources of its kind", () => {
    assert.deepEqual(versionOf(crdOf(vmSetKind)).subresources, {
      status: {},
      scale: {
        specReplicasPath: ".spec.replicas",
        statusReplicasPath: ".status.replicas",
        labelSelectorPath: ".status.selector",
      },
    });
    assert.ok(!("subresources" in versionOf(crdOf(claimKind))));
  });

  test("has the fields of every object beside those of its kind", () => {
    const { properties } = versionOf(crdOf(claimKind)).schema.openAPIV3Schema;
    assert.deepEqual(Object.keys(properties), ["apiVersion", "kind", "metadata", "spec"]);
  });

  test("shares nothing with the kind, so that nobody can change it by changing the CRD", () => {
    const { properties } = versionOf(crdOf(claimKind)).schema.openAPIV3Schema;
    Object.assign(properties, { spec: undefined });
    assert.ok(claimKind.schema.properties?.["spec"]);
  });
});

describe("the YAML of several CRDs", () => {
  test("reads back as the same CRDs, without aliases that a strict reader refuses", () => {
    const documents = parseAllDocuments(crdsYaml(berthKinds));
    assert.ok(Array.isArray(documents));
    const read = documents.map((document) => document.toJS({ maxAliasCount: 0 }) as unknown);
    assert.deepEqual(read, berthKinds.map(crdOf));
  });
});
