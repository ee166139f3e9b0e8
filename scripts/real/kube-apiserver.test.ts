import assert from "node:assert/strict";
import { test } from "node:test";
import { etcdPath, kubeApiserverPath, whatIsMissing } from "./kube-apiserver.ts";

test("a Kubernetes API needs its server and its etcd, and names the one that is not there", () => {
  assert.equal(
    whatIsMissing(() => false),
    `there is no ${kubeApiserverPath}, nor ${etcdPath}`,
  );
  assert.equal(
    whatIsMissing((path) => path === etcdPath),
    `there is no ${kubeApiserverPath}`,
  );
  assert.equal(
    whatIsMissing(() => true),
    undefined,
  );
});

test("a program of another version is another program", () => {
  assert.match(kubeApiserverPath, /kube-apiserver-1\.\d+\.\d+$/);
  assert.match(etcdPath, /etcd-3\.\d+\.\d+$/);
});
