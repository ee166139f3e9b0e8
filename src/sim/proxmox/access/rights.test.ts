import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { seededRandom } from "../../seeded-random.ts";
import type { AclEntry } from "../state.ts";
import { smallCluster } from "../world.ts";
import { Rights } from "./rights.ts";

function rightsWith(...acl: AclEntry[]): Rights {
  const state = smallCluster({
    release: "9.2",
    nodes: ["pve1"],
    clock: new VirtualClock(),
    random: seededRandom(1),
    password: "p",
    tokenSecret: "s",
  });
  const token = { tokenid: "sep", secret: "x", privsep: 1, expire: 0 };
  state.users.push({ userid: "u@pve", isEnabled: true, tokens: [token] });
  state.acl = acl;
  state.pools.push({ poolid: "p", vms: [100], storages: [] });
  return new Rights(state);
}

const user = { id: "u@pve", userid: "u@pve" };
const token = { id: "u@pve!sep", userid: "u@pve", token: "sep" };
const audit = { privileges: ["VM.Audit"] };

function entry(path: string, more: Partial<AclEntry> = {}): AclEntry {
  return { path, type: "user", ugid: "u@pve", roleid: "PVEVMAdmin", propagate: 1, ...more };
}

test("rights go down the path, unless they do not propagate", () => {
  assert.ok(rightsWith(entry("/vms")).may(user, "/vms/100", audit));
  assert.ok(!rightsWith(entry("/vms", { propagate: 0 })).may(user, "/vms/100", audit));
});

test("the deepest entry decides", () => {
  const rights = rightsWith(entry("/vms"), entry("/vms/100", { roleid: "NoAccess" }));
  assert.ok(!rights.may(user, "/vms/100", audit));
  assert.ok(rights.may(user, "/vms/101", audit));
});

test("a separated token has what both it and its user have", () => {
  assert.ok(!rightsWith(entry("/vms")).may(token, "/vms/100", audit));
  const own = entry("/vms/100", { type: "token", ugid: token.id, roleid: "PVEAuditor" });
  const rights = rightsWith(entry("/vms"), own);
  assert.ok(rights.may(token, "/vms/100", audit));
  assert.ok(!rights.may(token, "/vms/100", { privileges: ["VM.Allocate"] }));
  assert.ok(!rightsWith(own).may(token, "/vms/100", audit));
});

test("members of a pool inherit its rights", () => {
  const rights = rightsWith(entry("/pool/p"));
  assert.ok(rights.may(user, "/vms/100", audit));
  assert.ok(!rights.may(user, "/vms/101", audit));
});

test("root@pam may all, and a refusal names the path and the privileges", () => {
  const rights = rightsWith();
  assert.ok(rights.may({ id: "root@pam", userid: "root@pam" }, "/", { privileges: ["Any"] }));
  const wanted = { privileges: ["VM.Clone", "VM.Allocate"], isAny: true };
  assert.throws(() => rights.demand(user, "/vms/1", wanted), {
    message: "Permission check failed (/vms/1, VM.Clone|VM.Allocate)",
  });
});

test("asked for many guests at once, the answers are those to single questions", () => {
  const anEntry = fc.record({
    path: fc.constantFrom("/", "/vms", "/vms/100", "/vms/101", "/pool/p"),
    type: fc.constantFrom("user" as const, "group" as const),
    ugid: fc.constantFrom("u@pve", "g"),
    roleid: fc.constantFrom("PVEVMAdmin", "PVEDatastoreUser", "NoAccess"),
    propagate: fc.constantFrom(0, 1),
  });
  fc.assert(
    fc.property(fc.array(anEntry, { maxLength: 5 }), (acl) => {
      const rights = rightsWith(...acl);
      const isSeen = rights.mayOnGuests(user, audit);
      const ids = [100, 101, 102, 103];
      assert.deepEqual(
        ids.map((vmid) => isSeen(vmid)),
        ids.map((vmid) => rights.may(user, `/vms/${vmid}`, audit)),
      );
    }),
  );
});
