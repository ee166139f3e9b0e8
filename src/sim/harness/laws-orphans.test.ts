import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Claim, Hypervisor, Orphan, VirtualMachine } from "../../api/index.ts";
import type { PveRequest } from "../../drivers/proxmox/index.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { Change } from "../../store/index.ts";
import { Dice } from "./dice.ts";
import { putVolume } from "./hands-volumes.ts";
import { OrphanLaws } from "./laws-orphans.ts";
import { Records } from "./records.ts";
import { Site } from "./site.ts";

type Decision = Orphan["spec"]["decision"];

const volume = "local-zfs:vm-100-disk-0";

/** A machine 100 that was made for the object u1, which is gone; its Claim is still held. */
function ground(policy = "DeleteOwned") {
  const clock = new VirtualClock();
  const site = new Site({ name: "east", release: "8.4", clock, dice: Dice.of(1, "site") });
  const text = "name: web\nmemory: 512\nide2: local:iso/seed.iso,media=cdrom\n";
  site.creates.set("100", "u1");
  site.model.writeGuestFile("pve1", 100, text);
  site.touched();
  site.survey();
  const records = new Records();
  const spec = { orphans: { policy, graceSeconds: 150, sweepSeconds: 60 } };
  // cast: the rest of the objects is of no matter here, and in all of this file.
  records.hypervisors.set("east", { metadata: { name: "east" }, spec } as unknown as Hypervisor);
  records.claims.set("c-100", claimOf("u1"));
  const sites = new Map([["east", site]]);
  const laws = new OrphanLaws({ records, sites, nowMs: () => clock.nowMs() });
  laws.hear(vmOf("u1"));
  return { clock, site, records, laws };
}

function vmOf(uid: string): VirtualMachine {
  return { metadata: { namespace: "default", name: "web", uid } } as VirtualMachine;
}

function claimOf(uid: string, state = "Bound"): Claim {
  const owner = { namespace: "default", name: "web", uid };
  const volumes = [{ id: volume, role: "Disk" }];
  const spec = { hypervisor: { name: "east" }, externalId: "100", state, owner, volumes };
  return { metadata: { name: "c-100" }, spec } as unknown as Claim;
}

interface Said {
  readonly kind?: Orphan["spec"]["kind"];
  readonly externalId?: string;
  readonly decision?: Decision;
  readonly step?: string;
}

function orphanOf({ kind = "Machine", externalId = "100", decision, step }: Said = {}): Orphan {
  const operation = step && { id: `${step} 1`, step, intent: "Destroy it." };
  const spec = { hypervisor: "east", kind, externalId, ...(decision && { decision }) };
  const status = { node: "pve1", claim: "c-100", ...(operation && { operation }) };
  const metadata = { name: `o-${kind}`, uid: "o1" };
  return { metadata, spec, status } as unknown as Orphan;
}

function begins(laws: OrphanLaws, said: Said = {}): void {
  laws.atOrphanChange({ before: orphanOf(said), after: orphanOf({ ...said, step: "Destroy" }) });
}

function suspicion(at: string): Change {
  const event = {
    reason: "SuspiciousSweep",
    lastTimestamp: at,
    involvedObject: { kind: "Hypervisor", name: "east" },
  };
  const value = Buffer.from(
    JSON.stringify({ apiVersion: "v1", kind: "Event", metadata: { name: "e" }, ...event }),
  );
  const entry = { bucket: "core/events", id: "default/e", revision: 1, value };
  return { type: "put", bucket: "core/events", entry } as unknown as Change;
}

const destroy: PveRequest = { method: "DELETE", path: "/nodes/pve1/qemu/100" };
const what = (): string => "DELETE";

