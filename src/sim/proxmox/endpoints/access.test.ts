import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";
import { type Release, releases } from "../release.ts";

const administrator = { username: "root@pam", password: "secret" };

async function ticketOf(stage: Stage, sent: Record<string, string>): Promise<string> {
  const { status, data } = await stage.call("POST", "/access/ticket", sent);
  return status === 200 ? String(membersOf(data)["ticket"]) : `refused with ${status}`;
}

test("a login gives a ticket, the rights somewhere at all, and the cluster's name", async () => {
  for (const release of releases) {
    const stage = new Stage(release);
    const { data } = await stage.call("POST", "/access/ticket", administrator);
    const { username, cap, clustername } = membersOf(data);
    assert.deepEqual([username, clustername], ["root@pam", "sim"]);
    assert.equal(membersOf(membersOf(cap)["vms"])["VM.Allocate"], 1);
    assert.equal(membersOf(membersOf(cap)["vms"])["Datastore.Allocate"], undefined);
    assert.equal("mapping" in membersOf(cap), release !== "7.4");
  }
});

test("the realm of a login may be apart from the name, but not in both places", async () => {
  const stage = new Stage();
  const apart = { username: "root", realm: "pam", password: "secret" };
  assert.match(await ticketOf(stage, apart), /^PVE:root@pam:/);
  assert.equal(await ticketOf(stage, { ...administrator, realm: "pam" }), "refused with 401");
});

test("a ticket renews itself while it is good, and root@pam's makes one for anybody", async () => {
  const stage = new Stage();
  const ticket = await ticketOf(stage, administrator);
  assert.match(await ticketOf(stage, { ...administrator, password: ticket }), /^PVE:root@pam:/);
  const other = { username: "berth@pve", password: ticket };
  const berths = await ticketOf(stage, other);
  assert.match(berths, /^PVE:berth@pve:/);
  const upwards = { username: "root@pam", password: berths };
  assert.equal(await ticketOf(stage, upwards), "refused with 401");
  stage.clock.advance(2 * 60 * 60 * 1000);
  const late = { ...administrator, password: ticket };
  assert.equal(await ticketOf(stage, late), "refused with 401");
});

test("a disabled or expired user cannot log in", async () => {
  const stage = new Stage();
  const login = { username: "ops@pve", password: "long-enough" };
  await stage.call("POST", "/access/users", { userid: "ops@pve", password: "long-enough" });
  assert.match(await ticketOf(stage, login), /^PVE:ops@pve:/);
  await stage.call("PUT", "/access/users/ops@pve", { enable: 0 });
  assert.equal(await ticketOf(stage, login), "refused with 401");
  stage.clock.advance(10_000);
  await stage.call("PUT", "/access/users/ops@pve", { enable: 1, expire: 1 });
  assert.equal(await ticketOf(stage, login), "refused with 401");
});

test("a login with a path and privileges tells whether they are held, and makes no ticket", async () => {
  const stage = new Stage();
  await stage.call("POST", "/access/users", { userid: "ops@pve", password: "long-enough" });
  const probe = { username: "ops@pve", password: "long-enough", path: "/vms", privs: "VM.Audit" };
  assert.equal((await stage.call("POST", "/access/ticket", probe)).status, 401);
  await stage.call("PUT", "/access/acl", { path: "/vms", users: "ops@pve", roles: "PVEAuditor" });
  const { status, data } = await stage.call("POST", "/access/ticket", probe);
  assert.deepEqual([status, membersOf(data)["ticket"]], [200, undefined]);
});

test("a group grants its members what lists grant to it, until they or it go", async () => {
  const stage = new Stage();
  await stage.call("POST", "/access/groups", { groupid: "ops", comment: "operators" });
  await stage.call("POST", "/access/users", { userid: "ops@pve", groups: "ops" });
  await stage.call("PUT", "/access/acl", { path: "/vms", groups: "ops", roles: "PVEAuditor" });
  const { rights } = stage.model.cluster;
  const caller = { id: "ops@pve", userid: "ops@pve" };
  const maySee = (): boolean => rights.may(caller, "/vms/100", { privileges: ["VM.Audit"] });
  assert.ok(maySee());
  await stage.call("PUT", "/access/users/ops@pve", { groups: "" });
  assert.ok(!maySee());
  await stage.call("PUT", "/access/users/ops@pve", { groups: "ops", append: 1 });
  assert.ok(maySee());
  // What a user is granted himself hides what his group is.
  await stage.call("PUT", "/access/acl", { path: "/vms", users: "ops@pve", roles: "NoAccess" });
  assert.ok(!maySee());
  assert.equal((await stage.call("DELETE", "/access/groups/ops")).status, 200);
  const lists = (await stage.call("GET", "/access/acl")).data;
  assert.ok(Array.isArray(lists) && lists.every((entry) => membersOf(entry)["type"] === "user"));
});

