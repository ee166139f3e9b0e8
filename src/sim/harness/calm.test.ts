import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import { hardwarePairs, remedyAll, unlockWaiting, type Helpers } from "./calm.ts";

const lines = {
  cores: "cores: 2",
  memory: "memory: 1024",
  root: "scsi0: local-zfs:vm-100-disk-0,size=3G",
  data: "scsi1: local-zfs:vm-100-disk-1,size=3G",
  lan: "net0: virtio=BC:24:11:00:00:01,bridge=vmbr0",
  dmz: "net1: virtio=BC:24:11:00:00:02,bridge=vmbr0,tag=5",
};

const spec = {
  cpu: { cores: 2 },
  memory: { size: "1Gi" },
  disks: [
    { name: "root", size: "3Gi" },
    { name: "data", size: "3Gi" },
    { name: "old", size: "3Gi", state: "Absent" },
  ],
  networks: [
    { name: "dmz", bridge: "vmbr0", vlan: 5 },
    { name: "lan", bridge: "vmbr0" },
  ],
} as unknown as VirtualMachine["spec"];

/** Fields that are not as declared where some lines are changed. */
function differing(
  change: Partial<Record<keyof typeof lines | "more", string>>,
  status?: VirtualMachine["status"],
): string[] {
  const text = Object.values({ ...lines, ...change }).join("\n");
  const pairs = hardwarePairs(
    { spec, ...(status && { status }) },
    `${text}\n[snapshot]\ncores: 9\n`,
  );
  return pairs.filter(({ wanted, there }) => wanted !== there).map(({ field }) => field);
}

describe("reality beside the spec", () => {
  it("is the same where every line is as declared, in whatever order", () => {
    assert.deepEqual(differing({}), []);
  });

  it("tells cores and memory that differ", () => {
    assert.deepEqual(differing({ cores: "cores: 3" }), ["cores"]);
    assert.deepEqual(differing({ memory: "memory: 512" }), ["memory"]);
  });

  it("tells one disk too few among others of its size, and one too many", () => {
    assert.deepEqual(differing({ data: "" }), ["disks of"]);
    assert.deepEqual(differing({ more: "scsi2: local-zfs:vm-100-disk-2,size=3G" }), ["disks of"]);
    assert.deepEqual(differing({ root: lines.root.replace("3G", "4G") }), ["disks of"]);
  });

  it("leaves out a disk that people put into it, and discs", () => {
    assert.deepEqual(differing({ more: "scsi9: local-zfs:vm-100-disk-9,size=1G" }), []);
    assert.deepEqual(differing({ more: "scsi3: local:iso/a.iso,media=cdrom,size=1G" }), []);
  });

  it("counts a disk that people put into it where the VM was adopted with it", () => {
    const put = "scsi1: local-zfs:vm-100-put-1,size=3G";
    const disks = [{ name: "data", volume: "local-zfs:vm-100-put-1" }];
    assert.deepEqual(differing({ data: put }, { disks }), []);
    assert.deepEqual(differing({ data: put }), ["disks of"]);
    const old = [{ name: "old", volume: "local-zfs:vm-100-put-2" }];
    assert.deepEqual(differing({ more: "scsi2: local-zfs:vm-100-put-2" }, { disks: old }), []);
  });

  it("tells cards that are missing, too many, or elsewhere", () => {
    assert.deepEqual(differing({ dmz: "" }), ["cards at"]);
    assert.deepEqual(differing({ more: "net2: virtio=BC:24:11:00:00:03,bridge=vmbr0" }), [
      "cards at",
    ]);
    assert.deepEqual(differing({ dmz: lines.dmz.replace("tag=5", "tag=6") }), ["cards at"]);
  });
});

/** People who do what they are asked, at a cluster with one machine. */
function helpersAt(site: object, done: string[], claim?: object): Helpers {
  const hands = {
    clearLock: (_: unknown, id: string) => done.push(`unlocks ${id}`),
    removeVolume: (_: unknown, name: string) => done.push(`removes ${name}`),
    moveSlot: (_: unknown, from: string, to: string) => done.push(`takes ${from} to ${to}`),
  };
  const records = { claimOf: () => (claim === undefined ? undefined : { spec: claim }) };
  const world = { sites: new Map([["east", site]]), records, copies: [] };
  const people = { delete: (name: string) => done.push(`deletes ${name}`) };
  // cast: what the remedies use of it.
  return { world, hands, people } as unknown as Helpers;
}