describe("what nothing declares", () => {
  it("is destroyed by policy if a Claim of its own object knows it", () => {
    begins(ground().laws);
  });

  it("is not destroyed where the policy only reports, unless a person says so", () => {
    const { laws } = ground("Report");
    assert.throws(() => begins(laws), /law 5.*nobody decided/);
    begins(laws, { decision: "Destroy" });
  });

  it("is not destroyed where a person said something else", () => {
    const { laws } = ground();
    assert.throws(() => begins(laws, { decision: "Keep" }), /law 4.*a person said Keep/);
  });

  it("stays kept when the Orphan that said so is gone and another one tells of it", () => {
    const { laws } = ground();
    laws.atOrphanChange({ before: orphanOf(), after: orphanOf({ decision: "Keep" }) });
    laws.atOrphanChange({ before: orphanOf({ decision: "Keep" }), after: undefined });
    laws.atOrphanChange({ before: undefined, after: orphanOf() });
    assert.throws(() => begins(laws), /law 4.*a person said Keep/);
  });

  it("is kept until a person takes that back, or until it is another thing", () => {
    const kept = { before: orphanOf(), after: orphanOf({ decision: "Keep" }) };
    const back = { before: orphanOf({ decision: "Keep" }), after: orphanOf() };
    const first = ground();
    first.laws.atOrphanChange(kept);
    first.laws.atOrphanChange(back);
    begins(first.laws);
    const second = ground();
    second.laws.atOrphanChange(kept);
    second.site.guests.set("100", { by: "berth", uid: "u1" });
    begins(second.laws);
    const third = ground();
    third.laws.atOrphanChange(kept);
    third.laws.forget(orphanOf());
    begins(third.laws);
  });

  it("is not destroyed by policy while its mark alone says whose it is", () => {
    const { laws, records } = ground();
    records.claims.clear();
    assert.throws(() => begins(laws), /law 4.*nothing but its mark/);
    records.claims.set("c-100", claimOf("o1", "Reserved"));
    assert.throws(() => begins(laws), /law 4.*nothing but its mark/);
  });

  it("is not destroyed while its object is there", () => {
    const { laws, records } = ground();
    records.vms.set("default/web", vmOf("u1"));
    assert.throws(() => begins(laws), /law 4.*its object is there/);
  });

  it("is not destroyed within the grace time after much less was there", () => {
    const { laws, clock } = ground();
    laws.atChange(suspicion(new Date(clock.nowMs()).toISOString()));
    clock.advance(100_000);
    assert.throws(() => begins(laws), /law 4.*much less was there than before 100 s ago/);
    clock.advance(51_000);
    begins(laws);
  });

  it("is let go only for an adoption", () => {
    const { laws } = ground();
    const after = orphanOf({ step: "Release" });
    assert.throws(() => laws.atOrphanChange({ before: orphanOf(), after }), /law 5.*is let go/);
    laws.atOrphanChange({
      before: undefined,
      after: orphanOf({ step: "Release", decision: "Adopt" }),
    });
  });
});

describe("a volume or a disc that nothing declares", () => {
  const said = { kind: "Volume", externalId: volume } as const;

  it("is destroyed by policy only if a Claim of a gone object names it", () => {
    const { laws, records } = ground();
    begins(laws, said);
    records.claims.set("c-100", claimOf("nobody ever"));
    assert.throws(() => begins(laws, said), /law 4.*no Claim of a gone object names it/);
  });

  it("is kept with its machine", () => {
    const { laws, records } = ground();
    records.orphans.set("o-Machine", orphanOf({ decision: "Keep" }));
    assert.throws(() => begins(laws, said), /law 4.*a person keeps its machine/);
  });

  it("may go, whoever left it, when a person decides so", () => {
    const { laws, site } = ground();
    putVolume({ site, id: "100" }, "pve1:rpool/data", "vm-100-disk-0");
    const key = "pve1:rpool/data/vm-100-disk-0";
    assert.equal(site.volumes.get(key)?.by, "person");
    begins(laws, { ...said, decision: "Destroy" });
    assert.equal(site.volumes.get(key)?.by, "nobody");
  });

  it("stays in the drive of a machine that runs", () => {
    const { laws, site } = ground();
    const disc = { kind: "ISO", externalId: "local:iso/seed.iso" } as const;
    begins(laws, disc);
    site.isRunning = () => true;
    assert.throws(() => begins(laws, disc), /law 4.*has it in its drive/);
  });
});

describe("a request for an Orphan", () => {
  it("has the open operation of that Orphan, and a Claim", () => {
    const { laws, records, site } = ground();
    assert.equal(laws.intentOf(site, destroy, what), undefined);
    const orphan = orphanOf({ step: "Destroy" });
    records.orphans.set("o", orphan);
    assert.equal(laws.intentOf(site, destroy, what), orphan);
    records.claims.clear();
    assert.throws(() => laws.intentOf(site, destroy, what), /law 5.*without a Claim of 100/);
  });

  it("destroys nothing that is to be let go", () => {
    const { laws, records, site } = ground();
    records.orphans.set("o", orphanOf({ step: "Release", decision: "Adopt" }));
    assert.equal(laws.intentOf(site, destroy, what), undefined);
  });

  it("destroys nothing that runs", () => {
    const { laws, records, site } = ground();
    records.orphans.set("o", orphanOf({ step: "Destroy" }));
    site.isRunning = () => true;
    site.hadPowerWithin = () => false;
    assert.throws(() => laws.intentOf(site, destroy, what), /law 4.*the machine runs/);
  });
});

describe("what people take away", () => {
  it("is told apart from what Berth does", () => {
    const { laws } = ground();
    const gone = { before: vmOf("u1"), after: undefined };
    assert.equal(laws.isStripped(gone), false);
    laws.stripped.set("u1", "web");
    assert.equal(laws.isStripped(gone), true);
    assert.equal(laws.isLeftBehind("web"), true);
    assert.equal(laws.isLeftBehind("db"), false);
    const lost = { before: claimOf("u1"), after: undefined };
    assert.equal(laws.isLost(lost), false);
    laws.lostClaims.add("c-100");
    assert.equal(laws.isLost(lost), true);
  });

  it("is told by an Orphan while a Claim holds it", () => {
    const { laws, records } = ground();
    assert.equal(laws.isTold(claimOf("u1")), false);
    records.orphans.set("o", orphanOf());
    assert.equal(laws.isTold(claimOf("u1")), true);
  });
});
