import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { builtinResources } from "../src/api/builtin/index.ts";
import { berthResources, claimKind, virtualMachineKind } from "../src/api/index.ts";
import type { Claim, ClaimSpec, VirtualMachine } from "../src/api/index.ts";
import { claimName, upgradeClaims } from "../src/controllers/claims/index.ts";
import { assertUpgraded, extraWrites, oldFields } from "./upgrade/compare.ts";
import { claimsIn, openKept, withClaims, type KeptFolder } from "./upgrade/kept.ts";
import { makeKept } from "./upgrade/make.ts";
import { openStage, pass, type Stage } from "./upgrade/stage.ts";

const kept = await openKept("0.1");

describe("the data folder of 0.1", () => {
  it("holds what is to be upgraded", () => {
    const specs = claimsIn(kept);
    const all = (field: string): string[] => {
      return [...new Set(specs.map((spec) => JSON.stringify(spec[field])))].toSorted();
    };
    assert.deepEqual(all("state"), ['"Bound"', '"Quarantined"', '"Released"', '"Reserved"']);
    assert.deepEqual(all("role"), ['"Keeper"', '"Machine"']);
    assert.deepEqual(all("origin"), ['"Adopted"', '"Created"']);
    assert.deepEqual(all("everStood"), ["false", "true"]);
    for (const field of oldFields) {
      assert.ok(
        specs.some((spec) => spec[field] !== undefined),
        field,
      );
    }
    assert.match(JSON.stringify(specs), /"local:unlisted".*"local-zfs:vm-\d+-disk-9"/);
    assert.ok(specs.every((spec) => spec["everExisted"] === undefined));
  });

  it("has every Claim in today's form before anything is done, and nothing of it is lost", async () => {
    const stage = await openStage(kept);
    const before = await claims(stage);
    let after: Claim[] | undefined;
    stage.before = async () => {
      after ??= await claims(stage);
    };
    stage.start();
    assert.ok(await pass(stage, 120_000, () => after !== undefined));
    assertUpgraded(before, after ?? []);
  });

  it("has a Claim for the file that 0.1 was bringing, before anything is done", async () => {
    const stage = await openStage(kept);
    let before: Claim | undefined;
    stage.before = async () => {
      before ??= (await claims(stage)).find(({ spec }) => spec.target === "File");
    };
    stage.start();
    await pass(stage, 120_000);
    assert.equal(before?.spec.state, "Reserved");
    assert.equal(before.spec.file?.operation?.step, "Download");
    const after = (await claims(stage)).filter(({ spec }) => spec.target === "File");
    assert.deepEqual(
      after.map(({ spec }) => [spec.owner.name, spec.state]),
      [["coming", "Bound"]],
    );
    assert.ok(!stage.writes.some((write) => write.includes("download-url")));
  });

  it("has no effect on any VM that 0.1 would not have had, and comes to the same end", async () => {
    const stage = await run(kept);
    assert.deepEqual(extraWrites(stage.writes, kept), []);
    const left = await vms(stage);
    const failing = (name: string): string | undefined => {
      return left.find(({ metadata }) => metadata.name === name)?.status?.failure?.category;
    };
    assert.equal(failing("missing"), "Missing");
    assert.equal(failing("blocked"), "OrphanedVolumes");
    const open = left.filter(({ status }) => status?.operation !== undefined);
    assert.deepEqual(
      open.map(({ metadata }) => metadata.name),
      [],
    );
    const gone = ["handing-over", "leaving"];
    assert.deepEqual(
      left.filter(({ metadata }) => gone.includes(metadata.name ?? "")),
      [],
    );
    assert.equal(left.length, 9);
  });

  it("loses a VM's past where everStood is lost, which is seen by what is done then", async () => {
    const forgetful = withClaims(kept, ({ everStood: _everStood, ...spec }) => spec);
    const stage = await run(forgetful);
    const extra = extraWrites(stage.writes, kept);
    assert.ok(extra.includes("POST /nodes/pve1/qemu"), "the VM that is gone is created again");
  });
});

