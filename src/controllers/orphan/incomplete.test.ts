import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HypervisorDriver, Survey } from "../../hypervisor/index.ts";
import { openProxmox, type SimulatedWorld } from "../testing/simulated-proxmox.ts";
import { until } from "../testing/world.ts";
import {
  configure,
  decide,
  longMs,
  orphanOf,
  ready,
  reasonOf,
  slow,
  strip,
  volumeNames,
  waitForOrphan,
} from "./testing.ts";

// A kept disk that an incomplete survey does not show would be forgotten with the request to keep
// it; and when it is seen again, the policy would delete it.

const stopped = { powerState: "Stopped" } as const;

/** A disk of ours whose VM is gone, which a person asked to keep, where the policy deletes. */
async function keepDisk(stage: SimulatedWorld): Promise<string> {
  const { world, proxmox } = stage;
  world.start(slow);
  const id = await ready(stage, "web", stopped);
  for (const name of ["b", "c"]) await ready(stage, name, stopped);
  await strip(world, "web");
  proxmox.removeGuestFile(Number(id));
  const volume = `local-zfs:vm-${id}-disk-0`;
  await decide(world, await waitForOrphan(world, volume), { decision: "Keep" });
  const isKept = async (): Promise<boolean> => reasonOf(await orphanOf(world, volume)) === "Kept";
  assert.ok(await until(world, isKept));
  await configure(world, { orphans: { policy: "DeleteOwned" } });
  await until(world, () => false, longMs);
  return volume;
}

async function assertKept({ world, proxmox }: SimulatedWorld, volume: string): Promise<void> {
  const name = volume.split(":")[1] ?? "";
  assert.ok(volumeNames(proxmox).includes(name), "the disk that was to be kept is destroyed");
  assert.equal(reasonOf(await orphanOf(world, volume)), "Kept");
}

/** The driver, with a survey that can be changed. */
function surveying(
  change: (survey: Survey) => Survey,
): (driver: HypervisorDriver) => HypervisorDriver {
  return (driver) => {
    const survey: typeof driver.survey = async (known) => {
      const answer = await driver.survey(known);
      return answer.ok ? { ...answer, value: change(answer.value) } : answer;
    };
    return new Proxy(driver, {
      get: (target, key) => {
        if (key === "survey") return survey;
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  };
}

describe("a disk that a person keeps, under DeleteOwned", () => {
  it("is not destroyed because a survey that was not whole did not show it", async () => {
    let isPartial = false;
    const around = surveying((survey) => {
      const part = { volumes: [], missing: ["the storage local-zfs on pve1"] };
      return isPartial ? { ...survey, ...part } : survey;
    });
    const stage = await openProxmox("8.4", { around });
    const volume = await keepDisk(stage);
    isPartial = true;
    await until(stage.world, () => false, 2 * longMs);
    isPartial = false;
    await until(stage.world, () => false, 3 * longMs);
    await assertKept(stage, volume);
  });
});
