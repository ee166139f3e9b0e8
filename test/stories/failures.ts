import assert from "node:assert/strict";
import type { PveReply } from "../../src/drivers/proxmox/index.ts";
import { getVm } from "../../src/controllers/testing/world.ts";
import { hasFailed, isReady, type Narrator, type Story } from "./narrator.ts";

const hourMs = 60 * 60_000;
const minuteMs = 60_000;

const fromImage = {
  source: { image: { name: "debian-12" } },
  cpu: { cores: 2 },
  memory: { size: "4Gi" },
  disks: [{ name: "root", size: "12Gi" }],
};

export const lockedMachine: Story = {
  file: "locked-machine.md",
  title: "A machine is locked",
  async tell(story) {
    await story.set();
    await story.start();
    story.heading("By somebody who works on it");
    await story.declare("web", fromImage);
    await story.until("made", isReady, "web");
    story.effects();
    const id = await idOf(story, "web");
    story.say("The nightly backup locks the machine. Meanwhile Ada wants a larger disk:");
    story.proxmox.setLock(Number(id), "backup");
    await story.edit("web", { disks: [{ name: "root", size: "20Gi" }] });
    await story.until("waiting", (vm) => vm?.status?.waitingFor !== undefined, "web");
    await story.pass(hourMs);
    story.say(`
      The backup takes an hour. Waiting for it is no failure: nothing is counted, and the lock is
      never broken.
    `);
    await story.conditions("web");
    await story.why("web");
    story.effects();
    story.say("The backup ends and takes its lock away.");
    story.proxmox.setLock(Number(id), undefined);
    await story.until("grown", (vm) => isReady(vm) && sizeOf(vm) === 20, "web");
    story.effects();
    await story.conditions("web");
    story.heading("By nobody any more");
    await story.set();
    await story.start();
    story.say(`
      The worker that makes a machine is killed on its host, by the kernel that ran out of memory.
      What it leaves is a reservation of the id that says nothing but \`lock: create\`. No API
      token may remove it. And Ada insists on that id.
    `);
    const isCreate = ({ name }: { name: string }): boolean => name.startsWith("qmcreate");
    story.proxmox.faults.onStep({ matches: isCreate, verdict: { kind: "kill" } });
    await story.declare("db", { externalId: "300", ...fromImage });
    await story.until("stuck", hasFailed("LockError"), "db");
    await story.why("db");
    story.effects();
    story.say("Ada runs the command on the host. Berth notices, and goes on:");
    story.proxmox.removeGuestFile(300);
    await story.until("made", isReady, "db");
    story.effects();
    await story.conditions("db");
    story.inventory();
  },
};

export const unhealthyNode: Story = {
  file: "unhealthy-node.md",
  title: "The node is down",
  async tell(story) {
    await story.set({ nodes: ["pumped-piglet", "still-fawn", "fun-bedbug"] });
    story.proxmox.crashNode("fun-bedbug");
    story.say("fun-bedbug has lost its power. A machine is declared that has to live there.");
    await story.start();
    await story.pass(minuteMs);
    await story.declare("k3s", { placement: { node: "fun-bedbug" }, ...fromImage });
    await story.until("refused", hasFailed("NodeUnhealthy"), "k3s");
    await story.conditions("k3s");
    await story.why("k3s");
    story.effects();
    story.heading("Twenty minutes later");
    await story.pass(20 * minuteMs);
    await story.why("k3s");
    story.say("Then the power is back.");
    story.proxmox.startNode("fun-bedbug");
    await story.until("made", isReady, "k3s");
    story.effects();
    await story.conditions("k3s");
  },
};

export const unknownNode: Story = {
  file: "node-shown-unknown.md",
  title: "A node is shown as unknown, and is healthy",
  async tell(story) {
    await story.set({
      nodes: ["ml110-01", "r630-01"],
      between: async (request, send) => {
        const reply = await send(request);
        return request.path === "/cluster/resources" ? withUnknown(reply, "ml110-01") : reply;
      },
    });
    story.say(`
      In the cluster's list, and so in the web interface, ml110-01 has a grey question mark: its
      status daemon hangs. The node itself is as healthy as ever. A machine is declared that has
      to live there.
    `);
    await story.start();
    await story.declare("web", { placement: { node: "ml110-01" }, ...fromImage });
    await story.until("made", isReady, "web");
    story.say(`
      One lagging word in a list is not yet an unhealthy node: Berth asks the node itself, which
      answers, and goes on.
    `);
    story.effects();
    await story.conditions("web");
  },
};

