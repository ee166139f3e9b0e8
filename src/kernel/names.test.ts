import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  asPrefix,
  dnsLabelErrors,
  dnsSubdomainErrors,
  labelValueErrors,
  qualifiedNameErrors,
} from "./name-rules.ts";
import {
  validateAnnotations,
  validateFinalizers,
  validateLabels,
  validateMetadata,
  validateMetadataUpdate,
  validateOwnerReferences,
} from "./names.ts";
import type { ObjectMeta } from "./object.ts";
import { fieldErrorMessage, type FieldError } from "./status.ts";

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const qualified =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

test("takes DNS subdomains and nothing else for a name", () => {
  for (const good of ["a", "web-1", "a.b", "0", "a".repeat(253), "1.2.3-x"]) {
    assert.deepEqual(dnsSubdomainErrors(good), [], good);
  }
  for (const bad of ["", "A", "-a", "a-", "a..b", ".a", "a_b", "a/b", "é", "a\n"]) {
    assert.deepEqual(dnsSubdomainErrors(bad), [subdomain], bad);
  }
  const long = "must be no more than 253 characters";
  assert.deepEqual(dnsSubdomainErrors("a".repeat(254)), [long]);
  assert.deepEqual(dnsSubdomainErrors("A".repeat(254)), [long, subdomain]);
});

test("takes DNS labels and nothing else for a namespace", () => {
  for (const good of ["a", "a-b", "0", "a".repeat(63)]) assert.deepEqual(dnsLabelErrors(good), []);
  for (const bad of ["", "A", "-", "a-", "a_b"])
    assert.deepEqual(dnsLabelErrors(bad), [label], bad);
  assert.deepEqual(dnsLabelErrors("a.b"), ["must not contain dots"]);
  assert.deepEqual(dnsLabelErrors("a".repeat(64)), ["must be no more than 63 characters"]);
});

