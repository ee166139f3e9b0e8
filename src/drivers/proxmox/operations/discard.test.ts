import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Begun, HypervisorDriver } from "../../../hypervisor/index.ts";
import type { Random } from "../../../kernel/random.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { ProxmoxModel, smallCluster, tokenName, tokenUser } from "../../../sim/index.ts";
import { sendTo } from "../../../sim/wire/index.ts";
import { proxmoxDriver } from "../driver.ts";
import type { PveRequest, Send } from "../wire/wire.ts";

const secret = "00000000-0000-4000-8000-0000000000aa";
const id = `${tokenUser}!${tokenName}`;
const volume = "local-zfs:vm-200-disk-0";
const open = { mayWrite: (): boolean => true };

interface Lab {
  readonly model: ProxmoxModel;
  readonly driver: HypervisorDriver;
  readonly requests: PveRequest[];
  discard(): Promise<Begun>;
  run<T>(work: Promise<T>): Promise<T>;
}

function openLab(unlock?: { username: string; password: string }): Lab {
  const clock = new VirtualClock();
  const random: Random = {
    number: () => 0.5,
    bytes: (length) => new Uint8Array(length).fill(7),
    uuid: () => "00000000-0000-4000-8000-000000000001",
  };
  const nodes = ["pve1", "pve2"];
  const options = { nodes, clock, random, password: "secret", tokenSecret: secret };
  const model = new ProxmoxModel({
    state: smallCluster({ ...options, release: "9.2" }),
    clock,
    random,
  });
  const requests: PveRequest[] = [];
  const wire = sendTo(model, { id, secret });
  const send: Send = async (request) => {
    requests.push(request);
    return await wire(request);
  };
  const driver = proxmoxDriver({ send, tokenId: id, clock, random, unlock });
  const run = async <T>(work: Promise<T>): Promise<T> => {
    const state = { isOver: false };
    const over = (): void => void (state.isOver = true);
    work.then(over, over);
    for (let ticks = 0; ticks < 10_000 && !state.isOver; ticks++) {
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
      if (!state.isOver) clock.advance(clock.nextInMs() ?? 0);
    }
    return await work;
  };
  const discard = (): Promise<Begun> => {
    const seen = { sizeBytes: 1024 ** 3 };
    const about = { node: "pve1", volume, confirmed: volume, seen } as const;
    const operation = { kind: "discardVolume", ...about } as const;
    return run(driver.begin(operation, open));
  };
  leave(model);
  return { model, driver, requests, discard, run };
}

function leave({ cluster }: ProxmoxModel): void {
  const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: 0 };
  const left = { name: "vm-200-disk-0", content: "images", format: "raw", vmid: 200 } as const;
  cluster.state.volumes["pve1:rpool/data"] = [{ ...left, ...sizes }];
}

function count({ model }: Lab): number {
  return model.cluster.state.volumes["pve1:rpool/data"]?.length ?? 0;
}

const users: Readonly<Record<string, string>> = {
  "a machine uses it": `name: user\nscsi1: ${volume}\n`,
  "a machine keeps it unused": `name: user\nunused0: ${volume}\n`,
  "a change that waits for a restart will use it": `name: user\n\n[PENDING]\nscsi1: ${volume}\n`,
  "it leaves with the next restart": `name: user\nscsi1: ${volume}\n\n[PENDING]\ndelete: scsi1\n`,
  "a snapshot knows it":
    `name: user\nparent: before\n\n[before]\nname: user\n` + `scsi1: ${volume}\nsnaptime: 1\n`,
  "a machine uses it by another storage's name": "name: user\nscsi1: local:vm-200-disk-0\n",
};

describe("a volume is not discarded", () => {
  for (const [why, text] of Object.entries(users)) {
    it(`while ${why}`, async () => {
      const lab = openLab();
      lab.model.writeGuestFile("pve2", 300, text);
      const begun = await lab.discard();
      assert.equal(begun.outcome, "refused", JSON.stringify(begun));
      assert.match(begun.outcome === "refused" ? begun.failure.message : "", /VM 300 uses/);
      assert.equal(count(lab), 1);
      lab.model.removeGuestFile(300);
      assert.equal((await lab.discard()).outcome === "refused", false);
    });
  }

  it("while a machine, or a container, has its id", async () => {
    const lab = openLab();
    lab.model.writeGuestFile("pve2", 200, "lock: create\n");
    assert.equal((await lab.discard()).outcome, "refused");
    assert.equal(count(lab), 1);
  });

  it("while the token may not see all machines", async () => {
    const lab = openLab();
    const { state } = lab.model.cluster;
    state.acl = state.acl.map((entry) => ({ ...entry, path: "/storage" }));
    const begun = await lab.discard();
    assert.equal(begun.outcome, "refused", JSON.stringify(begun));
    assert.equal(count(lab), 1);
  });

  it("while a node is away and its machines cannot be read", async () => {
    const lab = openLab();
    lab.model.writeGuestFile("pve2", 300, "name: user\n");
    lab.model.crashNode("pve2");
    assert.equal((await lab.discard()).outcome, "refused");
    assert.equal(count(lab), 1);
  });
});

