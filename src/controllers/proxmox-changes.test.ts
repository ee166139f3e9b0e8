import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind, type VirtualMachine } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { eventsOf } from "./testing/events.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const data = { name: "data", size: "2Gi", storage: "local-zfs" };

type Spec = Partial<WrittenVirtualMachineSpec>;

/** A machine that stands, and ways to change it and to look at it. */
async function standing(
  spec: Spec = {},
  release?: "7.4" | "8.4" | "9.2",
): Promise<{
  readonly stage: SimulatedWorld;
  readonly edit: (spec: object) => Promise<VirtualMachine>;
  readonly config: () => Record<string, string>;
  readonly volumes: () => string[];
}> {
  const stage = await openProxmox(release);
  const { world, proxmox } = stage;
  world.start();
  await createVm(world.client, "web", { disks: [root, data], ...spec });
  const vm = await settled(stage, 1);
  const id = vm.status?.externalId ?? "";
  return {
    stage,
    edit: async (change) => {
      const patched = await world.client
        .of(virtualMachineKind)
        .patch({ namespace: "default", name: "web" }, { merge: { spec: change } });
      return settled(stage, patched.metadata.generation ?? 0);
    },
    config: () => {
      const text = proxmox.cluster.state.guests[id]?.text ?? "";
      const lines = text.split("\n\n")[0]?.split("\n") ?? [];
      return Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)));
    },
    volumes: () => {
      return Object.values(proxmox.cluster.state.volumes)
        .flatMap((volumes) => volumes.filter(({ vmid }) => vmid !== undefined))
        .map(({ name }) => name);
    },
  };
}

/** The object when Berth rests with it. */
async function settled({ world }: SimulatedWorld, generation: number): Promise<VirtualMachine> {
  const isAtRest = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    const { conditions = [], observedGeneration, operation } = vm?.status ?? {};
    const isBusy = conditions.some(({ type }) => type === "Reconciling") || operation;
    return observedGeneration === generation && !isBusy && conditions.length > 0;
  });
  const vm = await getVm(world.client, "web");
  assert.ok(vm && isAtRest, JSON.stringify([vm?.status, world.log], undefined, 1));
  return vm;
}

describe("disks of a machine on a simulated Proxmox", () => {
  it("are detached with their entry, kept, and attached again under their name", async () => {
    const { edit, config, volumes } = await standing();
    const before = config()["scsi1"];
    const detached = await edit({ disks: [root] });
    assert.equal(config()["scsi1"], undefined);
    assert.equal(detached.status?.detachedDisks?.[0]?.name, "data");
    assert.ok(isReady(detached));
    assert.equal(condition(detached, "Synced"), "True Succeeded");
    assert.equal(volumes().length, 2);
    const again = await edit({ disks: [data, root] });
    assert.equal(config()["scsi1"], before);
    assert.deepEqual(again.status?.detachedDisks, []);
    assert.equal(volumes().length, 2);
  });

  it("are destroyed where the entry says Absent, and forgotten by the Claim", async () => {
    const { edit, config, volumes, stage } = await standing();
    const vm = await edit({ disks: [root, { ...data, state: "Absent" }] });
    assert.ok(isReady(vm), JSON.stringify(vm.status));
    assert.equal(config()["scsi1"], undefined);
    assert.equal(volumes().length, 1);
    const [claim] = await listClaims(stage.world.client);
    assert.deepEqual(
      claim?.spec.volumes?.map(({ disk }) => disk),
      ["root"],
    );
  });

  it("move with their storage, and a default that changes moves none", async () => {
    const { edit, config } = await standing();
    const vm = await edit({ disks: [root, { ...data, storage: "local" }] });
    assert.match(config()["scsi1"] ?? "", /^local:/);
    assert.match(config()["scsi0"] ?? "", /^local-zfs:/);
    assert.equal(condition(vm, "Synced"), "True Succeeded");
  });

  it("that wait for a restart are not told to be as declared", async () => {
    const { stage, edit } = await standing();
    const vm = await edit({ cpu: { cores: 4 } });
    assert.equal(condition(vm, "Synced"), "False RestartRequired");
    await until(stage.world, () => false, 60_000);
    const told = (await eventsOf(stage.world.client)).filter(({ about }) => about === "web");
    const last = told.filter(({ reason }) => /Succeeded|RestartRequired/.test(reason));
    assert.deepEqual(last.map(({ reason }) => reason).toSorted(), ["RestartRequired", "Succeeded"]);
    assert.match(last.map(({ note }) => note).join(), /Waits for the next restart: cpu\.cores/);
  });

  it("are put on another bus only while the machine is off, if that is allowed", async () => {
    const { edit, config } = await standing();
    const waiting = await edit({ disks: [root, { ...data, bus: "sata" }] });
    assert.equal(condition(waiting, "Synced"), "False RestartRequired");
    assert.ok(config()["scsi1"]);
    const vm = await edit({ updatePolicy: "PowerOff", shutdown: { graceSeconds: 5 } });
    assert.equal(config()["scsi1"], undefined);
    assert.ok(config()["sata0"], JSON.stringify(config()));
    assert.equal(condition(vm, "Running"), "True Succeeded");
    assert.equal(condition(vm, "Synced"), "True Succeeded");
  });
});

