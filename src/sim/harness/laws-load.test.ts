import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Volume } from "../proxmox/index.ts";
import { demandSlots, workersOf, type Work } from "./laws-load.ts";

const limits = { slots: { hypervisor: 3, node: 2, storage: 1 } };
const backing = "pve1:rpool/data";

function on(node: string, ...names: string[]): Work[] {
  return names.map((name) => ({ node, name }));
}

function partial(vmid: number): Volume {
  const sizes = { sizeBytes: 1, usedBytes: 0, createdMs: 0 };
  const name = `vm-${vmid}-disk-0`;
  return { name, content: "images", format: "raw", vmid, isPartial: true, ...sizes };
}

describe("the law of how much goes on at once", () => {
  it("allows as much as the Hypervisor does", () => {
    const work = [...on("pve1", "qmstart:1", "qmstart:2"), ...on("pve2", "qmstart:3")];
    demandSlots("east", work, { limits, volumes: {} });
  });

  it("is broken by one more on a node, and by one more in all", () => {
    const node = on("pve1", "qmstart:1", "qmstart:2", "qmstart:3");
    assert.throws(() => demandSlots("east", node, { limits, volumes: {} }), /on pve1 of east/);
    const all = [...on("pve1", "qmstart:1", "qmstart:2"), ...on("pve2", "qmstop:3", "qmstop:4")];
    assert.throws(
      () => demandSlots("east", all, { limits, volumes: {} }),
      /4 tasks where 3 may be/,
    );
  });

  it("is broken by two copies onto one storage", () => {
    const work = on("pve1", "qmconfig:1", "qmconfig:2");
    const volumes = { [backing]: [partial(1), partial(2)] };
    assert.throws(() => demandSlots("east", work, { limits, volumes }), /where they copy/);
  });

  it("does not take what a broken copy left for a copy, nor memory that is written down", () => {
    const work = on("pve1", "qmconfig:1", "qmsuspend:3");
    const volumes = { [backing]: [partial(1), partial(2), partial(3)] };
    demandSlots("east", work, { limits, volumes });
  });

  it("counts workers, and neither requests nor guests", () => {
    const names = ["qmstart:1", "PUT /nodes/{node}/qemu/{vmid}/config", "guest:1", "qmstop:2"];
    assert.deepEqual(counted(names), ["qmstart:1", "qmstop:2"]);
  });

  it("counts a machine once, and every clone", () => {
    assert.deepEqual(counted(["qmreboot:1", "qmstart:1", "qmstart:2"]), ["qmstart:1", "qmstart:2"]);
    assert.deepEqual(counted(["qmconfig:1", "imgdel:1@local-zfs"]), ["imgdel:1@local-zfs"]);
    const others = ["qmconfig:1", "imgdel:2@local-zfs", "imgdel:local"];
    assert.deepEqual(counted(others), others);
    assert.deepEqual(counted(["qmclone:9", "qmclone:9"]), ["qmclone:9", "qmclone:9"]);
  });

  it("does not count what others began, nor what nobody remembers", () => {
    const names = ["qmstart:1", "qmstart:2", "qmstart:3"];
    assert.deepEqual(counted(names, ["b", "root@pam", "b"]), ["qmstart:1", "qmstart:3"]);
    assert.deepEqual(counted(names, ["b", "b"]), ["qmstart:1", "qmstart:2"]);
  });

  it("does not count an upload of minutes ago, whose task names no machine", () => {
    const processes = [1, 2].map((pid) => ({ pid, node: "pve1", name: `imgcopy:` }));
    const tasks = [1, 2].map((pid) => ({ pid, user: "b", type: "imgcopy", startMs: pid * 1000 }));
    const at = (nowMs: number): number => workersOf(processes, { tasks, user: "b", nowMs }).length;
    assert.deepEqual([at(3_000), at(70_000)], [1, 0]);
  });
});

/** What counts of these workers; of each the user whose task it is, or nobody knows it. */
function counted(names: string[], users = names.map(() => "b")): string[] {
  const processes = names.map((name, pid) => ({ pid, node: "pve1", name }));
  const tasks = users.map((user, pid) => ({ pid, user }));
  return workersOf(processes, { tasks, user: "b", nowMs: 0 }).map(({ name }) => name);
}
