import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { builtinResources } from "../../api/builtin/index.ts";
import type { Resource } from "../../api/resource.ts";
import { ApiError } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { createCatalogue } from "../catalogue.ts";
import { createDiscovery } from "./index.ts";

const vmSet: Resource = {
  group: "berth.dev",
  version: "v1alpha1",
  kind: "VMSet",
  plural: "vmsets",
  singular: "vmset",
  shortNames: ["vmset"],
  categories: ["berth"],
  namespaced: true,
  description: "Several machines.",
  schema: {
    type: "object",
    properties: {},
  },
  subresources: {
    status: true,
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
    },
  },
  columns: [],
  served: true,
};

// Ours come first here to show that the core group does not care.
const discovery = createDiscovery(createCatalogue([vmSet, ...builtinResources]));
const aggregated = (version: string): string => {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
};
/** What client-go 0.30 and later sends. */
const newest = `${aggregated("v2")},${aggregated("v2beta1")},application/json`;

function get(path: string, headers: Record<string, string> = {}): WireResponse | undefined {
  return discovery({ path, query: new URLSearchParams(), headers });
}

function read(path: string, accept?: string): { type: string; body: unknown } {
  const response = get(path, accept === undefined ? {} : { accept });
  assert(response?.body instanceof Uint8Array);
  assert.equal(response.status, 200);
  const body: unknown = JSON.parse(Buffer.from(response.body).toString());
  return { type: response.headers["content-type"] ?? "", body };
}

const all = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const partVerbs = ["get", "patch", "update"];

describe("plain discovery", () => {
  test("/api names the versions of the core group", () => {
    assert.deepEqual(read("/api"), {
      type: "application/json",
      body: { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] },
    });
  });

  test("/apis names all groups but the core, those of questions last", () => {
    const entry = (name: string, version: string): object => {
      const named = { groupVersion: `${name}/${version}`, version };
      return { name, versions: [named], preferredVersion: named };
    };
    assert.deepEqual(read("/apis").body, {
      kind: "APIGroupList",
      apiVersion: "v1",
      groups: [
        entry("berth.dev", "v1alpha1"),
        entry("coordination.k8s.io", "v1"),
        entry("authentication.k8s.io", "v1"),
        entry("authorization.k8s.io", "v1"),
      ],
    });
  });

  test("/apis/GROUP is the group alone", () => {
    const version = { groupVersion: "berth.dev/v1alpha1", version: "v1alpha1" };
    assert.deepEqual(read("/apis/berth.dev").body, {
      kind: "APIGroup",
      apiVersion: "v1",
      name: "berth.dev",
      versions: [version],
      preferredVersion: version,
    });
  });

  test("/apis/GROUP/VERSION lists resources and what is under them", () => {
    const common = { singularName: "", namespaced: true, verbs: partVerbs };
    assert.deepEqual(read("/apis/berth.dev/v1alpha1").body, {
      kind: "APIResourceList",
      apiVersion: "v1",
      groupVersion: "berth.dev/v1alpha1",
      resources: [
        {
          name: "vmsets",
          singularName: "vmset",
          namespaced: true,
          kind: "VMSet",
          verbs: all,
          shortNames: ["vmset"],
          categories: ["berth"],
          storageVersionHash: "o2z0pEa3S+I=",
        },
        { ...common, name: "vmsets/scale", group: "autoscaling", version: "v1", kind: "Scale" },
        { ...common, name: "vmsets/status", kind: "VMSet" },
      ],
    });
  });

  test("/api/v1 agrees with kube-apiserver 1.32 about the built-in kinds", () => {
    const stored = (name: string, kind: string, more: object): object => ({
      name,
      singularName: kind.toLowerCase(),
      namespaced: true,
      kind,
      verbs: all,
      ...more,
    });
    assert.deepEqual(read("/api/v1").body, {
      kind: "APIResourceList",
      apiVersion: "v1",
      groupVersion: "v1",
      resources: [
        stored("namespaces", "Namespace", {
          namespaced: false,
          shortNames: ["ns"],
          storageVersionHash: "Q3oi5N2YM8M=",
          verbs: all.filter((verb) => verb !== "deletecollection"),
        }),
        {
          name: "namespaces/status",
          singularName: "",
          namespaced: false,
          kind: "Namespace",
          verbs: partVerbs,
        },
        stored("secrets", "Secret", { storageVersionHash: "S6u1pOWzb84=" }),
        stored("configmaps", "ConfigMap", {
          shortNames: ["cm"],
          storageVersionHash: "qFsyl6wFWjQ=",
        }),
        stored("serviceaccounts", "ServiceAccount", {
          shortNames: ["sa"],
          storageVersionHash: "pbx9ZvyFpBE=",
        }),
        stored("events", "Event", { shortNames: ["ev"], storageVersionHash: "r2yiGXH7wu8=" }),
      ],
    });
  });

  test("questions can only be asked", () => {
    const review = (kind: string): object => ({
      name: `${kind.toLowerCase()}s`,
      singularName: kind.toLowerCase(),
      namespaced: false,
      kind,
      verbs: ["create"],
    });
    assert.deepEqual(read("/apis/authorization.k8s.io/v1").body, {
      kind: "APIResourceList",
      apiVersion: "v1",
      groupVersion: "authorization.k8s.io/v1",
      resources: [review("SelfSubjectAccessReview"), review("SelfSubjectRulesReview")],
    });
    assert.deepEqual(read("/apis/authentication.k8s.io/v1").body, {
      kind: "APIResourceList",
      apiVersion: "v1",
      groupVersion: "authentication.k8s.io/v1",
      resources: [review("SelfSubjectReview")],
    });
  });
});

