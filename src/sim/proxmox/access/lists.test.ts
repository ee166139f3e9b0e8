import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const as = "lim@pve!t=s";

/** A user with a token of the same rights: a role on each of some paths. */
function limited(stage: Stage, grants: Readonly<Record<string, string>>): void {
  const { users, acl } = stage.model.cluster.state;
  const token = { tokenid: "t", secret: "s", privsep: 0, expire: 0 };
  users.push({ userid: "lim@pve", isEnabled: true, tokens: [token] });
  for (const [path, roleid] of Object.entries(grants)) {
    acl.push({ path, type: "user", ugid: "lim@pve", roleid, propagate: 1 });
  }
}

/** A token of the administrator himself, with all his rights. */
function rootToken(stage: Stage): string {
  const root = stage.model.cluster.state.users.find(({ userid }) => userid === "root@pam");
  root?.tokens.push({ tokenid: "t", secret: "s", privsep: 0, expire: 0 });
  return "root@pam!t=s";
}

async function rows(stage: Stage, path: string, params = {}): Promise<Record<string, unknown>[]> {
  const { data, status, reason } = await stage.call("GET", path, { as, ...params });
  assert.equal(status, 200, reason);
  return Array.isArray(data) ? data.map(membersOf) : [];
}

test("lists leave out what the caller may not see, without a word", async () => {
  const stage = new Stage();
  for (const vmid of [100, 101]) {
    await stage.does("POST", qemu, { vmid, scsi0: "local-zfs:1" });
  }
  limited(stage, { "/vms/100": "PVEVMUser", "/storage/local-zfs": "PVEDatastoreUser" });
  const vms = async (path: string): Promise<unknown[]> =>
    (await rows(stage, path)).filter((row) => "vmid" in row).map((row) => row["vmid"]);
  assert.deepEqual(await vms("/cluster/resources"), [100]);
  assert.deepEqual(await vms(qemu), [100]);
  const content = "/nodes/pve1/storage/local-zfs/content";
  assert.deepEqual(await rows(stage, content), [], "neither guest's disks are its to configure");
  assert.deepEqual(
    (await rows(stage, "/nodes/pve1/storage")).map((row) => row["storage"]),
    ["local-zfs"],
  );
});

test("a right that is taken away looks like mass deletion; only nextid tells the truth", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100 });
  limited(stage, { "/vms": "PVEAuditor" });
  assert.equal((await rows(stage, "/cluster/resources", { type: "vm" })).length, 1);
  stage.model.cluster.state.acl = stage.model.cluster.state.acl.filter(
    ({ ugid }) => ugid !== "lim@pve",
  );
  assert.deepEqual(await rows(stage, "/cluster/resources", { type: "vm" }), []);
  const probe = await stage.call("GET", "/cluster/nextid", { vmid: 100, as });
  assert.equal(probe.status, 400);
});

test("volumes are dropped from a list by what their owner's rights are", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100, scsi0: "local-zfs:1" });
  await stage.does("POST", qemu, { vmid: 101, scsi0: "local-zfs:1" });
  limited(stage, { "/vms/100": "PVEVMAdmin", "/storage": "PVEDatastoreUser" });
  const seen = await rows(stage, "/nodes/pve1/storage/local-zfs/content");
  assert.deepEqual(
    seen.map((row) => row["volid"]),
    ["local-zfs:vm-100-disk-0"],
  );
});

test("what is root@pam's alone is not its token's, whatever rights that has", async () => {
  const stage = new Stage();
  const token = rootToken(stage);
  await stage.does("POST", qemu, { vmid: 100 });
  stage.model.setLock(100, "create");
  const refusals: [string, string, Record<string, string | number>, string][] = [
    ["PUT", `${qemu}/100/config`, { skiplock: 1, name: "x" }, "Parameter verification failed."],
    ["DELETE", `${qemu}/100`, { skiplock: 1 }, "Parameter verification failed."],
    ["PUT", `${qemu}/100/config`, { delete: "lock" }, "only root can set 'lock' config"],
    ["PUT", `${qemu}/100/config`, { args: "-S" }, "only root can set 'args' config"],
    ["POST", `${qemu}/100/migrate`, { target: "pve2", force: 1 }, "Parameter verification failed."],
  ];
  for (const [method, path, params, reason] of refusals) {
    const reply = await stage.call(method, path, { ...params, as: token });
    assert.equal(reply.reason, reason, `${method} ${JSON.stringify(params)}`);
  }
  const unlock = { skiplock: 1, delete: "lock" };
  assert.equal((await stage.rootCall("PUT", `${qemu}/100/config`, unlock)).status, 200);
  assert.equal((await stage.config(100))["lock"], undefined);
});

test("a path on the node is for root@pam alone, and an option that nobody knows too", async () => {
  const stage = new Stage();
  const token = rootToken(stage);
  const path = { vmid: 100, scsi0: "local:0,import-from=/var/lib/vz/import/x.qcow2" };
  const refused = await stage.call("POST", qemu, { ...path, as: token });
  assert.match(refused.reason, /^Only root can pass arbitrary filesystem paths\./);
  for (const option of ["hookscript", "vmgenid", "args"]) {
    const value = { hookscript: "local:snippets/x", vmgenid: "1", args: "-S" }[option] ?? "";
    const reply = await stage.call("POST", qemu, { vmid: 100, [option]: value, as: token });
    assert.equal(reply.reason, `only root can set '${option}' config`);
  }
});

test("tags are looked at after the disks are made: a refusal takes them away again", async () => {
  const stage = new Stage();
  const role = "VM.Allocate VM.Config.Disk VM.Audit VM.Config.HWType".split(" ");
  stage.model.cluster.state.roles["Maker"] = role;
  limited(stage, {
    "/vms": "Maker",
    "/storage": "PVEDatastoreAdmin",
    "/nodes": "PVEAuditor",
  });
  const create = { vmid: 100, scsi0: "local-zfs:1", tags: "a" };
  const { data: upid, reason } = await stage.call("POST", qemu, { ...create, as });
  assert.match(String(upid), /^UPID/, reason);
  const end = await stage.taskEnd(upid);
  assert.match(end, /Permission check failed \(\/vms\/100, VM\.Config\.Options\)$/);
  assert.deepEqual(await stage.volumes(100, "local-zfs"), []);
});
