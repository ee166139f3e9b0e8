import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Mark, releasedMark, writeMark } from "../../hypervisor/index.ts";
import { claim } from "./fixture.ts";
import { isUnstampedClone, judge } from "./identity.ts";
import { markFor } from "./operations/standing.ts";

const mark = markFor(claim, { disks: {}, networks: {} });

function config(description: string, uuid = claim.identity) {
  return { digest: "d", values: { description, smbios1: `uuid=${uuid.toUpperCase()}` } };
}

function reasonOf(marked: Mark, uuid?: string): string {
  const verdict = judge(config(writeMark("notes", marked), uuid), claim);
  return verdict.is === "foreign" ? verdict.reason : verdict.is;
}

const otherUuid = "00000000-0000-4000-8000-000000000001";

describe("whose a machine is", () => {
  it("is ours when id, identity, mark and Claim agree", () => {
    assert.equal(reasonOf(mark), "ours");
  });

  const cases: readonly (readonly [string, Mark, string | undefined, string])[] = [
    [
      "another installation's",
      { ...mark, installation: otherUuid },
      undefined,
      "OtherInstallation",
    ],
    ["a clone, which copies notes", { ...mark, externalId: "9000" }, undefined, "Copied"],
    ["a clone under our id: the UUID is new", mark, otherUuid, "Copied"],
    ["an earlier machine's of our name", { ...mark, identity: otherUuid }, otherUuid, "Copied"],
    [
      "another object's",
      { ...mark, owner: { namespace: "prod", name: "db" } },
      undefined,
      "OtherOwner",
    ],
    ["one that we let go", releasedMark(mark), undefined, "Released"],
  ];
  for (const [what, marked, uuid, reason] of cases) {
    it(`is foreign when it is ${what}`, () => assert.equal(reasonOf(marked, uuid), reason));
  }

  it("is foreign without a mark: a recycled id proves nothing", () => {
    const verdict = judge(config("somebody's notes", otherUuid), claim);
    assert.deepEqual(verdict.is === "foreign" && verdict.reason, "Stranger");
  });

  it("says that the mark was lost when the identity is right", () => {
    const gone = judge(config("all rewritten"), claim);
    assert.equal(gone.is === "foreign" && gone.reason, "MarkLost");
    const twice = judge(config(`${writeMark("", mark)}\n${writeMark("", mark)}`), claim);
    assert.equal(twice.is === "foreign" && twice.reason, "MarkLost");
  });

  it("is our own unstamped clone only if all but the server's UUID agrees", () => {
    const isClone = (marked: Mark, uuid?: string): boolean => {
      return isUnstampedClone(config(writeMark("", marked), uuid), claim);
    };
    assert.equal(isClone(mark, otherUuid), true);
    assert.equal(isClone(mark), false);
    assert.equal(isClone(releasedMark(mark), otherUuid), false);
    assert.equal(isClone({ ...mark, externalId: "9000" }, otherUuid), false);
    assert.equal(isClone({ ...mark, identity: otherUuid }, otherUuid), false);
    assert.equal(isClone({ ...mark, installation: otherUuid }, otherUuid), false);
    assert.equal(isUnstampedClone(config("no mark", otherUuid), claim), false);
  });

  it("tells a husk by its lock being all there is", () => {
    const husk = judge({ digest: "d", values: { lock: "create" } }, claim);
    assert.deepEqual(husk, { is: "husk", lock: "create" });
    const begun = { lock: "clone", description: "qmclone temporary file\n" };
    assert.deepEqual(judge({ digest: "d", values: begun }, claim), { is: "husk", lock: "clone" });
    const noted = { ...begun, description: "mine" };
    assert.equal(judge({ digest: "d", values: noted }, claim).is, "foreign");
    const machine = judge({ digest: "d", values: { lock: "backup", memory: "512" } }, claim);
    assert.equal(machine.is, "foreign");
  });
});