describe("aggregated discovery", () => {
  const berth = {
    metadata: { name: "berth.dev", creationTimestamp: null },
    versions: [
      {
        version: "v1alpha1",
        resources: [
          {
            resource: "vmsets",
            responseKind: { group: "berth.dev", version: "v1alpha1", kind: "VMSet" },
            scope: "Namespaced",
            singularResource: "vmset",
            verbs: all,
            shortNames: ["vmset"],
            categories: ["berth"],
            subresources: [
              {
                subresource: "scale",
                responseKind: { group: "autoscaling", version: "v1", kind: "Scale" },
                verbs: partVerbs,
              },
              {
                subresource: "status",
                responseKind: { group: "berth.dev", version: "v1alpha1", kind: "VMSet" },
                verbs: partVerbs,
              },
            ],
          },
        ],
        freshness: "Current",
      },
    ],
  };

  for (const version of ["v2", "v2beta1"]) {
    test(`${version} is answered under the very type it was asked for`, () => {
      const { type, body } = read("/apis", `${aggregated(version)},application/json`);
      assert.equal(type, aggregated(version));
      assert(typeof body === "object" && body && "items" in body && Array.isArray(body.items));
      const { items, ...head } = body;
      assert.deepEqual(head, {
        kind: "APIGroupDiscoveryList",
        metadata: {},
        apiVersion: `apidiscovery.k8s.io/${version}`,
      });
      assert.deepEqual(items[0], berth);
      assert.equal(items.length, 4);
    });
  }

  test("/api has the core group, which has no name", () => {
    const { body } = read("/api", newest);
    assert(typeof body === "object" && body && "items" in body && Array.isArray(body.items));
    assert.deepEqual(body.items[0]?.metadata, { creationTimestamp: null });
    assert.deepEqual(body.items[0]?.versions[0]?.resources[0], {
      resource: "namespaces",
      responseKind: { group: "", version: "v1", kind: "Namespace" },
      scope: "Cluster",
      singularResource: "namespace",
      verbs: all.filter((verb) => verb !== "deletecollection"),
      shortNames: ["ns"],
      subresources: [
        {
          subresource: "status",
          responseKind: { group: "", version: "v1", kind: "Namespace" },
          verbs: partVerbs,
        },
      ],
    });
  });
});

describe("negotiation", () => {
  const table: [string, string, string][] = [
    [newest, aggregated("v2"), "the first form that is known"],
    [`application/json,${aggregated("v2")}`, "application/json", "plain, where it comes first"],
    [`${aggregated("v3")},${aggregated("v2beta1")}`, aggregated("v2beta1"), "not a later one"],
    [`${aggregated("v2")};q=0.1,*/*`, "application/json", "the more wanted"],
    ["application/json;as=Table;g=meta.k8s.io;v=v1,*/*", "application/json", "no table of it"],
    ["application/vnd.kubernetes.protobuf,application/json", "application/json", "no protobuf"],
  ];
  for (const [accept, type, reason] of table) {
    test(`a client that takes ${accept} gets ${type}: ${reason}`, () => {
      assert.equal(read("/apis", accept).type, type);
    });
  }

  test("a client that takes nothing of it is refused", () => {
    for (const accept of ["text/html", aggregated("v3"), "application/vnd.kubernetes.protobuf"]) {
      assert.throws(
        () => get("/apis", { accept }),
        (error) => error instanceof ApiError && error.code === 406,
      );
    }
  });

  test("only the roots have the aggregated forms", () => {
    assert.equal(read("/apis/berth.dev", newest).type, "application/json");
  });
});

test("a form that the client has is not sent again, and is not taken for another", () => {
  const accept = aggregated("v2");
  const etag = get("/apis", { accept })?.headers.etag ?? "";
  assert.equal(get("/apis", { accept, "if-none-match": etag })?.status, 304);
  assert.equal(get("/apis", { "if-none-match": etag })?.status, 200);
  assert.equal(get("/apis", { accept })?.headers.vary, "Accept");
});

test("a path that is no part of discovery is left to others", () => {
  for (const path of ["", "/", "/ap", "/api/v2", "/apis/x", "/apis/berth.dev/v1", "/api/v1/x"]) {
    assert.equal(get(path), undefined, path);
  }
  assert.equal(get("/api/")?.status, 200);
});
