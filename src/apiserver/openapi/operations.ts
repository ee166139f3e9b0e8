import type { Resource } from "../../api/resource.ts";
import { componentName, groupVersionKind, listComponentName } from "./components.ts";
import { metaNames } from "./meta-schemas.ts";
import { deleteParameters, listParameters, readParameters } from "./parameters.ts";
import { selectionParameters, writeParameters, type Parameter } from "./parameters.ts";
import { scaleName } from "./scale-schemas.ts";
import { reference, type GroupVersionKind } from "./schema.ts";

/** One method on one path. */
export interface Operation {
  readonly description: string;
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required?: true; readonly content: Content };
  readonly responses: Readonly<Record<string, object>>;
  readonly "x-kubernetes-action": string;
  /** By this clients find the operations of a kind. */
  readonly "x-kubernetes-group-version-kind": GroupVersionKind;
}

type Content = Readonly<Record<string, object>>;
type Operations = Readonly<Record<string, Operation>>;

/** The kind of which a path speaks, and what tells its operations from those of other paths. */
interface Place {
  readonly resource: Resource;
  /** The schema of what is read and written there. */
  readonly component: string;
  readonly kind: GroupVersionKind;
  /** "Namespaced" and "Status" and the like, as Kubernetes composes its operation ids. */
  readonly scope: string;
  readonly suffix: string;
}

export function collectionOperations(resource: Resource): Operations {
  const place = objectPlace(resource);
  const list = listOperation(place);
  const post = operation(place, "post", {
    verb: "create",
    description: `Creates a ${resource.kind}.`,
    parameters: writeParameters,
    body: jsonBody(place.component),
    answers: { "200": place.component, "201": place.component, "202": place.component },
  });
  const remove = operation(place, "deletecollection", {
    verb: "deleteCollection",
    description: `Deletes all objects of the kind ${resource.kind} that match.`,
    parameters: [...selectionParameters, ...deleteParameters],
    body: { content: jsonContent(metaNames.deleteOptions) },
    answers: { "200": metaNames.status },
  });
  return { get: list, post, delete: remove };
}

/** The list over all namespaces: there is nothing else to be done in all of them at once. */
export function allNamespacesOperations(resource: Resource): Operations {
  return {
    get: listOperation({ ...objectPlace(resource), scope: "", suffix: "ForAllNamespaces" }),
  };
}

export function objectOperations(resource: Resource): Operations {
  const place = objectPlace(resource);
  const remove = operation(place, "delete", {
    verb: "delete",
    description: `Deletes a ${resource.kind}.`,
    parameters: deleteParameters,
    body: { content: jsonContent(metaNames.deleteOptions) },
    answers: { "200": metaNames.status, "202": metaNames.status },
  });
  return { ...readWriteOperations(place), delete: remove };
}

export function statusOperations(resource: Resource): Operations {
  return readWriteOperations({ ...objectPlace(resource), suffix: "Status" });
}

export function scaleOperations(resource: Resource): Operations {
  const kind = { group: "autoscaling", version: "v1", kind: "Scale" };
  return readWriteOperations({
    ...objectPlace(resource),
    component: scaleName,
    kind,
    suffix: "Scale",
  });
}

function objectPlace(resource: Resource): Place {
  const scope = resource.namespaced ? "Namespaced" : "";
  const kind = groupVersionKind(resource);
  return { resource, component: componentName(resource), kind, scope, suffix: "" };
}

function listOperation(place: Place): Operation {
  return operation(place, "list", {
    verb: "list",
    description: `Lists or watches objects of the kind ${place.resource.kind}.`,
    parameters: listParameters,
    answers: { "200": listComponentName(place.resource) },
  });
}

function readWriteOperations(place: Place): Operations {
  const { component } = place;
  const { suffix, resource } = place;
  const what = `${suffix === "" ? "a" : `the ${suffix.toLowerCase()} of a`} ${resource.kind}`;
  const written = { "200": component, "201": component };
  return {
    get: operation(place, "get", {
      verb: "read",
      description: `Reads ${what}.`,
      parameters: readParameters,
      answers: { "200": component },
    }),
    put: operation(place, "put", {
      verb: "replace",
      description: `Replaces ${what}.`,
      parameters: writeParameters,
      body: jsonBody(component),
      answers: written,
    }),
    patch: operation(place, "patch", {
      verb: "patch",
      description: `Changes parts of ${what}.`,
      parameters: writeParameters,
      body: { required: true, content: patchContent(place.resource) },
      answers: written,
    }),
  };
}

interface OperationParts {
  readonly verb: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly body?: { readonly required?: true; readonly content: Content };
  readonly answers: Readonly<Record<string, string>>;
}

function operation(place: Place, action: string, parts: OperationParts): Operation {
  const { group, version, kind } = place.resource;
  const words = [...(group || "core").split("."), version].map(capitalised).join("");
  const answers: Record<string, object> = { "401": { description: "Unauthorized" } };
  for (const [code, component] of Object.entries(parts.answers)) {
    answers[code] = { description: answerWords[code] ?? "", content: jsonContent(component) };
  }
  return {
    description: parts.description,
    operationId: `${parts.verb}${words}${place.scope}${kind}${place.suffix}`,
    tags: [`${group.split(".")[0] || "core"}_${version}`],
    parameters: parts.parameters,
    ...(parts.body ? { requestBody: parts.body } : {}),
    responses: answers,
    "x-kubernetes-action": action,
    "x-kubernetes-group-version-kind": place.kind,
  };
}

const answerWords: Readonly<Record<string, string>> = {
  "200": "OK",
  "201": "Created",
  "202": "Accepted",
};

function jsonContent(component: string): Content {
  return { "application/json": { schema: reference(component) } };
}

function jsonBody(component: string): { required: true; content: Content } {
  return { required: true, content: jsonContent(component) };
}

/** kubectl chooses the form of `apply` by this: strategic merge is for kinds with merge keys. */
function patchContent(resource: Resource): Content {
  const types = ["application/json-patch+json", "application/merge-patch+json"];
  if (resource.native) types.push("application/strategic-merge-patch+json");
  return Object.fromEntries(types.map((type) => [type, { schema: reference(metaNames.patch) }]));
}

function capitalised(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}
