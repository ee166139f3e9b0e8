import { qualifiedNameErrors } from "../../kernel/name-rules.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError } from "../../kernel/status.ts";
import { invalidField, requiredField, structAt, textAt } from "./native.ts";

/** Bounds that hold for events in the newer form, the one with an eventTime. */
const fieldLengthMax = 128;
const messageLengthMax = 1024;

/** An Event lies in the namespace of its object; those of cluster-wide objects lie in `default`. */
export function validateEvent(event: KubeObject): FieldError[] {
  return event.eventTime === undefined ? namespaceErrors(event, ["default"]) : newerErrors(event);
}

function newerErrors(event: KubeObject): FieldError[] {
  const involved = structAt(event, "involvedObject");
  const homeless = textAt(involved, "namespace") === "";
  return [
    ...(homeless ? namespaceErrors(event, ["default", "kube-system"]) : []),
    ...reporterErrors(textAt(event, "reportingComponent")),
    ...textErrors(event, "reportingInstance"),
    ...textErrors(event, "action"),
    ...textErrors(event, "reason"),
    ...lengthErrors(event, "message", messageLengthMax),
  ];
}

function namespaceErrors(event: KubeObject, clusterWide: readonly string[]): FieldError[] {
  const own = event.metadata.namespace ?? "";
  const wanted = textAt(structAt(event, "involvedObject"), "namespace");
  if (wanted === "" ? own === "" || clusterWide.includes(own) : own === wanted) return [];
  return [invalidField("involvedObject.namespace", wanted, "does not match event.namespace")];
}

function reporterErrors(reporter: string): FieldError[] {
  if (reporter === "") return [requiredField("reportingComponent")];
  return qualifiedNameErrors(reporter).map((detail) => {
    return invalidField("reportingComponent", reporter, detail);
  });
}

function textErrors(event: KubeObject, field: string): FieldError[] {
  if (textAt(event, field) === "") return [requiredField(field)];
  return lengthErrors(event, field, fieldLengthMax);
}

function lengthErrors(event: KubeObject, field: string, lengthMax: number): FieldError[] {
  if (Buffer.byteLength(textAt(event, field)) <= lengthMax) return [];
  return [invalidField(field, "", `can have at most ${lengthMax} characters`)];
}