test("takes qualified names for label keys", () => {
  for (const good of ["a", "A_b.c-d", "example.com/a", "0", "a".repeat(63)]) {
    assert.deepEqual(qualifiedNameErrors(good), [], good);
  }
  const bad: [string, string[]][] = [
    ["", ["name part must be non-empty", `name part ${qualified}`]],
    ["-a", [`name part ${qualified}`]],
    ["/a", ["prefix part must be non-empty"]],
    ["a/", ["name part must be non-empty", `name part ${qualified}`]],
    ["A.com/a", [`prefix part ${subdomain}`]],
    ["a".repeat(64), ["name part must be no more than 63 characters"]],
    [
      "a/b/c",
      [
        `a qualified name ${qualified} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
      ],
    ],
  ];
  for (const [value, errors] of bad) assert.deepEqual(qualifiedNameErrors(value), errors, value);
});

test("takes label values, also the empty one", () => {
  for (const good of ["", "a", "A.b_c-d", "0", "a".repeat(63)]) {
    assert.deepEqual(labelValueErrors(good), [], good);
  }
  assert.deepEqual(labelValueErrors("a".repeat(64)), ["must be no more than 63 characters"]);
  for (const bad of ["-", "a ", " a", "a/b", "ä"])
    assert.equal(labelValueErrors(bad).length, 1, bad);
});

test("allows a prefix to end in a dash", () => {
  const rule = asPrefix(dnsSubdomainErrors);
  assert.deepEqual(rule("web-"), []);
  assert.deepEqual(rule("web--"), []);
  assert.equal(rule("-").length, 1);
  assert.equal(rule("Web-").length, 1);
});

const created: { reason: string; meta: ObjectMeta; namespaced: boolean; errors: string[] }[] = [
  { reason: "a name", meta: { name: "a", namespace: "b" }, namespaced: true, errors: [] },
  { reason: "a cluster-wide name", meta: { name: "a" }, namespaced: false, errors: [] },
  {
    reason: "no name",
    meta: { namespace: "b" },
    namespaced: true,
    errors: ["metadata.name: Required value: name or generateName is required"],
  },
  {
    reason: "a wrong name",
    meta: { name: "A", namespace: "b" },
    namespaced: true,
    errors: [`metadata.name: Invalid value: "A": ${subdomain}`],
  },
  {
    reason: "a wrong prefix and what was made of it",
    meta: { generateName: "AB-", name: "AB-x" },
    namespaced: false,
    errors: [
      `metadata.generateName: Invalid value: "AB-": ${subdomain}`,
      `metadata.name: Invalid value: "AB-x": ${subdomain}`,
    ],
  },
  {
    reason: "a namespace where there is none",
    meta: { name: "a", namespace: "b" },
    namespaced: false,
    errors: ["metadata.namespace: Forbidden: not allowed on this type"],
  },
  {
    reason: "no namespace where one is needed",
    meta: { name: "a" },
    namespaced: true,
    errors: ["metadata.namespace: Required value"],
  },
  {
    reason: "a namespace with dots",
    meta: { name: "a", namespace: "b.c" },
    namespaced: true,
    errors: ['metadata.namespace: Invalid value: "b.c": must not contain dots'],
  },
  {
    reason: "errors in the order of kube-apiserver",
    meta: { name: "a", labels: { "-": "" }, annotations: { "": "" }, finalizers: ["-"] },
    namespaced: false,
    errors: [
      `metadata.labels: Invalid value: "-": name part ${qualified}`,
      `metadata.annotations: Invalid value: "": name part must be non-empty`,
      `metadata.annotations: Invalid value: "": name part ${qualified}`,
      `metadata.finalizers: Invalid value: "-": name part ${qualified}`,
    ],
  },
];

for (const { reason, meta, namespaced, errors } of created) {
  test(`judges ${reason}`, () => {
    assert.deepEqual(shown(validateMetadata(meta, { namespaced })), errors);
  });
}

test("holds the name of a Namespace to a label", () => {
  const errors = validateMetadata({ name: "a.b" }, { namespaced: false, name: "label" });
  const words = 'metadata.name: Invalid value: "a.b": must not contain dots';
  assert.deepEqual(shown(errors), [words]);
});

test("shows the wrong label value, not its key", () => {
  const errors = validateLabels({ a: "not ok" }, "metadata.labels");
  assert.match(shown(errors)[0] ?? "", /^metadata.labels: Invalid value: "not ok": a valid label/);
});

test("ignores the case of an annotation's prefix", () => {
  assert.deepEqual(validateAnnotations({ "Example.COM/a": "x" }, "metadata.annotations"), []);
  assert.equal(validateLabels({ "Example.COM/a": "x" }, "metadata.labels").length, 1);
});

test("counts all annotations in bytes against 256 KiB", () => {
  const most = 256 * 1024;
  const field = "metadata.annotations";
  assert.deepEqual(validateAnnotations({ a: "x".repeat(most - 1) }, field), []);
  const words = "metadata.annotations: Too long: may not be more than 262144 bytes";
  assert.deepEqual(shown(validateAnnotations({ a: "x".repeat(most) }, field)), [words]);
  assert.deepEqual(shown(validateAnnotations({ a: "é".repeat(most / 2) }, field)), [words]);
});

test("refuses both finalizers of the garbage collector at once", () => {
  const words =
    'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set';
  assert.deepEqual(shown(validateFinalizers(["orphan", "foregroundDeletion"])), [words]);
});

const owner = { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "u" };

test("judges owner references", () => {
  const field = "metadata.ownerReferences";
  const table: [errors: string[], owners: (typeof owner & { controller?: boolean })[]][] = [
    [[], [owner, { ...owner, apiVersion: "berth.dev/v1alpha1", uid: "v", controller: true }]],
    [[`${field}[1].uid: Required value: must not be empty`], [owner, { ...owner, uid: "" }]],
    [
      [
        `${field}[0].apiVersion: Required value: must not be empty`,
        `${field}[0].kind: Required value: must not be empty`,
        `${field}[0].name: Required value: must not be empty`,
      ],
      [{ apiVersion: "", kind: "", name: "", uid: "u" }],
    ],
    [
      [`${field}[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>`],
      [{ ...owner, apiVersion: "a/b/c" }],
    ],
    [
      [`${field}[0].apiVersion: Invalid value: "a/": must be <group>/<version> or <version>`],
      [{ ...owner, apiVersion: "a/" }],
    ],
  ];
  for (const [errors, owners] of table) {
    assert.deepEqual(shown(validateOwnerReferences(owners)), errors);
  }
});

test("allows one controller only", () => {
  const owners = [
    { ...owner, controller: true },
    { ...owner, name: "b", uid: "v", controller: true },
  ];
  const [error] = shown(validateOwnerReferences(owners));
  const words =
    'Only one reference can have Controller set to true. Found "true" in references for ConfigMap/a and ConfigMap/b';
  assert.ok(error?.endsWith(words), error);
});

test("lets no Event own anything", () => {
  const [error] = shown(validateOwnerReferences([{ ...owner, kind: "Event" }]));
  assert.ok(error?.endsWith("/v1, Kind=Event is disallowed from being an owner"), error);
});

test("keeps what cannot be changed by an update", () => {
  const previous: ObjectMeta = { name: "a", namespace: "n", uid: "u", creationTimestamp: "t" };
  assert.deepEqual(validateMetadataUpdate({ ...previous, labels: { a: "b" } }, previous), []);
  const next = { name: "b", uid: "v" };
  assert.deepEqual(shown(validateMetadataUpdate(next, previous)), [
    'metadata.name: Invalid value: "b": field is immutable',
    "metadata.namespace: Invalid value: null: field is immutable",
    'metadata.uid: Invalid value: "v": field is immutable',
    "metadata.creationTimestamp: Invalid value: null: field is immutable",
  ]);
});

test("adds no finalizer to an object that is being deleted", () => {
  const previous: ObjectMeta = { name: "a", deletionTimestamp: "t", finalizers: ["a", "b"] };
  assert.deepEqual(validateMetadataUpdate({ ...previous, finalizers: ["b"] }, previous), []);
  const errors = validateMetadataUpdate({ ...previous, finalizers: ["d", "b", "c"] }, previous);
  assert.deepEqual(shown(errors), [
    'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c", "d"}',
  ]);
});

test("a name that is a label is a subdomain too", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[-a-z0-9.]{0,70}$/), (name) => {
      if (dnsLabelErrors(name).length === 0) assert.deepEqual(dnsSubdomainErrors(name), []);
    }),
  );
});

function shown(errors: FieldError[]): string[] {
  return errors.map((error) => `${error.field}: ${fieldErrorMessage(error)}`);
}