export const missingImage: Story = {
  file: "image-missing.md",
  title: "The image is not there",
  async tell(story) {
    await story.set({ image: "local:import/debian-12-genericcloud-amd64.qcow2" });
    story.say("The VMImage names a file that nobody has uploaded yet.");
    await story.start();
    await story.declare("web", fromImage);
    await story.until("waiting", hasFailed("ImageNotFound"), "web");
    await story.pass(minuteMs);
    await story.conditions("web");
    await story.why("web");
    story.effects();
    story.heading("Somebody uploads it");
    const { volumes } = story.proxmox.cluster.state;
    for (const files of Object.values(volumes)) {
      const old = files.find(({ name }) => name.includes("generic-amd64"));
      if (old !== undefined)
        files.push({ ...old, name: old.name.replace("generic", "genericcloud") });
    }
    await story.until("made", isReady, "web");
    story.say("Berth has waited for it and finds it by itself:");
    story.effects();
    await story.conditions("web");
  },
};

export const lostReply: Story = {
  file: "lost-reply.md",
  title: "A reply is lost",
  async tell(story) {
    const seen = { isLost: false };
    await story.set({
      between: async (request, send) => {
        const reply = await send(request);
        const isCreate = request.method === "POST" && request.path.endsWith("/qemu");
        if (!isCreate || seen.isLost) return reply;
        seen.isLost = true;
        return { type: "lost", detail: "socket hang up" };
      },
    });
    story.say(`
      Berth asks for a machine. The hypervisor makes it, and the connection breaks before the
      reply is there. Whoever takes that for a failure makes a second machine at the next try, and
      the first one belongs to nobody.
    `);
    await story.start();
    await story.declare("web", fromImage);
    await story.until("lost", (vm) => seen.isLost && vm?.status?.operation !== undefined, "web");
    await story.why("web");
    story.say(`
      The id was claimed and the intent written down before the request left. So Berth need not
      guess: it looks under that id, finds its own mark, and goes on from there.
    `);
    await story.until("made", isReady, "web");
    story.effects();
    await story.conditions("web");
    story.inventory();
  },
};

export const deadLeader: Story = {
  file: "dead-leader.md",
  title: "The leader dies in the middle of it",
  async tell(story) {
    const scene: { kill?: () => void } = {};
    await story.set({
      between: async (request, send) => {
        const reply = await send(request);
        if (request.method !== "GET" && scene.kill !== undefined) {
          scene.kill();
          delete scene.kill;
        }
        return reply;
      },
    });
    story.say(`
      Two replicas of \`berth controller\` run beside a Kubernetes API, first and second. The
      first leads. It has just asked the hypervisor for a machine when its host loses power.
    `);
    const lease = { durationMs: 15_000, validMs: 10_000, retryMs: 2_000 };
    const first = await story.start({ identity: "first", lease, graceMs: 35_000 });
    await story.pass(2 * minuteMs);
    await story.start({ identity: "second", lease, graceMs: 35_000 });
    scene.kill = () => {
      story.say(`At ${story.time()} the first one is gone.`);
      first.crash();
    };
    await story.declare("web", fromImage);
    await story.until("killed", () => first.isCrashed, "web");
    await story.pass(minuteMs / 2);
    story.effects();
    await story.why("web");
    story.say(`
      The second one waits until the lease has run out, and then for as long as a request of the
      first one may still be under way: no hypervisor knows a fence. Only then it looks at what
      stands under the claimed id, and goes on with that.
    `);
    await story.until("made", isReady, "web");
    story.effects();
    await story.conditions("web");
    story.inventory();
  },
};

async function idOf(story: Narrator, name: string): Promise<string> {
  const id = (await getVm(story.world.client, name))?.status?.externalId;
  assert.ok(id);
  return id;
}

function sizeOf(vm: Parameters<typeof isReady>[0]): number {
  return Number(vm?.status?.disks?.[0]?.size) / 1024 ** 3;
}

/** The cluster's list, as it is when the status daemon of a node hangs. */
function withUnknown(reply: PveReply, node: string): PveReply {
  if (reply.type !== "answered" || reply.status !== 200) return reply;
  const body = JSON.parse(reply.body) as { data: { type: string; node: string; status: string }[] };
  const data = body.data.map((row) => {
    return row.node === node && row.type === "node" ? { ...row, status: "unknown" } : row;
  });
  return { ...reply, body: JSON.stringify({ data }) };
}
