import assert from "node:assert/strict";
import type { SeenFile } from "../seen-file.ts";
import type { Survey } from "../survey.ts";
import type { Bench, Laws } from "./stage.ts";

/** That what nothing declares is found as it is, and goes only where nobody needs it. */
export const surveying: Laws = {
  "surveys its machines with their marks, and everybody else's without": async (bench) => {
    const claim = await bench.machine();
    const stranger = (await bench.claim()).externalId;
    bench.stage.behind.strangerTakes(stranger);
    const { machines, missing, nodes } = await surveyed(bench);
    assert.deepEqual(missing, []);
    assert.ok(nodes.includes(bench.stage.node));
    const ours = machines.find(({ externalId }) => externalId === claim.externalId);
    assert.equal(ours?.content, "Machine");
    assert.equal(ours?.mark?.installation, claim.installation);
    assert.equal(ours?.identity, claim.identity);
    assert.ok((ours?.sizeBytes ?? 0) > 0);
    const theirs = machines.find(({ externalId }) => externalId === stranger);
    assert.equal(theirs?.mark, undefined);
  },

  "does not look into machines that are known already": async (bench) => {
    const { externalId } = await bench.machine();
    const { machines } = await surveyed(bench, [externalId]);
    assert.deepEqual(
      machines.map(({ content, mark }) => [content, mark]),
      [["Known", undefined]],
    );
  },

  "surveys volumes whose machine is not there, and no other": async (bench) => {
    const { behind } = bench.stage;
    const claim = await bench.machine();
    behind.leaveVolume(claim.externalId);
    const { externalId } = await bench.claim();
    const volume = behind.leaveVolume(externalId);
    const { volumes } = await surveyed(bench);
    assert.deepEqual(
      volumes.map((found) => [found.volume, found.externalId]),
      [[volume, externalId]],
    );
  },

  "discards a volume on a typed id alone, and only one whose machine is not there": async (
    bench,
  ) => {
    const { behind, node } = bench.stage;
    const claim = await bench.machine();
    const owned = behind.leaveVolume(claim.externalId);
    const volume = behind.leaveVolume((await bench.claim()).externalId);
    const seen = await seenOf(bench, volume);
    const discard = (id: string, confirmed: string): ReturnType<Bench["begin"]> => {
      return bench.begin({ kind: "discardVolume", node, volume: id, confirmed, seen });
    };
    assert.equal((await discard(volume, "")).outcome, "refused");
    assert.equal((await discard(volume, owned)).outcome, "refused");
    assert.equal((await discard(owned, owned)).outcome, "refused");
    for (const { id } of (await bench.ours(claim)).volumes) {
      assert.equal((await discard(id, id)).outcome, "refused");
    }
    const counted = behind.volumes().length;
    await bench.succeed({ kind: "discardVolume", node, volume, confirmed: volume, seen });
    assert.equal(behind.volumes().length, counted - 1);
    await bench.succeed({ kind: "discardVolume", node, volume, confirmed: volume, seen });
  },

  "does not discard another volume than the one that was seen": async (bench) => {
    const { behind, node } = bench.stage;
    const volume = behind.leaveVolume((await bench.claim()).externalId);
    const { sizeBytes } = await seenOf(bench, volume);
    const seen = { sizeBytes: sizeBytes - 1 };
    const begun = await bench.begin({
      kind: "discardVolume",
      node,
      volume,
      confirmed: volume,
      seen,
    });
    assert.equal(begun.outcome, "changed");
    assert.equal(behind.volumes().length, 1);
  },

  "sends no discard once it may not write any more": async (bench) => {
    const { behind, node } = bench.stage;
    const volume = behind.leaveVolume((await bench.claim()).externalId);
    const seen = await seenOf(bench, volume);
    const operation = { kind: "discardVolume", node, volume, confirmed: volume, seen } as const;
    const begun = await bench.begin(operation, { mayWrite: () => false });
    assert.deepEqual(begun, { outcome: "fenced" });
    assert.equal(behind.volumes().length, 1);
  },

  "knows nothing of what is there when nobody answers": async (bench) => {
    await bench.machine();
    bench.stage.behind.cutOff();
    assert.equal((await bench.stage.settle(bench.driver.survey([]))).ok, false);
  },
};

async function seenOf(bench: Bench, volume: string): Promise<SeenFile> {
  const { volumes } = await surveyed(bench);
  const found = volumes.find((one) => one.volume === volume);
  assert(found);
  const { sizeBytes, createdMs } = found;
  return createdMs === undefined ? { sizeBytes } : { sizeBytes, createdMs };
}

async function surveyed(bench: Bench, known: readonly string[] = []): Promise<Survey> {
  const survey = await bench.stage.settle(bench.driver.survey(known));
  assert(survey.ok, JSON.stringify(survey));
  return survey.value;
}