describe("a data folder of this release", () => {
  it("can be kept for the next one", async () => {
    const today = await makeKept(() => undefined);
    // What waits for its id has a Claim too.
    assert.ok(claimsIn(today).length > claimsIn(kept).length);
    assert.deepEqual((await openStage(today)).writes, []);
  });
});

describe("the Claims of 0.1 on a server that drops what its schema does not know", () => {
  it("are all in today's form after the upgrade, and nothing of them is lost", async () => {
    const stage = await restored(berthResources);
    const before = await claims(stage);
    const { rewritten, refused } = await upgradeClaims(stage.client);
    assert.deepEqual([rewritten, refused], [before.length, []]);
    assertUpgraded(before, await claims(stage));
    assert.equal((await upgradeClaims(stage.client)).rewritten, 0, "once is enough");
  });

  it("are left as they are while the server has the CRD of 0.1", async () => {
    const stage = await restored(resourcesWithout(["everExisted", "otherVolumes"]));
    const before = await claims(stage);
    await assert.rejects(
      upgradeClaims(stage.client),
      /CustomResourceDefinition of Claim.*berth crds.*everExisted, otherVolumes/,
    );
    assert.deepEqual(await claims(stage), before);
    stage.start();
    await pass(stage, 120_000);
    assert.deepEqual(stage.writes, [], "nothing is done until its Claims can be stored");
    assert.ok(stage.log.some((line) => line.includes("berth crds")));
  });

  it("cannot lose everStood by a write of somebody else", async () => {
    const stage = await restored(berthResources);
    const claim = (await claims(stage)).find(({ spec }) => spec.state === "Bound");
    assert.ok(claim);
    const { everStood: _everStood, ...spec } = claim.spec;
    await assert.rejects(
      stage.client.of(claimKind).update({ ...claim, spec }),
      /everExisted cannot become false again/,
    );
  });
});

async function run(folder: KeptFolder): Promise<Stage> {
  const stage = await openStage(folder);
  stage.start();
  await pass(stage, 30 * 60_000);
  return stage;
}

async function claims({ client }: Stage): Promise<Claim[]> {
  const { items } = await client.of(claimKind).list();
  const name = ({ metadata }: Claim): string => metadata.name ?? "";
  return items.toSorted((a, b) => name(a).localeCompare(name(b)));
}

async function vms({ client }: Stage): Promise<VirtualMachine[]> {
  return (await client.of(virtualMachineKind).list()).items;
}

/** The objects of the folder on a new server, as an export brings them there. */
async function restored(kinds: typeof berthResources): Promise<Stage> {
  const { records: all, ...rest } = kept;
  const records = all.filter(({ bucket }) => bucket !== "berth.dev/claims");
  const stage = await openStage({ ...rest, records }, [...builtinResources, ...kinds]);
  for (const spec of claimsIn(kept)) {
    // cast: it is what 0.1 wrote, of which these fields are the same today.
    const { hypervisor, externalId } = spec as unknown as ClaimSpec;
    const metadata = { name: claimName(hypervisor.systemId, externalId) };
    // cast: it is what 0.1 wrote, and whether that is accepted is what is tried here.
    const claim = { apiVersion: "berth.dev/v1alpha1", kind: "Claim", metadata, spec } as never;
    await stage.client.of(claimKind).create(claim);
  }
  return stage;
}

/** Our kinds, with a Claim whose schema does not know some fields. */
function resourcesWithout(fields: readonly string[]): typeof berthResources {
  return berthResources.map((resource) => {
    if (resource.kind !== "Claim") return resource;
    const copy = structuredClone(resource);
    // cast: a schema is plain JSON.
    const spec = copy.schema.properties?.["spec"] as unknown as Record<string, object>;
    for (const field of fields) Reflect.deleteProperty(spec["properties"] ?? {}, field);
    delete spec["x-kubernetes-validations"];
    return copy;
  });
}
