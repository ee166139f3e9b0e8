import assert from "node:assert/strict";
import { test } from "node:test";
import type { User } from "../contract.ts";
import type { Attributes } from "./index.ts";
import { anyOf, controllersUser, createRoleAuthorizer, refused, roleGroup } from "./index.ts";

const authorizer = createRoleAuthorizer();

function userOf(...groups: string[]): User {
  return { name: "x", uid: "1", groups: [...groups, "system:authenticated"] };
}

/** "list virtualmachines in default", "get hypervisors", "update vmsets/scale in default". */
function parse(text: string): Attributes {
  const [verb = "", what = "", , namespace] = text.split(" ");
  const [resource = "", subresource] = what.split("/");
  const group = ["secrets", "namespaces", "configmaps"].includes(resource) ? "" : "berth.dev";
  const allNamespaces = namespace === undefined && !clusterKinds.includes(resource);
  return { verb, group, resource, subresource, namespace, allNamespaces, name: undefined };
}

const clusterKinds = ["hypervisors", "vmnetworks", "claims", "orphans", "namespaces"];

function may(user: User, text: string): boolean {
  return authorizer.authorize(user, parse(text)).allowed;
}

/** Columns: admin, edit, view, edit in team-a only. */
const table: Record<string, string> = {
  "get virtualmachines in default": "yes yes yes no",
  "get virtualmachines in team-a": "yes yes yes yes",
  "create virtualmachines in default": "yes yes no no",
  "create virtualmachines in team-a": "yes yes no yes",
  "deletecollection virtualmachines in team-a": "yes yes no yes",
  "create virtualmachines in berth-system": "yes no no no",
  "list virtualmachines": "yes yes yes no",
  "watch virtualmachines": "yes yes yes no",
  "get virtualmachines/status in team-a": "yes yes yes yes",
  "update virtualmachines/status in team-a": "yes no no no",
  "patch virtualmachines/status in team-a": "yes no no no",
  "patch vmsets/scale in team-a": "yes yes no yes",
  "get vmsets/scale in team-a": "yes yes yes yes",
  "create serviceaccounts/token in team-a": "yes no no no",
  "get secrets in default": "yes yes no no",
  "get secrets in team-a": "yes yes no yes",
  "list secrets in team-a": "yes yes no yes",
  "list secrets": "yes no no no",
  "watch secrets": "yes no no no",
  "get secrets in berth-system": "yes no no no",
  "list secrets in berth-system": "yes no no no",
  "create secrets in berth-system": "yes no no no",
  "patch secrets in berth-system": "yes no no no",
  "get configmaps in berth-system": "yes no no no",
  "get hypervisors": "yes yes yes yes",
  "list vmnetworks": "yes yes yes yes",
  "create hypervisors": "yes no no no",
  "patch vmnetworks": "yes no no no",
  "list claims": "yes yes yes no",
  "delete claims": "yes no no no",
  "update claims/status": "yes no no no",
  "list orphans": "yes yes yes no",
  "patch orphans": "yes no no no",
  "list namespaces": "yes yes yes no",
  "create namespaces": "yes no no no",
  "delete namespaces": "yes no no no",
  "* * in team-a": "yes no no no",
  "* *": "yes no no no",
  "list * in team-a": "yes yes no yes",
  "impersonate virtualmachines in team-a": "yes no no no",
};

for (const [asked, expected] of Object.entries(table)) {
  test(`${asked}: admin, edit, view and edit of team-a get ${expected}`, () => {
    const users = ["berth:admin", "berth:edit", "berth:view", "berth:edit:team-a"];
    const answers = users.map((group) => (may(userOf(group), asked) ? "yes" : "no"));
    assert.equal(answers.join(" "), expected);
  });
}

test("nobody may do anything without a group that grants it", () => {
  const strangers = ["berth:", "berth:root", "berth:edit:a:b", "admin", "xberth:admin", "berth"];
  for (const asked of Object.keys(table)) {
    for (const group of strangers) assert.equal(may(userOf(group), asked), false, group);
    assert.equal(may(userOf(), asked), false);
  }
  assert.equal(may(userOf("berth:toString"), "get virtualmachines in default"), false);
  assert.equal(may(userOf("berth:__proto__"), "get virtualmachines in default"), false);
});

test("the controllers may do everything", () => {
  for (const asked of Object.keys(table)) assert.equal(may(controllersUser, asked), true, asked);
});

test("an admin of one namespace is none of the cluster or of another namespace", () => {
  const user = userOf(roleGroup("admin", "team-a"));
  assert.equal(may(user, "update virtualmachines/status in team-a"), true);
  assert.equal(may(user, "get virtualmachines in default"), false);
  assert.equal(may(user, "create hypervisors"), false);
  assert.equal(may(user, "list secrets"), false);
});

test("several grants add up", () => {
  const user = userOf("berth:view", "berth:edit:team-a");
  assert.equal(may(user, "create virtualmachines in team-a"), true);
  assert.equal(may(user, "create virtualmachines in default"), false);
  assert.equal(may(user, "list virtualmachines"), true);
});

test("a user of one namespace may look at that namespace and at no other", () => {
  const user = userOf("berth:view:team-a");
  const about = (name: string, verb = "get"): boolean => {
    return authorizer.authorize(user, { ...parse(`${verb} namespaces`), name }).allowed;
  };
  assert.equal(about("team-a"), true);
  assert.equal(about("team-b"), false);
  assert.equal(about("team-a", "delete"), false);
});

test("a role in the system namespace opens it to nobody but admins", () => {
  assert.equal(may(userOf("berth:edit:berth-system"), "get secrets in berth-system"), false);
  assert.equal(may(userOf("berth:view:berth-system"), "get configmaps in berth-system"), false);
});

test("a refused list over all namespaces says to name one, where that would help", () => {
  const refusedList = (group: string, asked: string): string | undefined => {
    return authorizer.authorize(userOf(group), parse(asked)).reason;
  };
  assert.match(refusedList("berth:edit", "list secrets") ?? "", /name one \(-n\)/);
  assert.match(refusedList("berth:edit:team-a", "list virtualmachines") ?? "", /name one/);
  assert.equal(refusedList("berth:view", "list secrets"), undefined);
  assert.equal(refusedList("berth:edit:team-a", "list claims"), undefined);
});

test("what one authorizer does not allow another may, and the first explanation is kept", () => {
  const explains = { authorize: () => ({ allowed: false as const, reason: "because" }) };
  const silent = { authorize: () => ({ allowed: false as const }) };
  const user = userOf("berth:view");
  const asked = parse("get virtualmachines in default");
  assert.equal(anyOf([silent, authorizer]).authorize(user, asked).allowed, true);
  assert.deepEqual(anyOf([silent, explains]).authorize(user, asked), explains.authorize());
  assert.deepEqual(anyOf([]).authorize(user, asked), { allowed: false });
});

test("a refusal is worded as kube-apiserver words it", () => {
  const user = userOf("berth:view");
  const list = refused(user, parse("list virtualmachines in default"), undefined);
  assert.equal(
    list.message,
    'virtualmachines.berth.dev is forbidden: User "x" cannot list resource "virtualmachines" ' +
      'in API group "berth.dev" in the namespace "default"',
  );
  assert.deepEqual(list.details, { group: "berth.dev", kind: "virtualmachines" });
  const named = refused(user, { ...parse("update claims/status"), name: "c" }, "so it is");
  assert.equal(
    named.message,
    'claims.berth.dev "c" is forbidden: User "x" cannot update resource "claims/status" ' +
      'in API group "berth.dev" at the cluster scope: so it is',
  );
  assert.equal(named.code, 403);
});
