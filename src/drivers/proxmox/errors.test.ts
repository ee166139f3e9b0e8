import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { FailureCategory } from "../../api/index.ts";
import { classifyError, classifyText, failureOf, type Meaning, readFailureOf } from "./errors.ts";

interface Case {
  readonly text: string;
  readonly category: FailureCategory;
  readonly meaning?: Meaning;
  readonly reason: string;
}

const cases: readonly Case[] = [
  {
    text: "unable to create VM 101 - VM 101 already exists on node 'pve1'",
    category: "IdentityConflict",
    meaning: "taken",
    reason: "7.4, 8.4, 9.2: the id is taken",
  },
  {
    text: "unable to create VM 101 - CT 101 already exists on node 'pve2'",
    category: "IdentityConflict",
    meaning: "taken",
    reason: "a container has the id",
  },
  {
    text: "unable to create VM 20490 - can't lock file '/var/lock/qemu-server/lock-20490.conf' - got timeout",
    category: "LockError",
    meaning: "blocked",
    reason: "9.2: a create of the same id is under way",
  },
  {
    text: "checksum missmatch (file change by other user?)",
    category: "UnknownOutcome",
    meaning: "changed",
    reason: "7.4 spells it with two s",
  },
  {
    text: "checksum mismatch (file change by other user?)",
    category: "UnknownOutcome",
    meaning: "changed",
    reason: "8.4 and 9.2",
  },
  {
    text: "detected modified configuration - file changed by other user? Try again.",
    category: "UnknownOutcome",
    meaning: "changed",
    reason: "move_disk has words of its own",
  },
  {
    text: "Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist",
    category: "UnknownOutcome",
    meaning: "notHere",
    reason: "not on this node; status 500",
  },
  {
    text: "can't resize volume: scsi0 if snapshot exists",
    category: "DependencyNotReady",
    reason: "a qcow2 file with snapshots keeps its size until they are gone",
  },
  {
    text: "VM is locked (backup)",
    category: "LockError",
    meaning: "blocked",
    reason: "a config lock",
  },
  {
    text: "can't lock file '/var/lock/pve-manager/pve-storage-local' - got timeout",
    category: "LockError",
    meaning: "blocked",
    reason: "the lock of a local storage",
  },
  {
    text: "cfs-lock 'storage-nfs' error: got lock request timeout",
    category: "LockError",
    meaning: "blocked",
    reason: "the lock of a shared storage",
  },
  {
    text: "cfs-lock 'storage-nfs' error: no quorum!",
    category: "NodeUnhealthy",
    reason: "the same without a majority",
  },
  {
    text: "got no worker upid - start worker failed",
    category: "NodeUnhealthy",
    meaning: "noWorker",
    reason: "0 to 4 of 400 task starts on a busy node",
  },
  {
    text: "unable to create VM 101 - cannot import from 'local:import/x.qcow2' - could not get size of local:import/x.qcow2",
    category: "ImageNotFound",
    reason: "the image is gone",
  },
  {
    text: "zfs error: cannot create 'rpool/data/vm-200-cloudinit': dataset already exists",
    category: "OrphanedVolumes",
    reason: "left over on ZFS",
  },
  {
    text: 'unable to create VM 200 - lvcreate \'pve/vm-200-cloudinit\' error:   Logical Volume "vm-200-cloudinit" already exists in volume group "pve"',
    category: "OrphanedVolumes",
    reason: "left over on LVM",
  },
  {
    text: "disk image '/var/lib/vz/images/200/vm-200-cloudinit.qcow2' already exists",
    category: "OrphanedVolumes",
    reason: "left over in a directory",
  },
  {
    text: "Can't move disk used by a snapshot to another VM",
    category: "ConfigurationError",
    reason: "a snapshot holds the disk",
  },
  {
    text: "Storage does not support moving of this disk to another VM",
    category: "ConfigurationError",
    reason: "a storage cannot rename its volumes",
  },
  {
    text: "zfs error: cannot create 'rpool/data/vm-200-disk-1': dataset already exists",
    category: "CreationFailed",
    reason: "a name that the hypervisor chose itself was taken in between",
  },
  {
    text: "zfs error: cannot create 'rpool/data/vm-200-state-suspend-2026-01-02': dataset already exists",
    category: "CreationFailed",
    reason: "a suspend that died left its volume",
  },
  {
    text: 'lvcreate \'pve/vm-200-disk-0\' error:   Logical Volume "vm-200-disk-0" already exists in volume group "pve"',
    category: "CreationFailed",
    reason: "a name of LVM was taken in between",
  },
  {
    text: "disk image '/var/lib/vz/images/200/vm-200-disk-0.qcow2' already exists",
    category: "CreationFailed",
    reason: "a name in a directory was taken in between",
  },
  {
    text: "rbd create 'vm-200-disk-0' error: rbd: create error: (17) File exists",
    category: "CreationFailed",
    reason: "a name of Ceph was taken in between",
  },
  {
    text: "not enough free space (10240 < 20480)",
    category: "QuotaExceeded",
    reason: "LVM is full",
  },
  {
    text: "403 Permission check failed (/vms/101, VM.Config.Options)",
    category: "PermissionDenied",
    reason: "in a worker the status stands before the text",
  },
  {
    text: "only root can set 'args' config",
    category: "APINotSupported",
    reason: "no token ever may",
  },
  {
    text: "can't remove vmstate 'zfs:vm-101-state-suspend-2026-01-02' - protection mode enabled",
    category: "ConfigurationError",
    reason: "a protected machine keeps also what a suspend that failed left",
  },
  {
    text: "storage 'x' is disabled",
    category: "DependencyNotReady",
    reason: "a person can enable it",
  },
  {
    text: "shrinking disks is not supported",
    category: "ReplacementRequired",
    reason: "8.0.2 and later: in the task",
  },
  {
    text: "400 Parameter verification failed. scsi1: hotplug problem - can't unplug scsi1",
    category: "ConfigurationError",
    meaning: "alreadySo",
    reason: "it is written, and waits for the next start",
  },
  {
    text: "VM 101 already running",
    category: "CreationFailed",
    meaning: "alreadySo",
    reason: "start of what runs",
  },
  {
    text: "start failed: QEMU exited with code 1",
    category: "CreationFailed",
    reason: "whatever nobody foresaw",
  },
  {
    text: "a disk called VM is locked (backup) by name",
    category: "CreationFailed",
    reason: "texts are compared whole, not searched for words",
  },
];

