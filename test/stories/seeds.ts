import assert from "node:assert/strict";
import { annotations, virtualMachineKind } from "../../src/api/index.ts";
import { forgetLease } from "../../src/controllers/index.ts";
import { hasFailed, isReady, type Narrator, type Story } from "./narrator.ts";

const dayMs = 24 * 60 * 60_000;
const gib = 1024 ** 3;

const fromImage = {
  source: { image: { name: "debian-12" } },
  cpu: { cores: 2 },
  memory: { size: "4Gi" },
  disks: [{ name: "root", size: "12Gi" }],
};

/** Days pass in these: the hypervisor is looked at less often than is usual. */
const seldom = { limits: { pollSeconds: 600 } };

export const retryLoop: Story = {
  file: "retry-loop.md",
  title: "Leftovers under the chosen id: no retry loop",
  async tell(story) {
    await story.set({ nodes: ["pumped-piglet", "still-fawn"], hypervisor: seldom });
    const { state } = story.proxmox.cluster;
    const kind = { content: "images", format: "raw", vmid: 200 } as const;
    const sizes = { usedBytes: 0, createdMs: 0 };
    state.volumes["pumped-piglet:rpool/data"] = [
      { name: "vm-200-cloudinit", sizeBytes: 4 * 1024 ** 2, ...kind, ...sizes },
      { name: "vm-200-disk-0", sizeBytes: 10 * gib, ...kind, ...sizes },
    ];
    story.say(`
      Some other tool began to make VM 200 on pumped-piglet and failed half-way. Its configuration
      was never written, but two ZFS volumes were: 10 GiB that nobody refers to. That tool tried
      again for three days, failed each time because the volumes exist, and nobody saw it. Now the
      same machine is declared to Berth.
    `);
    story.inventory();
    story.heading("Somebody insists on id 200");
    const spec = { externalId: "200", placement: { node: "pumped-piglet" }, ...fromImage };
    await story.start();
    await story.declare("rancher-server", spec);
    await story.until("refused", hasFailed("OrphanedVolumes"), "rancher-server");
    await story.conditions("rancher-server");
    await story.why("rancher-server");
    story.effects();
    story.heading("Three days later");
    await story.pass(3 * dayMs);
    story.say(`
      Nobody has looked. Berth has not tried anything: that a volume bears the id is no proof that
      it is Berth's, so Berth may neither use nor remove it, and trying again would change
      nothing.
    `);
    story.effects();
    await story.conditions("rancher-server");
    story.heading("A person decides");
    story.say("Monitoring has told Ada (BerthStalled, BerthOrphanFound). She looks:");
    await story.orphans("list");
    story.say(`
      Nobody needs them. What would be destroyed is shown first; that she means it has to be said:
    `);
    const volumes = ["local-zfs:vm-200-cloudinit", "local-zfs:vm-200-disk-0"];
    await story.orphans("destroy", ...volumes);
    await story.pass(60_000);
    story.effects();
    await story.orphans("destroy", ...volumes, "--yes", "--wait=false");
    await story.until("made", isReady, "rancher-server");
    story.say(
      "The machine needs no further word. Once the volumes are gone, it goes on by itself:",
    );
    story.effects();
    await story.conditions("rancher-server");
    story.inventory();
  },
};

export const sixtySix: Story = {
  file: "sixty-six-machines.md",
  title: "An import that cannot work: one machine, not sixty-six",
  async tell(story) {
    story.say(`
      A controller made a machine, asked for its disk by an endpoint that no Proxmox VE has (\`501
      Method 'POST …/importdisk' not implemented\`), forgot the machine because the call had
      failed, and made the next one. There were sixty-six of them when somebody looked, each
      locked. Berth has two answers.
    `);
    story.heading("What this server cannot do is known before anything is made");
    await story.set({ release: "7.4", image: "local:iso/debian-12-generic-amd64.img" });
    putImage(story, "iso/debian-12-generic-amd64.img");
    story.say(`
      A cluster of release 7.4 cannot import an image file by its API. Ada does not know that.
    `);
    await story.start();
    await story.declare("ml110", fromImage);
    await story.until("refused", hasFailed("APINotSupported"), "ml110");
    await story.conditions("ml110");
    await story.why("ml110");
    story.effects();
    story.inventory();
    story.heading("What fails all the same fails in one place, five times, and stops");
    await story.set({ hypervisor: seldom });
    story.say(`
      The next cluster is of release 9.2 and can import. But its pool is broken: every import ends
      with an error of ZFS.
    `);
    const error = new Error("zfs error: cannot create 'rpool/data': pool I/O is suspended");
    const verdict = { kind: "fail", error } as const;
    story.proxmox.faults.onStep({
      matches: ({ name }, step) => name.startsWith("qmconfig") && step.name === "copy begins",
      verdict,
      times: 1000,
    });
    const berth = await story.start();
    await story.declare("web", fromImage);
    await story.until("stalled", isStalled, "web");
    await story.why("web");
    story.effects();
    story.say(`
      Three days later there is still one machine, without a disk, and its object knows it.
    `);
    await story.pass(3 * dayMs);
    story.effects();
    story.inventory();
    assert.ok(!berth.isCrashed);
    story.heading("Mended");
    story.say(`
      Ada mends the pool, and says so: \`berth retry vm/web\`. The same machine gets its disk.
    `);
    story.proxmox.faults.clear();
    await retry(story, "web");
    await story.until("made", isReady, "web");
    story.effects();
    await story.conditions("web");
    story.inventory();
  },
};

