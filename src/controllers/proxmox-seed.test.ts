import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { secretResource } from "../api/builtin/index.ts";
import { virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import type { PveReply } from "../drivers/proxmox/index.ts";
import type { ProxmoxModel } from "../sim/index.ts";
import { openProxmox, type StageOptions } from "./testing/simulated-proxmox.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  listClaims,
  until,
  type World,
} from "./testing/world.ts";

const spec: Partial<WrittenVirtualMachineSpec> = {
  disks: [{ name: "root", size: "10Gi", storage: "local-zfs" }],
  cloudInit: {
    userData: { secretRef: { name: "first-boot", key: "userData" } },
    hostname: "web.example",
    user: { name: "ada" },
    networks: [{ name: "lan", ipv4: { method: "DHCP" } }],
  },
};

async function createSecret({ client }: World): Promise<void> {
  const userData = Buffer.from("#cloud-config\nruncmd: [id]\n").toString("base64");
  await client.of(secretResource).create({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "default", name: "first-boot" },
    data: { userData },
  });
}

function discs({ cluster }: ProxmoxModel): string[] {
  return Object.values(cluster.state.volumes)
    .flat()
    .map(({ name }) => name)
    .filter((name) => name.includes("berth-seed-"));
}

/** The quorum is lost after the change was written down, and before it was applied. */
function cutEject(proxmox: ProxmoxModel): PveReply {
  for (const [id, { node, text }] of Object.entries(proxmox.cluster.state.guests)) {
    const pending = "[PENDING]\nide2: none,media=cdrom\n";
    proxmox.writeGuestFile(node, Number(id), `${text.trimEnd()}\n\n${pending}`);
  }
  const reason = "unable to open file '/etc/pve/nodes/pve1/qemu-server/100.conf.tmp.7'";
  return { type: "answered", status: 500, reason, from: "pve1", body: "" };
}

/** Makes the machine, starting anew after a crash, and resolves with the calls until then. */
async function live(world: World, crashAt?: number): Promise<string[]> {
  let current = world.start();
  const first = current;
  if (crashAt !== undefined) first.crashAt = { call: crashAt, when: "after" };
  const revive = (): void => {
    if (current.isCrashed) current = world.start();
  };
  await createSecret(world);
  await createVm(world.client, "web", spec);
  const isThere = await until(world, async () => {
    revive();
    const [claim] = await listClaims(world.client);
    const isGone = !(claim?.spec.volumes ?? []).some(({ id }) => id.startsWith("berth-seed-"));
    return isReady(await getVm(world.client, "web")) && isGone;
  });
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, JSON.stringify([crashAt, vm?.status, world.log, current.calls], undefined, 1));
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
  const isGone = await until(world, async () => {
    revive();
    return (await getVm(world.client, "web")) === undefined;
  });
  assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
  current.crash();
  return first.calls;
}