describe("other parts of a machine on a simulated Proxmox", () => {
  it("get their places when they are new, and go with their entries", async () => {
    const { edit, config } = await standing();
    const cards = [
      { name: "lan", bridge: "vmbr0" },
      { name: "dmz", bridge: "vmbr0", vlan: 7 },
    ];
    const vm = await edit({ networks: cards, cdroms: [{ name: "cd" }] });
    assert.match(config()["net1"] ?? "", /tag=7/);
    assert.ok(isReady(vm));
    const less = await edit({ networks: cards.slice(1), cdroms: null });
    assert.equal(config()["net0"], undefined);
    assert.match(config()["net1"] ?? "", /tag=7/);
    assert.ok(isReady(less));
  });

  it("that cannot be changed in place are refused, and nothing is touched", async () => {
    const { edit, config, stage } = await standing({
      firmware: { type: "UEFI", secureBoot: true, tpm: "V2.0" },
    });
    assert.match(config()["efidisk0"] ?? "", /pre-enrolled-keys=1/);
    const before = JSON.stringify(config());
    const vm = await edit({ firmware: { secureBoot: false }, cpu: { cores: 4 } }).catch(() =>
      getVm(stage.world.client, "web"),
    );
    assert.equal(vm?.status?.failure?.category, "ReplacementRequired");
    assert.equal(condition(vm, "Synced"), "False ReplacementRequired");
    assert.equal(JSON.stringify(config()), before);
  });
});

describe("what counts only until a machine stood, on a simulated Proxmox", () => {
  it("is refused by its name when it is edited, and nothing of that generation is applied", async () => {
    const userData = { inline: "#cloud-config\npackages: [vim]\n" };
    const { edit, config, volumes, stage } = await standing({ cloudInit: { userData } });
    const before = JSON.stringify([config(), volumes()]);
    const edited = { userData: { inline: "#cloud-config\npackages: [nano]\n" } };
    const vm = await edit({ cloudInit: edited, cpu: { cores: 4 } });
    assert.equal(condition(vm, "Synced"), "False ReplacementRequired");
    assert.match(vm.status?.failure?.message ?? "", /: spec\.cloudInit\.userData\. Nothing/);
    assert.equal(JSON.stringify([config(), volumes()]), before);
    const again = await edit({ cloudInit: { userData }, cpu: { cores: 2 } });
    assert.equal(condition(again, "Synced"), "True Succeeded");
    const other = await edit({ source: { image: null, blank: {} } });
    assert.match(other.status?.failure?.message ?? "", /: spec\.source\. Nothing was applied/);
    assert.equal(JSON.stringify([config(), volumes()]), before);
    const destroyed = stage.requests.filter(({ method, path }) => isDestroying(method, path));
    assert.deepEqual(destroyed, []);
  });

  it("is the same in whatever order it is written", async () => {
    const dns = { servers: ["192.0.2.1"], searchDomains: ["example.org"] };
    const { edit } = await standing({ cloudInit: { dns, hostname: "a" } });
    const { servers, searchDomains } = dns;
    const vm = await edit({
      cloudInit: { hostname: "a", dns: { searchDomains, servers } },
      tags: ["a"],
    });
    assert.equal(condition(vm, "Synced"), "True Succeeded");
  });
});

function isDestroying(method: string, path: string): boolean {
  return method === "DELETE" && /\/qemu\/\d+$/.test(path);
}

describe("the power of a machine on a simulated Proxmox", () => {
  it("is suspended with its memory, and goes on", async () => {
    const { edit } = await standing();
    const asleep = await edit({ powerState: "Suspended" });
    assert.equal(asleep.status?.powerState, "Suspended");
    assert.ok(isReady(asleep));
    const awake = await edit({ powerState: "Running" });
    assert.equal(awake.status?.powerState, "Running");
    const off = await edit({ powerState: "Suspended" }).then(() => edit({ powerState: "Stopped" }));
    assert.equal(off.status?.powerState, "Stopped");
  });

  it("keeps its form while it sleeps, says what waits, and takes it when it is awake", async () => {
    const { edit } = await standing();
    await edit({ powerState: "Suspended" });
    const grown = [{ ...root, size: "12Gi" }, data];
    const asleep = await edit({ disks: grown });
    assert.equal(condition(asleep, "Synced"), "False RestartRequired");
    const awake = await edit({ powerState: "Running" });
    assert.equal(condition(awake, "Synced"), "True Succeeded");
    assert.equal(awake.status?.disks?.[0]?.size, String(12 * 2 ** 30));
  });

  it("is restarted by the guest for changes that need it, if that is allowed", async () => {
    const { edit, stage } = await standing({ updatePolicy: "Reboot" });
    stage.requests.length = 0;
    const vm = await edit({ cpu: { cores: 3 } });
    assert.equal(condition(vm, "Synced"), "True Succeeded");
    assert.equal(vm.status?.powerState, "Running");
    const asked = stage.requests.map(({ path }) => path.split("/").at(-1));
    assert.ok(asked.includes("reboot"), asked.join());
    assert.ok(!asked.includes("shutdown"), asked.join());
  });

  it("shows what the agent says, and forgets it when the machine is off", async () => {
    const { edit, stage } = await standing();
    const { world } = stage;
    const isAnswered = await until(world, async () => {
      return condition(await getVm(world.client, "web"), "AgentReady") === "True Succeeded";
    });
    const vm = await getVm(world.client, "web");
    assert.ok(isAnswered, JSON.stringify(vm?.status));
    assert.equal(vm?.status?.addresses?.[0]?.network, "lan");
    assert.equal(vm.status.addresses[0].source, "Agent");
    const off = await edit({ powerState: "Stopped" });
    assert.equal(off.status?.addresses, undefined);
    assert.equal(condition(off, "AgentReady"), "False NoAgent");
  });
});
