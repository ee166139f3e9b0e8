import assert from "node:assert/strict";
import { test } from "node:test";
import { createCatalogue } from "./catalogue.ts";
import { sampleResource } from "./fixture.ts";

const ready = sampleResource({ plural: "virtualmachines", kind: "VirtualMachine" });
const toCome = sampleResource({ plural: "vmsets", kind: "VMSet", served: false });

test("a kind whose controller is still to come is served only when all are", () => {
  const usual = createCatalogue([ready, toCome]);
  assert.deepEqual(usual.all(), [ready]);
  assert.equal(usual.find("berth.dev", "v1alpha1", "vmsets"), undefined);
  const all = createCatalogue([ready, toCome], { serveAll: true });
  assert.equal(all.find("berth.dev", "v1alpha1", "vmsets"), toCome);
});

test("kinds are found by plural and by kind, each within group and version", () => {
  const catalogue = createCatalogue([ready]);
  assert.equal(catalogue.find("berth.dev", "v1alpha1", "virtualmachines"), ready);
  assert.equal(catalogue.findKind("berth.dev", "v1alpha1", "VirtualMachine"), ready);
  assert.equal(catalogue.find("berth.dev", "v1", "virtualmachines"), undefined);
  assert.equal(catalogue.find("", "v1alpha1", "virtualmachines"), undefined);
  assert.equal(catalogue.findKind("berth.dev", "v1alpha1", "virtualmachines"), undefined);
});

test("two kinds with one plural are a mistake that does not start", () => {
  const twin = { ...ready, kind: "Other" };
  assert.throws(() => createCatalogue([ready, twin]), /only once/);
});