describe("the order to boot in of a VM with a first-boot ISO", () => {
  const storage = "local-zfs";
  const disks = ["root", "data", "more"].map((name) => ({ name, size: "2Gi", storage }));
  const blank = { source: { blank: {} }, networks: [] };

  /** The server takes parameters in no certain order. */
  const lastBoot: NonNullable<StageOptions["between"]> = (request, send) => {
    const { boot, ...params } = request.params ?? {};
    return send(boot === undefined ? request : { ...request, params: { ...params, boot } });
  };

  const cases = [
    ...[1, 2, 3].flatMap((count) => [
      { release: "7.4" as const, count, more: {}, how: "" },
      { release: "8.4" as const, count, more: {}, how: "" },
      { release: "9.2" as const, count, more: {}, how: "" },
    ]),
    { release: "9.2" as const, count: 2, more: { between: lastBoot }, how: ", order last" },
  ];
  for (const { release, count, more, how } of cases) {
    it(`leaves nothing to wait for a reboot: ${count} disks on ${release}${how}`, async () => {
      const { world, proxmox, requests } = await openProxmox(release, more);
      world.start();
      await createSecret(world);
      const { userData } = spec.cloudInit ?? {};
      const cloudInit = userData === undefined ? {} : { userData };
      const own = { disks: disks.slice(0, count), cloudInit };
      await createVm(world.client, "web", { ...blank, ...own, updatePolicy: "Reboot" });
      await until(world, () => false, 60 * 60_000);
      const vm = await getVm(world.client, "web");
      assert.deepEqual([isReady(vm), condition(vm, "Synced")], [true, "True Succeeded"]);
      const { text } = proxmox.cluster.state.guests[vm?.status?.externalId ?? ""] ?? {};
      assert.match(text ?? "", /^ide2: none,media=cdrom$/m);
      assert.doesNotMatch(text ?? "", /PENDING/);
      assert.ok(!requests.some(({ path }) => path.endsWith("/status/reboot")));
    });
  }

  it("is not waited for where an earlier release left the drive out of it", async () => {
    const { world, proxmox } = await openProxmox("9.2", {
      between: async (request, send) => {
        const { params = {} } = request;
        const isEjected = params["ide2"] === "none,media=cdrom";
        const boot = isEjected ? { boot: "order=scsi0" } : {};
        return send({ ...request, ...(request.params && { params: { ...boot, ...params } }) });
      },
    });
    world.start();
    await createSecret(world);
    await createVm(world.client, "web", { ...spec, powerState: "Stopped" });
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    const { externalId = "" } = (await getVm(world.client, "web"))?.status ?? {};
    const { node, text } = proxmox.cluster.state.guests[externalId] ?? { node: "", text: "" };
    const left = text.replace(/^boot: .*$/m, "boot: order=scsi0");
    proxmox.writeGuestFile(node, Number(externalId), left);
    const merge = { spec: { powerState: "Running" } };
    const key = { namespace: "default", name: "web" };
    await world.client.of(virtualMachineKind).patch(key, { merge });
    await until(world, () => false, 60 * 60_000);
    const vm = await getVm(world.client, "web");
    assert.equal(condition(vm, "Synced"), "True Succeeded", JSON.stringify(vm?.status?.conditions));
  });
});

describe("a VM that is to be on another node", () => {
  it("is moved when its guest has read the first-boot disc, which cannot be moved", async () => {
    const { world, proxmox, requests } = await openProxmox();
    world.start();
    await createSecret(world);
    await createVm(world.client, "web", { ...spec, placement: { node: "pve1" } });
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    const { externalId = "" } = (await getVm(world.client, "web"))?.status ?? {};
    const merge = { spec: { placement: { node: "pve2", mode: "Enforce" } } };
    await world.client
      .of(virtualMachineKind)
      .patch({ namespace: "default", name: "web" }, { merge });
    const isThere = await until(
      world,
      () => proxmox.cluster.nodeOfGuest(Number(externalId)) === "pve2",
      30 * 60_000,
    );
    const vm = await getVm(world.client, "web");
    assert.ok(isThere, JSON.stringify(vm?.status));
    const sent = requests.filter(({ path }) => path.endsWith("/migrate"));
    assert.equal(sent.length, 1, "nothing is tried that cannot be done");
    assert.deepEqual(discs(proxmox), []);
  });

  it("says what it waits for where its guest never ran", async () => {
    const { world, requests } = await openProxmox();
    world.start();
    await createSecret(world);
    const off = { ...spec, placement: { node: "pve1" }, powerState: "Stopped" } as const;
    await createVm(world.client, "web", off);
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    const merge = { spec: { placement: { node: "pve2", mode: "Enforce" } } };
    await world.client
      .of(virtualMachineKind)
      .patch({ namespace: "default", name: "web" }, { merge });
    await until(world, () => false, 30 * 60_000);
    const vm = await getVm(world.client, "web");
    assert.equal(vm?.status?.failure, undefined);
    assert.match(condition(vm, "Synced"), /^False/);
    const said = vm?.status?.conditions?.map(({ message }) => message).join(" ") ?? "";
    assert.match(said, /placement, until its guest has read the first-boot disc/);
    assert.ok(!requests.some(({ path }) => path.endsWith("/migrate")));
  });
});

