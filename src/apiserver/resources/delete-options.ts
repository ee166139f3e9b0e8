import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { getMember } from "../../kernel/json-member.ts";
import { badRequest, type FieldError } from "../../kernel/status.ts";
import type { ResourceRequest } from "../contract.ts";
import type { DeletionOptions } from "../objects/index.ts";
import { parseBody, type ExpectedKind } from "./decode.ts";
import { invalidValue, unsupportedValue } from "./errors.ts";
import { assertOptions, dryRunErrors, flagParameter, integerParameter } from "./options.ts";

export interface DeleteOptions {
  readonly deletion: DeletionOptions;
  readonly dryRun: boolean;
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string };
}

const expected: ExpectedKind = {
  group: "meta.k8s.io",
  version: "v1",
  kind: "DeleteOptions",
  isNative: true,
};

/**
 * The options of a DELETE: those in its body or, if it has none, those in its query. A dry run is
 * believed wherever it is asked for, since the misunderstanding could not be mended.
 */
export function parseDeleteOptions(request: ResourceRequest): DeleteOptions {
  const given = request.body.byteLength > 0 ? bodyOptions(request) : queryOptions(request.query);
  const { policy, orphanDependents, preconditions } = given;
  const dryRun = [...given.dryRun, ...request.query.getAll("dryRun")];
  assertOptions("DeleteOptions", [
    ...policyErrors(policy, orphanDependents),
    ...dryRunErrors(dryRun),
  ]);
  return {
    deletion: {
      ...(isPolicy(policy) ? { propagationPolicy: policy } : {}),
      ...(orphanDependents === undefined ? {} : { orphanDependents }),
    },
    dryRun: dryRun.length > 0,
    preconditions,
  };
}

interface GivenOptions {
  readonly policy: string | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly dryRun: readonly string[];
  readonly preconditions: DeleteOptions["preconditions"];
}

function queryOptions(query: URLSearchParams): GivenOptions {
  // Objects here go at once or when their finalizers let them, so the number means nothing.
  integerParameter(query, "gracePeriodSeconds");
  return {
    policy: query.get("propagationPolicy") ?? undefined,
    orphanDependents: flagParameter(query, "orphanDependents"),
    dryRun: [],
    preconditions: {},
  };
}

function bodyOptions(request: ResourceRequest): GivenOptions {
  const { value } = parseBody(request, expected);
  if (!isJsonObject(value)) throw badRequest("the body of a DELETE must be a DeleteOptions object");
  const kind = textAt(value, "kind");
  if (kind !== undefined && kind !== "DeleteOptions") {
    throw badRequest(`${kind} cannot be handled as a DeleteOptions`);
  }
  const grace = getMember(value, "gracePeriodSeconds") ?? 0;
  if (!Number.isSafeInteger(grace)) throw mistyped("gracePeriodSeconds", "int64");
  return {
    policy: textAt(value, "propagationPolicy"),
    orphanDependents: flagAt(value, "orphanDependents"),
    dryRun: textsAt(value, "dryRun"),
    preconditions: preconditionsAt(value),
  };
}

function preconditionsAt(value: JsonObject): DeleteOptions["preconditions"] {
  const found = getMember(value, "preconditions") ?? {};
  if (!isJsonObject(found)) throw mistyped("preconditions", "v1.Preconditions");
  const uid = textAt(found, "uid");
  const resourceVersion = textAt(found, "resourceVersion");
  return {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

const policies = ["Foreground", "Background", "Orphan"] as const;

function isPolicy(policy: string | undefined): policy is (typeof policies)[number] {
  return policies.some((known) => known === policy);
}

function policyErrors(
  policy: string | undefined,
  orphanDependents: boolean | undefined,
): FieldError[] {
  if (policy === undefined) return [];
  const field = "propagationPolicy";
  const shown = JSON.stringify(policy);
  const errors: FieldError[] = [];
  if (orphanDependents !== undefined) {
    const detail = "orphanDependents and deletionPropagation cannot be both set";
    errors.push(invalidValue(field, shown, detail));
  }
  if (!isPolicy(policy)) errors.push(unsupportedValue(field, shown, [...policies, "nil"]));
  return errors;
}

function textAt(value: JsonObject, field: string): string | undefined {
  const found = getMember(value, field) ?? undefined;
  if (found === undefined || typeof found === "string") return found;
  throw mistyped(field, "string");
}

function flagAt(value: JsonObject, field: string): boolean | undefined {
  const found = getMember(value, field) ?? undefined;
  if (found === undefined || typeof found === "boolean") return found;
  throw mistyped(field, "bool");
}

function textsAt(value: JsonObject, field: string): string[] {
  const found = getMember(value, field) ?? [];
  if (!Array.isArray(found)) throw mistyped(field, "[]string");
  return found.map((item) => {
    if (typeof item !== "string") throw mistyped(field, "string");
    return item;
  });
}

function mistyped(field: string, type: string): Error {
  return badRequest(
    'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: json: cannot unmarshal ' +
      `the value of DeleteOptions.${field} into type ${type}`,
  );
}
