import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind } from "../../api/index.ts";
import type { VMImage } from "../../api/index.ts";
import { createInformer } from "../../client/index.ts";
import { countingRandom, openWorld } from "../testing/world.ts";
import { FileLedger } from "./file-ledger.ts";
import { claimIndexes } from "./claim-indexes.ts";
import { Ledger } from "./ledger.ts";

const installation = "00000000-0000-4000-8000-000000000007";
const hypervisor = { name: "lab", systemId: "lab-1" };
const file = { storage: "local", name: "mine.qcow2", content: "Image" } as const;
const imageOf = (name: string): Pick<VMImage, "metadata"> => {
  return { metadata: { namespace: "default", name, uid: `uid-${name}` } };
};

async function openFiles() {
  const { client, clock } = await openWorld();
  const random = countingRandom(6);
  const claims = createInformer({
    client,
    clock,
    random,
    kind: claimKind,
    indexes: claimIndexes,
  });
  const ledger = new Ledger({ client, claims, clock, installation });
  return { client, ledger, files: new FileLedger({ client, clock, ledger }) };
}

describe("the ledger of files", () => {
  it("gives a file to one image", async () => {
    const { files } = await openFiles();
    const first = await files.reserve({ image: imageOf("a"), hypervisor, node: "n1", file });
    assert.equal(first.is, "ours");
    const again = await files.reserve({ image: imageOf("a"), hypervisor, node: "n1", file });
    assert.equal(again.is, "ours");
    const other = await files.reserve({ image: imageOf("b"), hypervisor, node: "n1", file });
    assert.ok(other.is === "taken");
    assert.equal(other.by.spec.owner.name, "a");
    const elsewhere = await files.reserve({ image: imageOf("b"), hypervisor, node: "n2", file });
    assert.equal(elsewhere.is, "ours");
  });

  it("passes a file from one image to another, and finds it with that one", async () => {
    const { files } = await openFiles();
    const reserved = await files.reserve({ image: imageOf("a"), hypervisor, node: "n1", file });
    assert.ok(reserved.is === "ours");
    const bound = await files.bind(reserved.claim, { size: "7" });
    assert.deepEqual([bound.spec.state, bound.spec.file?.size], ["Bound", "7"]);
    await files.giveTo(bound, imageOf("b"));
    assert.deepEqual(await files.ownedBy(imageOf("a")), []);
    const [given] = await files.ownedBy(imageOf("b"));
    assert.equal(given?.metadata.name, bound.metadata.name);
    assert.equal(
      (await files.reserve({ image: imageOf("b"), hypervisor, node: "n1", file })).is,
      "ours",
    );
  });

  it("lets a file that was released be brought again", async () => {
    const { files } = await openFiles();
    const reserved = await files.reserve({ image: imageOf("a"), hypervisor, node: "n1", file });
    assert.ok(reserved.is === "ours");
    await files.release(reserved.claim, "not known");
    assert.deepEqual(await files.ownedBy(imageOf("a")), []);
    const again = await files.reserve({ image: imageOf("b"), hypervisor, node: "n1", file });
    assert.ok(again.is === "ours");
    assert.deepEqual([again.claim.spec.state, again.claim.spec.owner.name], ["Reserved", "b"]);
    assert.equal(again.claim.spec.releaseReason, undefined);
  });

  it("is not mistaken for that of VMs of the same name", async () => {
    const { files, ledger } = await openFiles();
    await files.reserve({ image: imageOf("web"), hypervisor, node: "n1", file });
    const spec = { hypervisorRef: { name: "lab" } };
    // cast: all that is asked of a VirtualMachine here.
    const vm = { ...imageOf("web"), spec } as never;
    assert.deepEqual(await ledger.find(vm), { ok: true, value: undefined });
    assert.deepEqual(ledger.idsOn("lab-1"), []);
    assert.deepEqual(ledger.heldOn("lab-1"), []);
  });
});
