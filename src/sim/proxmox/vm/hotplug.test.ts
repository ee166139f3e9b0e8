import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const image = "local:0,import-from=local:import/debian-12-generic-amd64.qcow2";

interface Case {
  readonly reason: string;
  /** What the guest has besides a system disk. */
  readonly has?: Readonly<Record<string, string | number>>;
  readonly set?: Readonly<Record<string, string | number>>;
  readonly remove?: string;
  /** The options that wait for the next start. */
  readonly waits: readonly string[];
}

const card = "virtio=02:00:00:00:00:01,bridge=vmbr0";

const cases: readonly Case[] = [
  { reason: "a name and tags", set: { name: "x", tags: "b;a" }, waits: [] },
  { reason: "start order and protection", set: { startup: "order=1", protection: 1 }, waits: [] },
  { reason: "memory", set: { memory: 2048 }, waits: ["memory"] },
  {
    reason: "memory with its feature",
    has: { hotplug: "memory" },
    set: { memory: 2048 },
    waits: [],
  },
  { reason: "cores and sockets", set: { cores: 2, sockets: 2 }, waits: ["cores", "sockets"] },
  { reason: "virtual CPUs", has: { cores: 4 }, set: { vcpus: 2 }, waits: ["vcpus"] },
  {
    reason: "virtual CPUs with their feature",
    has: { cores: 4, hotplug: "cpu" },
    set: { vcpus: 2 },
    waits: [],
  },
  { reason: "the share of CPU time", set: { cpulimit: 2, cpuunits: 200 }, waits: [] },
  { reason: "the CPU model", set: { cpu: "host" }, waits: ["cpu"] },
  { reason: "a smaller balloon", set: { balloon: 256 }, waits: [] },
  { reason: "no balloon at all", set: { balloon: 0 }, waits: ["balloon"] },
  { reason: "a new SCSI disk", set: { scsi1: "local:1" }, waits: [] },
  { reason: "a new VirtIO disk", set: { virtio1: "local:1" }, waits: [] },
  { reason: "a new SATA disk", set: { sata1: "local:1" }, waits: ["sata1"] },
  {
    reason: "a new disk without the feature",
    has: { hotplug: "network" },
    set: { scsi1: "local:1" },
    waits: ["scsi1"],
  },
  { reason: "removal of a SCSI disk", has: { scsi1: "local:1" }, remove: "scsi1", waits: [] },
  {
    reason: "removal of a SATA disk",
    has: { sata1: "local:1" },
    remove: "sata1",
    waits: ["sata1"],
  },
  {
    reason: "a limit of a disk's speed",
    has: { scsi1: "local:1" },
    set: { scsi1: "local:100/vm-100-disk-1.raw,mbps=10" },
    waits: [],
  },
  {
    reason: "a disk's cache",
    has: { scsi1: "local:1" },
    set: { scsi1: "local:100/vm-100-disk-1.raw,cache=writeback" },
    waits: ["scsi1"],
  },
  { reason: "a new card", set: { net1: card }, waits: [] },
  { reason: "removal of a card", has: { net0: card, net1: card }, remove: "net1", waits: [] },
  {
    reason: "removal of a card that is booted from: the order alone",
    has: { net0: card },
    remove: "net0",
    waits: ["boot"],
  },
  {
    reason: "the VLAN of a card, with no feature at all",
    has: { net1: card, hotplug: "0" },
    set: { net1: `${card},tag=7` },
    waits: [],
  },
  {
    reason: "the model of a card without the feature",
    has: { net1: card, hotplug: "0" },
    set: { net1: "e1000=02:00:00:00:00:01,bridge=vmbr0" },
    waits: ["net1"],
  },
  { reason: "firmware", set: { bios: "ovmf" }, waits: ["bios"] },
  { reason: "the machine type", set: { machine: "q35" }, waits: ["machine"] },
  { reason: "an agent that was not there", set: { agent: 1 }, waits: ["agent"] },
  {
    reason: "what an agent does after a clone",
    has: { agent: 1 },
    set: { agent: "1,fstrim_cloned_disks=1" },
    waits: [],
  },
  { reason: "firmware variables", set: { efidisk0: "local:0,efitype=4m" }, waits: ["efidisk0"] },
  { reason: "a TPM", set: { tpmstate0: "local:0,version=v2.0" }, waits: ["tpmstate0"] },
  { reason: "an address for cloud-init", set: { ipconfig0: "ip=dhcp" }, waits: [] },
  { reason: "a display", set: { vga: "qxl" }, waits: ["vga"] },
  {
    reason: "a USB port, where the system can take it",
    has: { ostype: "l26" },
    set: { usb0: "spice" },
    waits: [],
  },
  {
    reason: "a USB port elsewhere",
    has: { ostype: "other" },
    set: { usb0: "spice" },
    waits: ["usb0"],
  },
  { reason: "on boot of the node", set: { onboot: 1 }, waits: [] },
];

async function running(stage: Stage, has: Case["has"] = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid: 100, scsi0: image, ...has }), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
}