describe("a survey", () => {
  it("says what it could not see, and lists what it could", async () => {
    const lab = openLab();
    lab.model.writeGuestFile("pve2", 300, "name: user\n");
    const whole = await lab.run(lab.driver.survey([]));
    assert.ok(whole.ok && whole.value.missing.length === 0, JSON.stringify(whole));
    assert.deepEqual(
      whole.value.volumes.map((found) => found.volume),
      [volume],
    );
    lab.model.crashNode("pve2");
    const partial = await lab.run(lab.driver.survey([]));
    assert.ok(partial.ok && partial.value.missing.includes("the node pve2"));
  });

  it("sees a disc in its drive until it has left", async () => {
    const lab = openLab();
    const disc = "local:iso/seed.iso";
    const leaving = `name: user\nide2: ${disc},media=cdrom\n\n[PENDING]\ndelete: ide2\n`;
    lab.model.writeGuestFile("pve2", 300, leaving);
    const seen = await lab.run(lab.driver.survey([]));
    assert.ok(seen.ok);
    assert.deepEqual(
      seen.value.machines.map(({ discs }) => discs),
      [[disc]],
    );
  });

  it("is not whole where the token may not see everything", async () => {
    const lab = openLab();
    const { state } = lab.model.cluster;
    state.roles["Half"] = ["Datastore.Audit", "Sys.Audit", "VM.Allocate"];
    state.acl = state.acl.map((entry) => ({ ...entry, roleid: "Half" }));
    const seen = await lab.run(lab.driver.survey([]));
    assert.ok(seen.ok);
    assert.deepEqual(
      seen.value.missing.filter((text) => text.startsWith("what needs")),
      ["what needs VM.Audit on /vms", "what needs Datastore.Allocate on /storage"],
    );
  });

  it("finds files of Berth's naming and nobody else's", async () => {
    const lab = openLab();
    const uuid = "00000000-0000-4000-8000-00000000f00d";
    const seed = `iso/berth-seed-${uuid}-0123456789abcdef.iso`;
    const image = `import/berth-sha256-${"a".repeat(64)}.qcow2`;
    const local = lab.model.cluster.state.volumes["pve1:/var/lib/vz"] ?? [];
    for (const name of [seed, "iso/berth-seed-mine.iso", "iso/debian.iso"]) {
      local.push({ name, content: "iso", format: "raw", sizeBytes: 9, usedBytes: 9, createdMs: 0 });
    }
    const file = { content: "import", format: "qcow2", sizeBytes: 9, usedBytes: 9 } as const;
    local.push({ name: image, ...file, createdMs: 0 });
    const seen = await lab.run(lab.driver.survey([]));
    assert.ok(seen.ok);
    const found = seen.value.files.map((one) => `${one.use} ${one.volume}`);
    assert.deepEqual(found.toSorted(), [`Disc local:${seed}`, `Disk local:${image}`]);
  });
});

describe("the account for unlocking", () => {
  const claim = {
    externalId: "200",
    identity: "00000000-0000-4000-8000-00000000f00d",
    installation: "00000000-0000-4000-8000-00000000beef",
    owner: { namespace: "default", name: "web" },
    node: "pve1",
  };

  it("is a capability, and is not asked for anything that is not provably ours", async () => {
    const account = { username: "root@pam", password: "secret" };
    const lab = openLab(account);
    lab.model.writeGuestFile("pve1", 200, "name: stranger\nlock: backup\n");
    const at = { node: "pve1", version: "any" };
    const unlocked = await lab.run(
      lab.driver.begin({ kind: "unlock", claim, at, lock: "backup" }, open),
    );
    const cleared = await lab.run(
      lab.driver.begin({ kind: "clearHusk", claim, node: "pve1" }, open),
    );
    assert.deepEqual([unlocked.outcome, cleared.outcome], ["changed", "changed"]);
    lab.model.writeGuestFile("pve1", 200, "lock: create\n");
    const husk = await lab.run(lab.driver.begin({ kind: "clearHusk", claim, node: "pve1" }, open));
    assert.equal(husk.outcome, "changed");
    assert.deepEqual(
      lab.requests.filter(({ method }) => method !== "GET"),
      [],
    );
  });
});