describe("a disc of our own for the first boot", () => {
  it("carries what the hypervisor cannot say, and goes when the guest has read it", async () => {
    const { world, proxmox, requests } = await openProxmox("8.4");
    world.start();
    await createSecret(world);
    await createVm(world.client, "web", spec);
    await until(world, async () => isReady(await getVm(world.client, "web")));
    const upload = requests.find(({ path }) => path.endsWith("/upload"));
    const text = Buffer.from(upload?.file && "content" in upload.file ? upload.file.content : []);
    assert.match(text.toString("latin1"), /runcmd: \[id\]/);
    assert.match(text.toString("latin1"), /"local-hostname": "web.example"/);
    assert.match(text.toString("latin1"), /"macaddress": "bc:24:11/);
    assert.match(text.toString("latin1"), /"user": "ada"/);
    const started = requests.findIndex(({ path }) => path.endsWith("/status/start"));
    const inserted = requests.findIndex(({ params }) => String(params?.["ide2"]).includes("seed"));
    assert.ok(inserted >= 0 && inserted < started);
    const isRead = await until(world, () => discs(proxmox).length === 0, 120_000);
    assert.ok(isRead, discs(proxmox).join());
    await until(world, () => false, 60_000);
    const vm = await getVm(world.client, "web");
    assert.equal(condition(vm, "Synced"), "True Succeeded", JSON.stringify(vm?.status?.conditions));
    const [claim] = await listClaims(world.client);
    assert.ok(!(claim?.spec.volumes ?? []).some(({ role }) => role === "CloudInit"));
  });

  it("is put where the machine is, if somebody moves that meanwhile", async () => {
    const moves: { node: string }[] = [];
    const stage = await openProxmox("8.4", {
      between: async (request, send) => {
        const reply = await send(request);
        const guest =
          moves.length === 0 && request.path.endsWith("/upload") ? guests()[0] : undefined;
        if (guest !== undefined) {
          guest.node = guest.node === "pve1" ? "pve2" : "pve1";
          moves.push(guest);
        }
        return reply;
      },
    });
    const guests = (): { node: string }[] => Object.values(stage.proxmox.cluster.state.guests);
    const { world } = stage;
    world.start();
    await createSecret(world);
    await createVm(world.client, "web", spec);
    const isMade = await until(world, async () => isReady(await getVm(world.client, "web")));
    const vm = await getVm(world.client, "web");
    assert.ok(isMade && moves.length === 1, JSON.stringify(vm?.status));
    assert.equal(vm?.status?.node, moves[0]?.node);
  });

  it("goes with its machine, if somebody took that to another node and left the disc", async () => {
    const { world, proxmox } = await openProxmox("8.4");
    world.start();
    await createSecret(world);
    // Nobody reads what a machine that is off is told.
    await createVm(world.client, "web", { ...spec, powerState: "Stopped" });
    await until(world, async () => isReady(await getVm(world.client, "web")));
    const [id = ""] = Object.keys(proxmox.cluster.state.guests);
    const from = proxmox.cluster.nodeOfGuest(Number(id)) ?? "";
    const to = from === "pve1" ? "pve2" : "pve1";
    const { text = "" } = proxmox.cluster.state.guests[id] ?? {};
    const { volumes } = proxmox.cluster.state;
    proxmox.removeGuestFile(Number(id));
    proxmox.writeGuestFile(to, Number(id), text);
    volumes[`${to}:rpool/data`] = volumes[`${from}:rpool/data`] ?? [];
    volumes[`${from}:rpool/data`] = [];
    assert.equal(discs(proxmox).length, 1);
    const isFollowed = await until(world, async () => {
      return (await getVm(world.client, "web"))?.status?.node === to;
    });
    assert.ok(isFollowed);
    await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
    await until(world, async () => (await getVm(world.client, "web")) === undefined);
    assert.equal(await getVm(world.client, "web"), undefined);
    assert.deepEqual(discs(proxmox), []);
  });

  it("stays in the drive of a machine that is let go, and goes first where it is in none", async () => {
    for (const isEjected of [false, true]) {
      const { world, proxmox } = await openProxmox("8.4");
      world.start();
      await createSecret(world);
      await createVm(world.client, "web", {
        ...spec,
        powerState: "Stopped",
        deletionPolicy: "Retain",
      });
      await until(world, async () => isReady(await getVm(world.client, "web")));
      const [id = ""] = Object.keys(proxmox.cluster.state.guests);
      const node = proxmox.cluster.nodeOfGuest(Number(id)) ?? "";
      const text = proxmox.cluster.state.guests[id]?.text ?? "";
      const drive = isEjected ? text.replace(/^ide2: .*$/m, "ide2: none,media=cdrom") : text;
      proxmox.writeGuestFile(node, Number(id), drive);
      await world.client.of(virtualMachineKind).delete({ namespace: "default", name: "web" });
      await until(world, async () => (await getVm(world.client, "web")) === undefined);
      assert.equal(await getVm(world.client, "web"), undefined);
      assert.ok(proxmox.cluster.state.guests[id]);
      assert.equal(discs(proxmox).length, isEjected ? 0 : 1);
    }
  });

  it("is ejected again where the change was written and not applied, and then removed", async () => {
    for (const end of ["rests", "deleted"] as const) {
      const cut = { times: 0 };
      const { world, proxmox } = await openProxmox("8.4", {
        between: (request, send) => {
          const isEject = request.params?.["ide2"] === "none,media=cdrom";
          if (!isEject || cut.times > 0) return send(request);
          cut.times += 1;
          return Promise.resolve(cutEject(proxmox));
        },
      });
      world.start();
      await createSecret(world);
      await createVm(world.client, "web", { ...spec, deletionPolicy: "Retain" });
      assert.ok(await until(world, () => cut.times === 1, 30 * 60_000));
      const at = { namespace: "default", name: "web" };
      if (end === "deleted") await world.client.of(virtualMachineKind).delete(at);
      await until(world, () => false, 10 * 60_000);
      const vm = await getVm(world.client, "web");
      if (end === "deleted") assert.equal(vm, undefined, JSON.stringify(vm?.status));
      else assert.deepEqual([discs(proxmox), vm?.status?.failure], [[], undefined]);
    }
  });

  it("costs at most 7 writes and 10 reads with its machine", async () => {
    const { world, requests } = await openProxmox("9.2");
    world.start();
    await createSecret(world);
    await createVm(world.client, "first", { ...spec, placement: { node: "pve1" } });
    await until(world, async () => isReady(await getVm(world.client, "first")));
    await until(world, () => false, 120_000);
    requests.length = 0;
    await createVm(world.client, "web", { ...spec, placement: { node: "pve1" } });
    await until(world, async () => isReady(await getVm(world.client, "web")));
    const own = requests.filter(({ path, params }) => {
      const isGlance = path === "/cluster/resources" && params?.["type"] === undefined;
      return !isGlance && !/\/tasks\/[^/]+\/status$|\/agent\//.test(path);
    });
    const reads = own.filter(({ method }) => method === "GET");
    assert.ok(reads.length <= 10, reads.map(({ path }) => path).join("\n"));
    assert.ok(own.length - reads.length <= 7);
  });

  it("leaks nothing if Berth is killed after any effect", async () => {
    const calm = await openProxmox();
    const calls = await live(calm.world);
    const effects = calls.flatMap((name, i) => (name.startsWith("begin") ? [i + 1] : []));
    assert.ok(effects.length >= 8, calls.join());
    for (const call of effects) {
      const { world, proxmox } = await openProxmox();
      await live(world, call);
      assert.deepEqual(discs(proxmox), [], `crash after call ${call}`);
      assert.deepEqual(Object.keys(proxmox.cluster.state.guests), [], `crash after call ${call}`);
    }
  });
});