export const stranger: Story = {
  file: "spared-stranger.md",
  title: "A stranger's stopped machine survives every start",
  async tell(story) {
    await story.set({ nodes: ["pumped-piglet", "still-fawn", "fun-bedbug"], hypervisor: seldom });
    const text =
      "name: k3s-vm-fun-bedbug\nmemory: 8192\nscsi0: local-zfs:vm-114-disk-0,size=20G\n" +
      "smbios1: uuid=7a0c2f6e-4c7b-4a55-9b1c-2f0e5d3c1a90\n";
    story.proxmox.writeGuestFile("fun-bedbug", 114, text);
    const kind = { content: "images", format: "raw", vmid: 114 } as const;
    story.proxmox.cluster.state.volumes["fun-bedbug:rpool/data"] = [
      { name: "vm-114-disk-0", sizeBytes: 20 * gib, usedBytes: 0, createdMs: 0, ...kind },
    ];
    story.say(`
      On fun-bedbug there is a machine that was switched off when the summer was too hot, and
      whose declaration somebody commented out. A tool that cleans up at its start "stopped
      machines without an object" would destroy it, and its disk with it.
    `);
    story.inventory();
    story.heading("Berth starts, and starts again");
    const first = await story.start();
    await story.pass(dayMs / 2);
    first.crash();
    await forgetLease(story.world.client);
    await story.start();
    await story.pass(dayMs / 2);
    story.say(`
      A day has passed. The machine has no mark of Berth's, so it is nobody's business here.
    `);
    story.effects();
    story.heading("Somebody declares a machine of the same name");
    await story.declare("k3s-vm-fun-bedbug", { placement: { node: "fun-bedbug" }, ...fromImage });
    await story.until("made", isReady, "k3s-vm-fun-bedbug");
    story.say(`
      An equal name is no proof either. There are two machines of that name now, with two ids:
    `);
    story.effects();
    story.inventory();
    story.heading("And deletes it");
    await story.delete("k3s-vm-fun-bedbug");
    await story.until("gone", (vm) => vm === undefined, "k3s-vm-fun-bedbug");
    story.effects();
    story.inventory();
    assert.equal(story.proxmox.cluster.state.guests["114"]?.text, text);
    story.say("Its configuration is the same, byte for byte.");
  },
};

export const quota: Story = {
  file: "quota.md",
  title: "A quota is reached",
  async tell(story) {
    await story.set({ hypervisor: { quotas: [{ namespace: "*", machines: 1 }] } });
    story.say("Every namespace may have one machine on the cluster. The first is made as usual.");
    await story.start();
    await story.declare("first", fromImage);
    await story.until("made", isReady, "first");
    story.effects();
    story.heading("One too many");
    await story.declare("second", fromImage);
    await story.until("refused", hasFailed("QuotaExceeded"), "second");
    await story.conditions("second");
    await story.why("second");
    story.effects();
    story.heading("The first is not needed any more");
    story.say("Somebody deletes it. Its Claim is what counted; when that is gone there is room.");
    await story.delete("first");
    await story.until("made", isReady, "second");
    story.effects();
    await story.conditions("second");
  },
};

function isStalled(vm: Parameters<typeof isReady>[0]): boolean {
  const failure = vm?.status?.failure;
  return failure !== undefined && failure.attempts >= 5 && failure.nextRetryAt === undefined;
}

async function retry(story: Narrator, name: string): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.reconcileAt]: "now" } } };
  const at = { namespace: "default", name };
  await story.world.client.of(virtualMachineKind).patch(at, { merge });
}

function putImage(story: Narrator, name: string): void {
  const { volumes, nodes } = story.proxmox.cluster.state;
  for (const node of nodes) {
    const key = `${node.name}:/var/lib/vz`;
    const sizes = { sizeBytes: gib, usedBytes: gib, createdMs: 0 };
    volumes[key] = [...(volumes[key] ?? []), { name, content: "iso", format: "raw", ...sizes }];
  }
}
