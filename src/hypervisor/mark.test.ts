import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatMark, type Mark, readMark, releasedMark, removeMark, writeMark } from "./mark.ts";

const name = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,20}$/);
const slots = fc.dictionary(name, fc.stringMatching(/^[a-z]{2,6}[0-9]{1,2}$/), {
  maxKeys: 5,
  noNullPrototype: true,
});

const plain = { noNullPrototype: true };

/** Parts that a mark tells of only where there are any. */
const someSlots = slots.filter((found) => Object.keys(found).length > 0);

const required: (keyof Mark)[] = [
  "state",
  "installation",
  "owner",
  "identity",
  "externalId",
  "disks",
  "networks",
];

const anyMark: fc.Arbitrary<Mark> = fc.record(
  {
    state: fc.constantFrom("Owned", "Released"),
    installation: fc.uuid(),
    owner: fc.record({ namespace: name, name }, plain),
    identity: fc.uuid(),
    externalId: fc.oneof(
      fc.stringMatching(/^[1-9][0-9]{2,8}$/),
      fc.string({ minLength: 1, unit: "grapheme" }),
    ),
    disks: slots,
    networks: slots,
    cdroms: someSlots,
    pci: someSlots,
    usb: someSlots,
  },
  { ...plain, requiredKeys: required },
);

/** What people write, with lines that look almost like ours. */
const notes = fc
  .array(fc.oneof(fc.string(), fc.constantFrom("", "# Web", "<!-- a comment -->", "berth:1 {}")))
  .map((lines) => lines.join("\n"))
  .filter((text) => !/^<!-- berth:\d+ .*-->[ \t\r]*$/m.test(text));

describe("the mark", () => {
  it("comes back as it was written, and so does the person's text", () => {
    fc.assert(
      fc.property(notes, anyMark, (text, mark) => {
        const read = readMark(writeMark(text, mark));
        assert.deepEqual(read, { person: text, mark: { ...mark }, isBroken: false });
        assert.equal(removeMark(writeMark(text, mark)), text);
      }),
    );
  });

  it("is one line at the end, whatever its values are", () => {
    fc.assert(
      fc.property(notes, anyMark, (text, mark) => {
        const written = writeMark(text, mark);
        assert.equal(written.split("\n").at(-1), formatMark(mark));
        assert.doesNotMatch(formatMark(mark).slice(0, -4), /-->/);
      }),
    );
  });

  it("replaces the mark that was there", () => {
    fc.assert(
      fc.property(notes, anyMark, anyMark, (text, first, second) => {
        assert.equal(writeMark(writeMark(text, first), second), writeMark(text, second));
      }),
    );
  });

  it("is found where people wrote below it, and their text is kept", () => {
    fc.assert(
      fc.property(notes, notes, anyMark, (above, below, mark) => {
        const read = readMark(`${above}\n${formatMark(mark)}\n${below}`);
        assert.deepEqual(read.mark, { ...mark });
        assert.equal(read.person, `${above}\n${below}`);
      }),
    );
  });

  it("is the same text for the same mark, whatever the order of its slots", () => {
    const mark = fc.sample(anyMark, 1)[0];
    assert(mark);
    const one = { ...mark, disks: { b: "scsi1", a: "scsi0" } };
    const other = { ...mark, disks: { a: "scsi0", b: "scsi1" } };
    assert.equal(formatMark(one), formatMark(other));
  });

  it("says that it was released and by whom", () => {
    fc.assert(
      fc.property(anyMark, (mark) => {
        const read = readMark(writeMark("", releasedMark(mark)));
        assert.equal(read.mark?.state, "Released");
        assert.deepEqual(read.mark?.owner, { ...mark.owner });
      }),
    );
  });

  it("proves nothing when it is there twice, damaged, or of a later version", () => {
    const mark = fc.sample(anyMark, 1)[0];
    assert(mark);
    const line = formatMark(mark);
    for (const text of [
      `${line}\n${line}`,
      line.replace('"identity"', '"identify"'),
      line.replace("{", ""),
      line.replace("berth:1", "berth:2"),
    ]) {
      assert.deepEqual(readMark(text).mark, undefined, text);
      assert.equal(readMark(text).isBroken, true, text);
    }
  });

  it("leaves a text without a mark alone", () => {
    fc.assert(
      fc.property(notes, (text) => {
        assert.deepEqual(readMark(text), { person: text, isBroken: false });
        assert.equal(removeMark(text), text);
      }),
    );
  });
});