async function waiting(stage: Stage): Promise<string[]> {
  const { data } = await stage.call("GET", `${qemu}/100/pending`);
  const rows = Array.isArray(data) ? data.map(membersOf) : [];
  return rows.filter((row) => "pending" in row || "delete" in row).map((row) => String(row["key"]));
}

for (const { reason, has, set, remove, waits } of cases) {
  const what = waits.length === 0 ? "takes effect at once" : "waits for the next start";
  test(`${reason} ${what}`, async () => {
    const stage = new Stage();
    await running(stage, has);
    const change = { ...set, ...(remove === undefined ? {} : { delete: remove }) };
    const reply = await stage.call("PUT", `${qemu}/100/config`, change);
    assert.equal(reply.status, 200, reply.reason);
    assert.deepEqual(await waiting(stage), waits);
    assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
    assert.deepEqual(await waiting(stage), [], "a stop applies what waited");
  });
}

test("a disk that is booted from is not unplugged, and the refusal is a parameter's", async () => {
  const stage = new Stage();
  await running(stage);
  const sync = await stage.call("PUT", `${qemu}/100/config`, { delete: "scsi0" });
  assert.deepEqual([sync.status, sync.reason], [400, "Parameter verification failed."]);
  const text = "400 Parameter verification failed. scsi0: hotplug problem - can't unplug bootdisk";
  const end = await stage.does("POST", `${qemu}/100/config`, { delete: "scsi0" });
  assert.equal(end, `${text} 'scsi0'`);
  assert.deepEqual(await waiting(stage), ["boot", "scsi0"]);
});

test("a card is only let go by a guest that runs a system; without one it takes six seconds", async () => {
  const texts = { "9.2": " - still busy in guest?", "8.4": "" };
  for (const release of ["9.2", "8.4"] as const) {
    const stage = new Stage(release);
    await stage.does("POST", qemu, { vmid: 100, scsi0: "local:1", net1: card });
    assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
    const before = stage.clock.nowMs();
    const end = await stage.does("POST", `${qemu}/100/config`, { delete: "net1" });
    const what = `error on hot-unplugging device 'net1'${texts[release]}`;
    assert.equal(end, `400 Parameter verification failed. net1: hotplug problem - ${what}`);
    assert.ok(stage.clock.nowMs() - before >= 6_000);
  }
});

test("more virtual CPUs than there are places are refused, and less memory than is fixed", async () => {
  const stage = new Stage();
  await running(stage, { cores: 2, hotplug: "cpu,memory", memory: 2048 });
  for (const [change, text] of [
    [{ vcpus: 3 }, "you can't add more vcpus than maxcpus"],
    [{ memory: 512 }, "memory can't be lower than 1024 MB"],
  ] as const) {
    const end = await stage.does("POST", `${qemu}/100/config`, change);
    assert.match(end, new RegExp(`hotplug problem - ${text}$`));
  }
});

test("what waits from before goes on waiting while something else is plugged", async () => {
  const stage = new Stage();
  await running(stage, { hotplug: "0" });
  await stage.call("PUT", `${qemu}/100/config`, { scsi1: "local:1" });
  // From here on it could be plugged, but nobody asks for it.
  await stage.call("PUT", `${qemu}/100/config`, { hotplug: "disk" });
  await stage.call("PUT", `${qemu}/100/config`, { name: "x", memory: 4096 });
  assert.deepEqual(await waiting(stage), ["memory", "scsi1"]);
  await stage.call("PUT", `${qemu}/100/config`, { revert: "memory" });
  const reverted = await stage.call("PUT", `${qemu}/100/config`, { revert: "scsi1" });
  assert.equal(reverted.status, 200);
  assert.deepEqual(await waiting(stage), []);
});

test("a change that is set, removed and taken back at once is refused", async () => {
  const stage = new Stage();
  await running(stage);
  const put = (change: Record<string, string>): Promise<{ status: number; reason: string }> =>
    stage.call("PUT", `${qemu}/100/config`, change);
  assert.equal((await put({ name: "x", delete: "name" })).status, 400);
  assert.equal((await put({ revert: "name", delete: "name" })).status, 400);
  assert.equal((await put({})).reason, "no options specified");
  assert.match((await put({ balloon: "4096" })).reason, /^balloon value too large/);
});

test("a delay lets a change answer as if it had been done at once, or fail so", async () => {
  const stage = new Stage();
  await running(stage);
  const done = await stage.call("POST", `${qemu}/100/config`, { name: "x", background_delay: 5 });
  assert.deepEqual([done.status, done.data], [200, null]);
  const failed = await stage.call("POST", `${qemu}/100/config`, {
    delete: "scsi0",
    background_delay: 5,
  });
  assert.match(failed.reason, /^failed to update VM 100: 400 Parameter verification failed/);
  stage.model.cluster.slowStorageMs = 20_000;
  const slow = { scsi3: "local:1", background_delay: 2 };
  assert.match(String((await stage.call("POST", `${qemu}/100/config`, slow)).data), /^UPID:/);
});
