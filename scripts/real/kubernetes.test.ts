import assert from "node:assert/strict";
import { test } from "node:test";
import { requiringModule } from "./kubernetes.ts";

test("the module that requires Kubernetes takes each part of Kubernetes from where it is published", () => {
  const module = requiringModule(
    "module k8s.io/kubernetes\n\ngo 1.24.0\n\nreplace (\n" +
      "\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/kms => ./staging/src/k8s.io/kms\n)\n",
  );
  assert.match(module, /^go 1\.24\.0$/m);
  assert.match(module, /^replace k8s\.io\/api => k8s\.io\/api v0\.\d+\.\d+$/m);
  assert.match(module, /^replace k8s\.io\/kms => k8s\.io\/kms v0\.\d+\.\d+$/m);
});
