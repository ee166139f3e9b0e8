import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "../fixture.ts";
import type { Cluster } from "../cluster.ts";
import type { ClusterState, MachineState, Volume } from "../state.ts";
import { applyChange, type Change } from "./changes.ts";
import { KeptState } from "./kept-state.ts";

/** A copy of the state that only the changes keep up to date. */
class Replica {
  readonly #kept: KeptState;
  readonly #copy: ClusterState;
  readonly #cluster: Cluster;

  constructor({ model }: Stage) {
    this.#cluster = model.cluster;
    this.#kept = new KeptState(model.cluster.state);
    this.#copy = plain(model.cluster.state);
  }

  check(): Change[] {
    return this.#follow(this.#kept.changes());
  }

  /** The same, but it looks only where the cluster says that something may have changed. */
  checkTouched(): Change[] {
    const { touched, processes } = this.#cluster;
    const changes = this.#follow(this.#kept.changes(touched));
    touched.guests.clear();
    if (!processes.isQuiet) return changes;
    touched.machines.clear();
    touched.backings.clear();
    return changes;
  }

  #follow(found: Change[]): Change[] {
    const changes = plain(found);
    for (const change of changes) applyChange(this.#copy, change);
    assert.deepEqual(this.#copy, plain(this.#kept.state));
    return changes;
  }
}

function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

test("the changes alone keep a copy of the cluster equal to it, at every moment", async () => {
  const stage = new Stage();
  const replica = new Replica(stage);
  const advance = stage.clock.advance.bind(stage.clock);
  stage.clock.advance = (ms) => {
    advance(ms);
    replica.checkTouched();
  };
  const disk = "local-zfs:0,import-from=local:import/debian-12-generic-amd64.qcow2";
  const pve1 = "/nodes/pve1/qemu";
  await stage.call("POST", "/pools", { poolid: "p" });
  await stage.does("POST", pve1, { vmid: 100, scsi0: disk, ide2: "local:cloudinit", pool: "p" });
  await stage.does("POST", pve1, { vmid: 101, scsi0: "shared:1", agent: 1 });
  await stage.does("POST", `${pve1}/100/status/start`);
  await stage.does("PUT", `${pve1}/100/resize`, { disk: "scsi0", size: "+1G" });
  await stage.does("POST", `${pve1}/101/snapshot`, { snapname: "before" });
  await stage.call("PUT", `${pve1}/101/config`, { cores: 4, name: "renamed" });
  await stage.does("POST", `${pve1}/101/clone`, { newid: 102, full: 1 });
  await stage.does("POST", `${pve1}/102/migrate`, { target: "pve2" });
  await stage.does("POST", `${pve1}/100/status/stop`);
  await stage.does("DELETE", `${pve1}/100`);
  await stage.call("POST", "/access/users", { userid: "someone@pve" });
  stage.model.crashNode("pve2");
  stage.model.setLock(101, "backup");
  replica.check();
  stage.model.startNode("pve2");
  stage.model.removeGuestFile(101);
  replica.check();
  const { state } = stage.model.cluster;
  assert.deepEqual(Object.keys(state.guests), ["102"]);
  Reflect.deleteProperty(state.volumes, "pve3:/var/lib/vz");
  assert.deepEqual(replica.check(), [{ at: ["volumes", "pve3:/var/lib/vz"], remove: true }]);
  assert.deepEqual(replica.check(), []);
});

test("a busy cluster writes down what changed, not all there is", async () => {
  const stage = new Stage();
  for (let vmid = 200; vmid < 400; vmid++) stage.model.writeGuestFile("pve1", vmid, "cores: 1\n");
  const replica = new Replica(stage);
  stage.model.writeGuestFile("pve1", 300, "cores: 2\n");
  const changed = { at: ["guests", "300"], set: { node: "pve1", text: "cores: 2\n" } };
  assert.deepEqual(replica.check(), [changed]);
});

test("it says when the nodes are others, whose changes it cannot tell", () => {
  const { state } = new Stage().model.cluster;
  const kept = new KeptState(state);
  assert.ok(kept.isComparable);
  state.nodes = state.nodes.slice(1);
  assert.ok(!kept.isComparable);
});

/** Every member there is: one that is new must be added here, or this does not compile. */
const volume: Required<Volume> = {
  name: "vm-100-disk-0",
  content: "images",
  format: "raw",
  sizeBytes: 1,
  usedBytes: 1,
  createdMs: 1,
  vmid: 100,
  base: "base-1-disk-0",
  snapshots: ["a"],
  data: "debian",
  sha256: "00",
  virtualBytes: 1,
  isCorrupt: true,
  isPartial: true,
};

const guest: Required<NonNullable<MachineState["guest"]>> = {
  agent: "running",
  agentAfterMs: 1,
  obeysShutdown: true,
  shutdownMs: 1,
  isFrozen: true,
  programs: { "1": { outData: "", exitcode: 0 } },
  files: { "/etc/motd": "hello" },
};

const machine: Required<MachineState> = {
  pid: 1,
  startedMs: 1,
  isPaused: true,
  willReboot: true,
  guest,
};

test("a change of any member of a volume is noticed", () => {
  for (const name of Object.keys(volume)) noticed({ volume: plain(volume) }, "volume", name);
});

test("a change of any member of a machine, and of what runs in it, is noticed", () => {
  for (const name of Object.keys(machine)) noticed({ machine: plain(machine) }, "machine", name);
  for (const name of Object.keys(guest)) {
    const own = plain(machine);
    noticed({ machine: own, guest: own.guest }, "guest", name);
  }
});

test("a change inside of a member is noticed too", () => {
  const { state } = new Stage().model.cluster;
  const own = { volume: plain(volume), machine: plain(machine) };
  state.volumes["shared:x"] = [own.volume];
  Object.assign(state.nodes[0]?.machines ?? {}, { "100": own.machine });
  const kept = new KeptState(state);
  assert.deepEqual(kept.changes(), []);
  own.volume.snapshots.push("b");
  assert.equal(kept.changes().length, 1);
  Object.assign(own.machine.guest?.files ?? {}, { "/etc/hosts": "x" });
  assert.equal(kept.changes().length, 1);
});

/** Takes one member of one of the objects away, in a cluster that has them, and looks. */
function noticed(
  own: { volume?: Volume; machine?: MachineState; guest?: object },
  which: "volume" | "machine" | "guest",
  name: string,
): void {
  const { state } = new Stage().model.cluster;
  if (own.volume !== undefined) state.volumes["shared:x"] = [own.volume];
  if (own.machine !== undefined)
    Object.assign(state.nodes[0]?.machines ?? {}, { 100: own.machine });
  const kept = new KeptState(state);
  Reflect.deleteProperty(own[which] ?? {}, name);
  assert.equal(kept.changes().length, 1, `${which}.${name}`);
}
