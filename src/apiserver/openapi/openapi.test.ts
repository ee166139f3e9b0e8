import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { builtinResources } from "../../api/builtin/index.ts";
import type { Resource } from "../../api/resource.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { createCatalogue } from "../catalogue.ts";
import { createOpenApi } from "./index.ts";

const vmSet: Resource = {
  group: "berth.dev",
  version: "v1alpha1",
  kind: "VMSet",
  plural: "vmsets",
  singular: "vmset",
  shortNames: [],
  categories: [],
  namespaced: true,
  description: "Several machines.",
  schema: {
    type: "object",
    properties: {
      spec: {
        type: "object",
        description: "What is wanted.",
        required: ["replicas"],
        properties: {
          replicas: {
            type: "integer",
            description: "How many.",
          },
          cpu: {
            "x-kubernetes-int-or-string": true,
            description: "Cores.",
          },
        },
      },
    },
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

const openApi = createOpenApi(createCatalogue([...builtinResources, vmSet]));

function get(url: string, headers: Record<string, string> = {}): WireResponse | undefined {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  return openApi({ path: pathname, query: searchParams, headers });
}

function read(url: string): JsonObject {
  const response = get(url);
  assert(response?.body instanceof Uint8Array, `${url} is served`);
  assert.equal(response.headers["content-type"], "application/json");
  const parsed: unknown = JSON.parse(Buffer.from(response.body).toString());
  assert(isJsonObject(parsed));
  return parsed;
}

/** What stands at a place in a document; keys may contain dots and slashes. */
function at(document: JsonObject, ...keys: string[]): JsonObject {
  let found: unknown = document;
  for (const key of keys) found = isJsonObject(found) ? found[key] : undefined;
  assert(isJsonObject(found), `there is something at ${keys.join(" ")}`);
  return found;
}

function indexUrls(): Map<string, string> {
  const paths = Object.entries(at(read("/openapi/v3"), "paths"));
  return new Map(
    paths.map(([key, entry]) => [
      key,
      JSON.stringify(at({ entry }, "entry").serverRelativeURL).slice(1, -1),
    ]),
  );
}

const core = read("/openapi/v3/api/v1");
const berth = read("/openapi/v3/apis/berth.dev/v1alpha1");
const coordination = read("/openapi/v3/apis/coordination.k8s.io/v1");

describe("the index", () => {
  test("names every group and version, and nothing that is only a question", () => {
    assert.deepEqual(
      [...indexUrls().keys()],
      ["api/v1", "apis/coordination.k8s.io/v1", "apis/berth.dev/v1alpha1"],
    );
  });

  test("names documents that may be kept for ever", () => {
    for (const [key, url] of indexUrls()) {
      assert.match(url, new RegExp(`^/openapi/v3/${key}\\?hash=[0-9A-F]{64}$`));
      assert.match(get(url)?.headers["cache-control"] ?? "", /immutable/);
      const [path = ""] = url.split("?");
      assert.doesNotMatch(get(path)?.headers["cache-control"] ?? "", /immutable/);
      assert.doesNotMatch(get(`${path}?hash=0`)?.headers["cache-control"] ?? "", /immutable/);
    }
  });

  test("changes with any document", () => {
    const other = createOpenApi(createCatalogue([{ ...vmSet, description: "Other words." }]));
    const request = { path: "/openapi/v3", query: new URLSearchParams(), headers: {} };
    assert.notEqual(other(request)?.headers.etag, get("/openapi/v3")?.headers.etag);
  });

  test("is not sent again to who has it", () => {
    const etag = get("/openapi/v3")?.headers.etag ?? "";
    assert.equal(get("/openapi/v3", { "if-none-match": etag })?.status, 304);
  });
});

describe("every document", () => {
  for (const [key, document] of Object.entries({ core, berth, coordination })) {
    test(`of ${key} refers only to what it has`, () => {
      const schemas = at(document, "components", "schemas");
      const references = JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g);
      const names = new Set([...references].map((match) => match[1]));
      assert.ok(names.size > 5);
      for (const name of names) {
        const [prefix, component = ""] = name?.split("schemas/") ?? [];
        assert.equal(prefix, "#/components/");
        assert.ok(Object.hasOwn(schemas, component), name);
      }
    });

    test(`of ${key} gives each operation an id of its own`, () => {
      const ids = [...JSON.stringify(document).matchAll(/"operationId":"(\w+)"/g)];
      assert.equal(new Set(ids.map((match) => match[1])).size, ids.length);
    });
  }
});

describe("the schema of a kind", () => {
  test("has the kind by which clients look for it, and the implied fields", () => {
    const schema = at(berth, "components", "schemas", "dev.berth.v1alpha1.VMSet");
    assert.equal(schema.description, "Several machines.");
    assert.deepEqual(schema["x-kubernetes-group-version-kind"], [
      { group: "berth.dev", version: "v1alpha1", kind: "VMSet" },
    ]);
    assert.deepEqual(Object.keys(at(schema, "properties")), [
      "apiVersion",
      "kind",
      "metadata",
      "spec",
    ]);
    assert.deepEqual(at(schema, "properties", "spec").required, ["replicas"]);
  });

  test("gives what is a number or a text a name to be called by", () => {
    const names = ["components", "schemas", "dev.berth.v1alpha1.VMSet", "properties", "spec"];
    assert.deepEqual(at(berth, ...names, "properties", "cpu").allOf, [
      { $ref: "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString" },
    ]);
  });

  test("is called as Kubernetes calls it, where it is Kubernetes' own", () => {
    at(core, "components", "schemas", "io.k8s.api.core.v1.Secret");
    at(core, "components", "schemas", "io.k8s.api.core.v1.SecretList");
    at(coordination, "components", "schemas", "io.k8s.api.coordination.v1.Lease");
  });

  test("tells strategic merge its keys", () => {
    const account = at(core, "components", "schemas", "io.k8s.api.core.v1.ServiceAccount");
    const secrets = at(account, "properties", "secrets");
    assert.equal(secrets["x-kubernetes-patch-merge-key"], "name");
    assert.equal(secrets["x-kubernetes-patch-strategy"], "merge");
    const metadata = at(
      ...([core, "components", "schemas"] as const),
      "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
    );
    const owners = at(metadata, "properties", "ownerReferences");
    assert.equal(owners["x-kubernetes-patch-merge-key"], "uid");
    const finalizers = at(metadata, "properties", "finalizers");
    assert.equal(finalizers["x-kubernetes-patch-strategy"], "merge");
    assert.equal(finalizers["x-kubernetes-patch-merge-key"], undefined);
  });

  test("leaves the kind's own schema as it was", () => {
    assert.ok(!JSON.stringify(builtinResources).includes("patch-merge-key"));
  });
});

describe("the patch operation", () => {
  const namespaces = at(core, "paths", "/api/v1/namespaces/{name}", "patch");
  const sets = "/apis/berth.dev/v1alpha1/namespaces/{namespace}/vmsets/{name}";

  test("says that the server knows field validation and dry runs", () => {
    for (const operation of [namespaces, at(berth, "paths", sets, "patch")]) {
      const { parameters } = operation;
      assert(Array.isArray(parameters));
      const names = parameters.map((parameter) => isJsonObject(parameter) && parameter.name);
      assert.ok(names.includes("fieldValidation") && names.includes("dryRun"));
    }
  });

  test("takes a strategic merge for built-in kinds only", () => {
    const strategic = "application/strategic-merge-patch+json";
    const types = (operation: JsonObject): string[] => {
      return Object.keys(at(operation, "requestBody", "content"));
    };
    assert.ok(types(namespaces).includes(strategic));
    assert.ok(!types(at(berth, "paths", sets, "patch")).includes(strategic));
  });

  test("is found by its kind, also where it is a Scale", () => {
    assert.deepEqual(namespaces["x-kubernetes-group-version-kind"], {
      group: "",
      version: "v1",
      kind: "Namespace",
    });
    const scale = at(berth, "paths", `${sets}/scale`, "patch");
    assert.deepEqual(scale["x-kubernetes-group-version-kind"], {
      group: "autoscaling",
      version: "v1",
      kind: "Scale",
    });
  });
});

test("each kind has the paths that the server has for it", () => {
  assert.deepEqual(Object.keys(at(berth, "paths")).toSorted(), [
    "/apis/berth.dev/v1alpha1/namespaces/{namespace}/vmsets",
    "/apis/berth.dev/v1alpha1/namespaces/{namespace}/vmsets/{name}",
    "/apis/berth.dev/v1alpha1/namespaces/{namespace}/vmsets/{name}/scale",
    "/apis/berth.dev/v1alpha1/namespaces/{namespace}/vmsets/{name}/status",
    "/apis/berth.dev/v1alpha1/vmsets",
  ]);
  const namespaces = Object.keys(at(core, "paths")).filter((path) =>
    /\/namespaces(\/{name}|$)/.test(path),
  );
  assert.deepEqual(namespaces.toSorted(), [
    "/api/v1/namespaces",
    "/api/v1/namespaces/{name}",
    "/api/v1/namespaces/{name}/status",
  ]);
});

describe("what is not served", () => {
  const refused = (url: string, accept: string): void => {
    assert.throws(
      () => get(url, { accept }),
      (error) => error instanceof ApiError && error.code === 406,
    );
  };

  test("v3 in protobuf is refused, unless the client takes JSON too", () => {
    const protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    refused("/openapi/v3/api/v1", protobuf);
    assert.equal(get("/openapi/v3/api/v1", { accept: `${protobuf},*/*` })?.status, 200);
  });

  test("v2 is an empty document, and only in the form that kubectl cannot do without", () => {
    refused("/openapi/v2", "application/json");
    const accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    const response = get("/openapi/v2", { accept });
    assert(response?.body instanceof Uint8Array);
    const bytes = "0a03322e3012140a054265727468120b756e76657273696f6e6564";
    assert.equal(Buffer.from(response.body).toString("hex"), bytes);
  });

  test("other paths are left to others", () => {
    for (const path of ["/openapi", "/openapi/v3/", "/openapi/v3/apis/x/v1", "/openapi/v4"]) {
      assert.equal(get(path), undefined, path);
    }
  });
});