function vmWith(status: object): VirtualMachine {
  const about = { hypervisor: "east", externalId: "108" };
  // cast: what the remedies read of it.
  const wanted = { hypervisorRef: { name: "east" } };
  return {
    metadata: { name: "db" },
    spec: wanted,
    status: { ...about, ...status },
  } as VirtualMachine;
}

describe("what people are asked to do", () => {
  const lock = "suspending. If nobody works on it any more, on pve1, as root: qm unlock 108";
  const waits = vmWith({ waitingFor: { kind: "Lock", name: lock, since: "" } });
  const unlocked = (isLocked: boolean, isWorkedOn: boolean): readonly [boolean, string[]] => {
    const done: string[] = [];
    const value = (): string | undefined => (isLocked ? "suspending" : undefined);
    const site = { value, isWorkedOn: () => isWorkedOn };
    return [unlockWaiting([waits], helpersAt(site, done)), done];
  };

  it("is to clear a lock whose task nobody remembers, and no other", () => {
    assert.deepEqual(unlocked(true, false), [true, ["unlocks 108"]]);
    assert.deepEqual(unlocked(true, true), [false, []]);
    assert.deepEqual(unlocked(false, false), [false, []]);
  });

  const name = "vm-108-state-suspend-2026-01-02";
  const message = `zfs error: cannot create 'rpool/data/${name}': dataset already exists.`;
  const taken = vmWith({ failure: { category: "CreationFailed", message } });
  const removed = (claim: object, there = [{ name, backing: "pve2:rpool/data" }]): string[] => {
    const done: string[] = [];
    const site = { name: "east", guestVolumes: () => there };
    remedyAll([taken], helpersAt(site, done, claim));
    return done;
  };

  it("is to remove saved memory that nothing proves to be Berth's", () => {
    assert.deepEqual(removed({ node: "pve2" }), [`removes ${name}`]);
  });

  it("is never to remove what Berth can, nor what is not there", () => {
    const volumes = [{ id: `local-zfs:${name}` }];
    assert.throws(() => removed({ node: "pve2", volumes }), /Berth's to remove/);
    assert.throws(() => removed({}, []), /nothing is called/);
  });

  const gone =
    "The disk root was the machine's and is no longer attached to it: scsi0 is empty, and";
  const own = `${gone} the VM does not have its volume local-zfs:vm-108-disk-0 (3Gi).`;
  const where = `${own} Attached and not declared: scsi8 (local-zfs:vm-108-disk-5, 3Gi).`;
  const answered = (said: string, config: Record<string, string>, by = "berth"): string[] => {
    const done: string[] = [];
    const found = { key: "k", vmid: "108", name: "vm-108-disk-5" };
    const site = {
      text: () => Object.values(config).join("\n"),
      value: (_: string, slot: string) => config[slot],
      guestVolumes: () => [found],
      volumes: new Map([["k", { by }]]),
    };
    remedyAll([vmWith({ failure: { category: "Missing", message: said } })], helpersAt(site, done));
    return done;
  };

  it("is to put a disk back that is in another slot, under another name", () => {
    const scsi8 = "local-zfs:vm-108-disk-5,size=3G";
    assert.deepEqual(answered(where, { scsi8 }), ["takes scsi8 to scsi0"]);
    assert.deepEqual(answered(where, { scsi8 }, "person"), ["deletes db"]);
    assert.throws(() => answered(own, { scsi8 }), /scsi8 has it/);
  });

  it("is nothing where a disk that is called Missing is there", () => {
    const scsi9 = "local-zfs:vm-108-disk-0,size=3G";
    assert.throws(() => answered(own, { scsi9 }), /108 has vm-108-disk-0/);
    assert.throws(() => answered(own, { scsi0: scsi9 }), /scsi0 is not empty/);
  });
});
