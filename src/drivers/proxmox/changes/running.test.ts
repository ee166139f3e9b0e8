import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Shape, shapeDifferences } from "../../../hypervisor/index.ts";
import { Bench } from "../../../hypervisor/testing/stage.ts";
import { releases } from "../../../sim/index.ts";
import { simulatedStage } from "../testing/simulated-stage.ts";

/** The machine that everything is changed on, and one change for every line that has a class. */
const before: Shape = {
  name: "web",
  disks: [{ name: "root" }, { name: "old", bus: "sata" }],
  networks: [{ name: "lan", network: "vmbr0" }],
  cdroms: [{ name: "disc", medium: "" }],
};

const changes: readonly Shape[] = [
  { name: "other" },
  { notes: "new" },
  { tags: ["new"] },
  { startOnBoot: true },
  { startup: { order: 3 } },
  { deletionProtection: true },
  { cpu: { cores: 2 } },
  { cpu: { sockets: 2 } },
  { cpu: { limitMillicores: 500 } },
  { cpu: { weight: 50 } },
  { cpu: { numa: true } },
  { cpu: { model: "host" } },
  { memory: { sizeBytes: 2 * 1024 ** 3 } },
  { memory: { ballooning: false } },
  { memory: { weight: 10 } },
  { machineType: "q35" },
  { guestOs: { family: "Windows", version: "11" } },
  { scsiController: "Virtio" },
  { serialConsole: true },
  { display: { type: "Virtio" } },
  { guestAgent: true },
  { firmware: { type: "UEFI", storage: "local-zfs" } },
  { firmware: { tpm: "V2.0", storage: "local-zfs" } },
  { networks: [{ name: "lan", vlan: 7 }] },
  { networks: [{ name: "lan", firewall: true }] },
  { networks: [{ name: "lan", connected: false }] },
  { networks: [{ name: "lan", bytesPerSecond: 1024 ** 2 }] },
  { disks: [{ name: "root", cache: "WriteBack" }] },
  { disks: [{ name: "root", discard: true }] },
  { disks: [{ name: "root", ioThread: true }] },
  { disks: [{ name: "root", ssd: true }] },
  { disks: [{ name: "root", readOnly: true }] },
  { disks: [{ name: "root", asyncIo: "Threads" }] },
  { disks: [{ name: "root", backup: false }] },
  { disks: [{ name: "root", limits: { readBytesPerSecond: 1024 ** 2 } }] },
];

describe("the table of changes, held against a machine that runs", () => {
  for (const release of releases) {
    for (const change of changes) {
      it(`${release}: ${JSON.stringify(change)}`, async () => {
        const bench = new Bench(simulatedStage(release));
        await bench.stage.settle(bench.driver.system());
        const claim = await bench.machine(before);
        await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
        const { shape } = bench.driver.fit(change);
        const seen = await bench.ours(claim);
        const differences = shapeDifferences(shape, seen.shape);
        assert.notDeepEqual(differences, [], "nothing was changed");
        const classes = differences.map(({ path }) => bench.driver.changeOf(path, seen).class);
        await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
        const { pending } = await bench.ours(claim);
        const expected = classes.includes("Reboot") ? "waits" : "is live";
        assert.equal(pending.length > 0 ? "waits" : "is live", expected, classes.join());
      });
    }
  }
});