describe("errors of Proxmox", () => {
  for (const { text, category, meaning, reason } of cases) {
    it(`takes "${text.slice(0, 60)}" for ${category}: ${reason}`, () => {
      const classified = classifyText(text);
      assert.equal(classified.category, category);
      assert.equal(classified.meaning, meaning);
      const byReply = classifyError({ type: "error", status: 500, text, fields: {} });
      if (!text.startsWith("400 ")) assert.equal(byReply.category, category);
    });
  }

  it("reads what is wrong with a parameter before the general text", () => {
    const text = "Parameter verification failed.";
    const taken = { vmid: "VM 101 already exists" };
    const unknownTask = { upid: "no such task" };
    const wrong = { memory: "value must have a minimum value of 16" };
    const classify = (fields: Record<string, string>) =>
      classifyError({ type: "error", status: 400, text, fields });
    assert.equal(classify(taken).meaning, "taken");
    assert.equal(classify(unknownTask).meaning, "noTask");
    assert.equal(classify(wrong).category, "ConfigurationError");
  });

  it("goes by the status where the text says nothing", () => {
    const by = (status: number) =>
      classifyError({ type: "error", status, text: "", fields: {} }).category;
    assert.equal(by(401), "PermissionDenied");
    assert.equal(by(403), "PermissionDenied");
    assert.equal(by(501), "APINotSupported");
    assert.equal(by(595), "NodeUnhealthy");
    assert.equal(by(503), "NetworkError");
  });

  it("keeps the server's words, with what it says of each parameter", () => {
    const failure = failureOf(
      { type: "error", status: 400, text: "Parameter verification failed.", fields: { a: "b" } },
      "create VM 101",
    );
    assert.equal(failure.cause, "400 Parameter verification failed.; a: b");
    assert.match(failure.message, /^could not create VM 101: /);
  });

  it("tells a wrong token and a wrong certificate from a missing right", () => {
    const refused = {
      type: "error",
      status: 401,
      text: "Authentication failed!",
      fields: {},
    } as const;
    assert.equal(failureOf(refused, "x").connection, "CredentialsRefused");
    const untrusted = { type: "notSent", why: "certificate", detail: "" } as const;
    assert.equal(failureOf(untrusted, "x").connection, "CertificateMismatch");
    const denied = { ...refused, status: 403, text: "Permission check failed" };
    assert.equal(failureOf(denied, "x").connection, undefined);
  });

  it("calls a lost write an unknown outcome and a lost read a network error", () => {
    const lost = { type: "lost", detail: "ECONNRESET" } as const;
    assert.equal(failureOf(lost, "x").category, "UnknownOutcome");
    assert.equal(readFailureOf(lost, "x").category, "NetworkError");
  });

  it("calls a read that broke an ill node, and never work that failed", () => {
    const text = "ipcc_send_rec[1] failed: Connection refused";
    for (const status of [500, 596, 599]) {
      const broken = { type: "error", status, text, fields: {} } as const;
      assert.equal(failureOf(broken, "x").category, "CreationFailed");
      assert.equal(readFailureOf(broken, "x").category, "NodeUnhealthy");
      assert.equal(readFailureOf(broken, "x").cause, `${status} ${text}`);
    }
    const denied = { type: "error", status: 403, text: "Permission check failed", fields: {} };
    assert.equal(readFailureOf({ ...denied, type: "error" }, "x").category, "PermissionDenied");
  });
});
