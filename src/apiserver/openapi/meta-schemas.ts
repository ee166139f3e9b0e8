import { describedReference, reference, type OpenApiSchema } from "./schema.ts";

const metaPackage = "io.k8s.apimachinery.pkg.apis.meta.v1";

/** The names of the components that every document has, as Kubernetes calls them. */
export const metaNames = {
  objectMeta: `${metaPackage}.ObjectMeta`,
  ownerReference: `${metaPackage}.OwnerReference`,
  managedFields: `${metaPackage}.ManagedFieldsEntry`,
  fieldsV1: `${metaPackage}.FieldsV1`,
  listMeta: `${metaPackage}.ListMeta`,
  time: `${metaPackage}.Time`,
  patch: `${metaPackage}.Patch`,
  status: `${metaPackage}.Status`,
  statusDetails: `${metaPackage}.StatusDetails`,
  statusCause: `${metaPackage}.StatusCause`,
  deleteOptions: `${metaPackage}.DeleteOptions`,
  preconditions: `${metaPackage}.Preconditions`,
  intOrString: "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
} as const;

export const apiVersionField = text("The group and version of the kind, such as v1.");
export const kindField = text("The kind of the object, such as Secret.");

const ownerReference = struct(
  "An object of the same namespace, or cluster-wide, to which this one belongs.",
  {
    apiVersion: text("The API version of the owner."),
    kind: text("The kind of the owner."),
    name: text("The name of the owner."),
    uid: text("The uid of the owner: another object of the same name is not the owner."),
    controller: flag("The owner is what manages this object; at most one may be."),
    blockOwnerDeletion: flag("The owner is not removed in the foreground while this object is."),
  },
  {
    required: ["apiVersion", "kind", "name", "uid"],
    "x-kubernetes-map-type": "atomic",
  },
);

const objectMeta = struct("What every object has: its name, its labels, its life.", {
  name: text("The name, unique among objects of its kind in its namespace. It cannot be changed."),
  generateName: text("Where name is absent, the server makes one up that begins so."),
  namespace: text("The namespace of the object. It cannot be changed."),
  labels: textMap("Keys and values by which objects are selected."),
  annotations: textMap("Keys and values for tools and people; they are not selected by."),
  finalizers: {
    description: "What still has to be done before a deleted object may go. Each does its own.",
    type: "array",
    items: { type: "string" },
    "x-kubernetes-list-type": "set",
    "x-kubernetes-patch-strategy": "merge",
  },
  ownerReferences: {
    description: "To what this object belongs: when all of its owners are gone, it goes too.",
    type: "array",
    items: reference(metaNames.ownerReference),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["uid"],
    "x-kubernetes-patch-merge-key": "uid",
    "x-kubernetes-patch-strategy": "merge",
  },
  uid: text("Unique over all objects and all times. The server sets it."),
  resourceVersion: text("The revision of the object. A write that names an older one is refused."),
  generation: int64("Counts the changes of what is wanted. The server sets it."),
  creationTimestamp: describedReference("When the object was created.", metaNames.time),
  deletionTimestamp: describedReference("When deletion was asked for.", metaNames.time),
  deletionGracePeriodSeconds: int64("How long the object may take to go."),
  selfLink: text("Not used any more."),
  managedFields: {
    description: "Which program set which fields. The server keeps it.",
    type: "array",
    items: reference(metaNames.managedFields),
    "x-kubernetes-list-type": "atomic",
  },
});

const managedFields = struct("The fields that one program set.", {
  manager: text("The program."),
  operation: text("How it set them: Apply or Update."),
  apiVersion: text("The version of the kind in which the fields are named."),
  time: describedReference("When it last did.", metaNames.time),
  fieldsType: text("The form of the fields: FieldsV1."),
  fieldsV1: describedReference("The fields.", metaNames.fieldsV1),
  subresource: text("The subresource through which it wrote, if one."),
});

const status = struct("The answer to a request that has no object to answer with.", {
  apiVersion: apiVersionField,
  kind: kindField,
  metadata: describedReference("Nothing.", metaNames.listMeta),
  status: text("Success or Failure."),
  message: text("What happened, for people."),
  reason: text("Why, as one word for programs."),
  details: describedReference("To what it happened, and where.", metaNames.statusDetails),
  code: { description: "The HTTP status code.", type: "integer", format: "int32" },
});

const statusDetails = struct("What a failure is about.", {
  group: text("The group of the kind."),
  kind: text("The kind, or its plural."),
  name: text("The name of the object."),
  uid: text("The uid of the object."),
  causes: {
    description: "All that is wrong, field by field.",
    type: "array",
    items: reference(metaNames.statusCause),
    "x-kubernetes-list-type": "atomic",
  },
  retryAfterSeconds: {
    description: "When to try again.",
    type: "integer",
    format: "int32",
  },
});

const deleteOptions = struct("How to delete.", {
  apiVersion: apiVersionField,
  kind: kindField,
  gracePeriodSeconds: int64("How long the object may take to go."),
  preconditions: describedReference("Delete only this very one.", metaNames.preconditions),
  propagationPolicy: text("What becomes of what it owns: Orphan, Background or Foreground."),
  orphanDependents: flag("Older word for a propagationPolicy of Orphan."),
  dryRun: {
    description: "All: check everything, delete nothing.",
    type: "array",
    items: { type: "string" },
    "x-kubernetes-list-type": "atomic",
  },
});

export const metaSchemas: Readonly<Record<string, OpenApiSchema>> = {
  [metaNames.objectMeta]: objectMeta,
  [metaNames.ownerReference]: ownerReference,
  [metaNames.managedFields]: managedFields,
  [metaNames.fieldsV1]: struct("A set of fields, as a tree of their names.", {}),
  [metaNames.listMeta]: struct("What every list has.", {
    resourceVersion: text("The revision at which the list was read: watches go on from it."),
    continue: text("Asks for the next page, where there is one."),
    remainingItemCount: int64("How many items the pages to come hold."),
    selfLink: text("Not used any more."),
  }),
  [metaNames.time]: { description: "A time, RFC 3339.", type: "string", format: "date-time" },
  [metaNames.intOrString]: {
    description: "A number, or a text that says one.",
    oneOf: [{ type: "integer" }, { type: "string" }],
  },
  [metaNames.patch]: {
    description: "A change, in the form that its media type names.",
    type: "object",
  },
  [metaNames.status]: status,
  [metaNames.statusDetails]: statusDetails,
  [metaNames.statusCause]: struct("One thing that is wrong.", {
    field: text("Where: the path of the field."),
    message: text("What is wrong, for people."),
    reason: text("What is wrong, as one word for programs."),
  }),
  [metaNames.deleteOptions]: deleteOptions,
  [metaNames.preconditions]: struct("What must hold, or else nothing is done.", {
    uid: text("The object has this uid."),
    resourceVersion: text("The object has this revision."),
  }),
};

function struct(
  description: string,
  properties: Record<string, OpenApiSchema>,
  options: OpenApiSchema = {},
): OpenApiSchema {
  return { description, type: "object", properties, ...options };
}

function text(description: string): OpenApiSchema {
  return { description, type: "string" };
}

function textMap(description: string): OpenApiSchema {
  return { description, type: "object", additionalProperties: { type: "string" } };
}

function flag(description: string): OpenApiSchema {
  return { description, type: "boolean" };
}

function int64(description: string): OpenApiSchema {
  return { description, type: "integer", format: "int64" };
}