test("users are read with their groups and tokens, and take what lists grant along", async () => {
  const stage = new Stage();
  await stage.call("POST", "/access/groups", { groupid: "ops" });
  const user = { userid: "ops@pve", groups: "ops", email: "ops@example.org", comment: "c" };
  await stage.call("POST", "/access/users", user);
  await stage.call("POST", "/access/users/ops@pve/token/ci", { comment: "for CI" });
  const base = { enable: 1, expire: 0, email: "ops@example.org", comment: "c" };
  const token = { expire: 0, privsep: 1, comment: "for CI" };
  assert.deepEqual((await stage.call("GET", "/access/users/ops@pve")).data, {
    ...base,
    groups: ["ops"],
    tokens: { ci: token },
  });
  const rows = (await stage.call("GET", "/access/users", { full: 1 })).data;
  assert.deepEqual(Array.isArray(rows) && rows.at(1), {
    ...base,
    userid: "ops@pve",
    "realm-type": "pve",
    groups: "ops",
    tokens: [{ tokenid: "ci", ...token }],
  });
  await stage.call("PUT", "/access/acl", { path: "/", users: "ops@pve", roles: "PVEAuditor" });
  await stage.call("DELETE", "/access/users/ops@pve");
  assert.deepEqual((await stage.call("GET", "/access/groups")).data, [
    { groupid: "ops", users: "" },
  ]);
  assert.ok(!stage.model.cluster.state.acl.some(({ ugid }) => ugid === "ops@pve"));
});

test("an empty text is none, but for an address with something behind it", async () => {
  const stage = new Stage();
  const path = "/access/users/ops@pve";
  await stage.call("POST", "/access/users", { userid: "ops@pve", comment: "", lastname: "" });
  const bare = { enable: 1, expire: 0, groups: [], tokens: null };
  assert.deepEqual((await stage.call("GET", path)).data, bare);
  await stage.call("PUT", path, { comment: "c" });
  assert.deepEqual((await stage.call("GET", path)).data, { ...bare, email: "", comment: "c" });
});

test("access lists do not outlive the token and the role that they name", async () => {
  const stage = new Stage();
  await stage.call("POST", "/access/roles", { roleid: "deployer", privs: "VM.Audit" });
  await stage.call("POST", "/access/users", { userid: "ops@pve" });
  await stage.call("POST", "/access/users/ops@pve/token/ci");
  const acl = { path: "/vms", roles: "deployer" };
  await stage.call("PUT", "/access/acl", { ...acl, tokens: "ops@pve!ci", users: "ops@pve" });
  const count = (): number => stage.model.cluster.state.acl.length;
  const before = count();
  await stage.call("DELETE", "/access/users/ops@pve/token/ci");
  assert.equal(count(), before - 1);
  await stage.call("DELETE", "/access/roles/deployer");
  assert.equal(count(), before - 2);
});

test("a token is changed, and since 9 gets a new secret", async () => {
  const stage = new Stage();
  const path = "/access/users/berth@pve/token/ci";
  await stage.call("POST", path, { comment: "old" });
  const { data } = await stage.call("PUT", path, { comment: "", privsep: 0, expire: 5 });
  assert.deepEqual(data, { expire: "5", privsep: "0" });
  assert.deepEqual((await stage.call("GET", path)).data, { expire: 5, privsep: 0 });
  const before = stage.model.cluster.rights.token("berth@pve", "ci")?.secret;
  const renewed = membersOf((await stage.call("PUT", path, { regenerate: 1 })).data);
  assert.equal(renewed["full-tokenid"], "berth@pve!ci");
  assert.notEqual(renewed["value"], before);
  const old = await new Stage("8.4").call("PUT", path, { regenerate: 1 });
  assert.equal(old.status, 400);
});

test("a role is read by its privileges, and only people's own can be changed", async () => {
  const stage = new Stage();
  await stage.call("POST", "/access/roles", { roleid: "deployer", privs: "VM.Audit" });
  await stage.call("PUT", "/access/roles/deployer", { privs: "VM.PowerMgmt", append: 1 });
  const { data } = await stage.call("GET", "/access/roles/deployer");
  assert.deepEqual(data, { "VM.Audit": 1, "VM.PowerMgmt": 1 });
  await stage.call("DELETE", "/access/roles/deployer");
  const gone = await stage.call("GET", "/access/roles/deployer");
  assert.deepEqual([gone.status, gone.reason], [500, "role 'deployer' does not exist"]);
});

interface Refusal {
  readonly call: readonly [string, string, Record<string, string>?];
  readonly text: string;
  readonly release?: Release;
}

const refusals: readonly Refusal[] = [
  {
    call: ["PUT", "/access/roles/PVEAdmin", { privs: "VM.Audit" }],
    text: "500 auto-generated role 'PVEAdmin' cannot be modified",
  },
  {
    call: ["DELETE", "/access/roles/nosuch"],
    text: "500 delete role failed: role 'nosuch' does not exist",
  },
  {
    call: ["POST", "/access/roles", { roleid: "PVEMine" }],
    text: "400 Parameter verification failed.",
  },
  {
    call: ["POST", "/access/roles", { roleid: "mine", privs: "VM.Fly" }],
    text: "500 create role failed: invalid privilege 'VM.Fly'",
  },
  {
    call: ["POST", "/access/roles", { roleid: "PVEMine" }],
    text: "200 OK",
    release: "7.4",
  },
  {
    call: ["PUT", "/access/groups/nosuch", { comment: "x" }],
    text: "500 update group failed: group 'nosuch' does not exist",
  },
  {
    call: ["POST", "/access/users", { userid: "a@pve", groups: "nosuch" }],
    text: "500 create user failed: no such group 'nosuch'",
  },
  {
    call: ["PUT", "/access/acl", { path: "/vms", groups: "nosuch", roles: "PVEAdmin" }],
    text: "500 ACL update failed: group 'nosuch' does not exist",
  },
];

for (const { call, text, release = "9.2" } of refusals) {
  test(`${release} answers ${call[0]} ${call[1]} with ${text}`, async () => {
    const { status, reason } = await new Stage(release).call(call[0], call[1], call[2]);
    assert.equal(`${status} ${reason}`, text);
  });
}
