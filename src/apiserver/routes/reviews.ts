import type { Json, JsonObject } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { badRequest } from "../../kernel/status.ts";
import type { Attributes, Authorizer, Verdict } from "../authorization/index.ts";
import type { Catalogue, User } from "../contract.ts";
import { jsonResponse } from "./responses.ts";
import { readReview } from "./review-body.ts";
import type { Route, UserCall } from "./route.ts";
import { rulesOf } from "./rules.ts";

/** What the answers are made from. */
export interface ReviewEnvironment {
  readonly catalogue: Catalogue;
  readonly authorizer: Authorizer;
  /** Whether a user may read a path that is no object's. */
  readonly mayRead: (user: User, path: string) => boolean;
}

/**
 * Users ask about themselves: `kubectl auth can-i` and `kubectl auth whoami`. Nothing is stored,
 * and nobody can ask about others.
 */
export function reviewRoutes(environment: ReviewEnvironment): Route[] {
  return [
    review("authentication.k8s.io/v1", "SelfSubjectReview", whoAmI),
    // kubectl 1.27 knows no later one.
    review("authentication.k8s.io/v1beta1", "SelfSubjectReview", whoAmI),
    review("authorization.k8s.io/v1", "SelfSubjectAccessReview", ({ user }, spec) => {
      return accessReview(environment, user, spec);
    }),
    review("authorization.k8s.io/v1", "SelfSubjectRulesReview", ({ user }, spec) => {
      return rulesOf(environment, user, textOf(spec, "namespace") ?? "default");
    }),
  ];
}

function whoAmI({ user }: UserCall): object {
  return { userInfo: { username: user.name, uid: user.uid, groups: user.groups } };
}

function review(
  apiVersion: string,
  kind: string,
  statusOf: (call: UserCall, spec: JsonObject) => object,
): Route {
  return {
    pattern: `/apis/${apiVersion}/${kind.toLowerCase()}s`,
    methods: ["POST"],
    access: "authenticated",
    serve: (call) => {
      const body = readReview(call.request, { apiVersion, kind });
      const spec = isJsonObject(body["spec"]) ? body["spec"] : {};
      const status = statusOf(call, spec);
      // A SelfSubjectReview asks nothing, so it has no spec to give back.
      const asked = body["spec"] === undefined ? {} : { spec: textsOf(spec, 1) };
      const metadata = { creationTimestamp: null };
      return jsonResponse(201, { kind, apiVersion, metadata, ...asked, status });
    },
  };
}

/** The texts of an object and of the objects in it: all that a review can ask about. */
function textsOf(value: JsonObject, depth: number): JsonObject {
  const known = Object.entries(value).flatMap(([key, member]): [string, Json][] => {
    if (typeof member === "string") return [[key, member]];
    return isJsonObject(member) && depth > 0 ? [[key, textsOf(member, depth - 1)]] : [];
  });
  return Object.fromEntries(known);
}

function accessReview(environment: ReviewEnvironment, user: User, spec: JsonObject): object {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (isJsonObject(resourceAttributes) === isJsonObject(nonResourceAttributes)) {
    throw badRequest(
      "exactly one of spec.resourceAttributes and spec.nonResourceAttributes has to be given",
    );
  }
  if (isJsonObject(resourceAttributes)) {
    const attributes = attributesAsked(environment.catalogue, resourceAttributes);
    return verdictStatus(environment.authorizer.authorize(user, attributes));
  }
  const path = textOf(nonResourceAttributes, "path") ?? "";
  const isRead = textOf(nonResourceAttributes, "verb") === "get";
  return verdictStatus(
    isRead && environment.mayRead(user, path)
      ? { allowed: true, reason: "this path is open to this user" }
      : { allowed: false },
  );
}

function verdictStatus(verdict: Verdict): object {
  const reason = verdict.reason === undefined ? {} : { reason: verdict.reason };
  return { allowed: verdict.allowed, ...reason };
}

/** kubectl names the namespace of its context also for kinds without one: there it is dropped. */
function attributesAsked(catalogue: Catalogue, asked: JsonObject): Attributes {
  const group = textOf(asked, "group") ?? "";
  const resource = textOf(asked, "resource") ?? "";
  const known = catalogue
    .all()
    .find((candidate) => candidate.group === group && candidate.plural === resource);
  const namespace = known?.namespaced === false ? undefined : textOf(asked, "namespace");
  return {
    verb: textOf(asked, "verb") ?? "",
    group,
    resource,
    subresource: textOf(asked, "subresource"),
    namespace,
    allNamespaces: known?.namespaced === true && namespace === undefined,
    name: textOf(asked, "name"),
  };
}

/** A text that is there. An empty one means absent, as everywhere in Kubernetes. */
function textOf(value: Json | undefined, key: string): string | undefined {
  const text = isJsonObject(value) ? value[key] : undefined;
  return typeof text === "string" && text !== "" ? text : undefined;
}
