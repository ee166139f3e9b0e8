import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { copyConfig, digestOf, emptyConfig, formatConfig, parseConfig } from "./config-file.ts";

test("a file with description, pending changes and snapshots reads back as it was written", () => {
  const config = emptyConfig();
  config.main.set("description", "line 1\nünï 100% #x");
  config.main.set("name", "web");
  config.pending.set("memory", "128");
  config.pendingDelete.set("cores", { isForced: false });
  config.pendingDelete.set("scsi1", { isForced: true });
  config.snapshots.set("before", new Map([["name", "old"]]));
  const text = formatConfig(config);
  assert.deepEqual(parseConfig(text), config);
  assert.match(text, /^#line 1\n#%C3%BCn%C3%AF 100%25 #x\nname: web\n/);
  assert.match(text, /\n\[PENDING\]\ndelete: !scsi1,cores\nmemory: 128\n/);
});

test("an empty value reads back as one space", () => {
  assert.equal(parseConfig("tags: \n").main.get("tags"), " ");
});

test("the placeholder of a clone reads as a lock with a description", () => {
  const { main } = parseConfig("# qmclone temporary file\nlock: clone\n");
  assert.deepEqual([...main.keys()].sort(), ["description", "lock"]);
});

test("the digest is of the whole file: a lock or a snapshot changes it", () => {
  const config = parseConfig("name: a\n");
  const before = digestOf(formatConfig(config));
  const locked = copyConfig(config);
  locked.main.set("lock", "backup");
  assert.notEqual(digestOf(formatConfig(locked)), before);
  const snapped = copyConfig(config);
  snapped.snapshots.set("one", new Map());
  assert.notEqual(digestOf(formatConfig(snapped)), before);
});

test("any description survives, but for white space at its end", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const plain = text.replaceAll(/[\r\n\u2028\u2029]/g, " ").trimEnd();
      const config = emptyConfig();
      config.main.set("description", plain);
      const read = parseConfig(formatConfig(config)).main.get("description") ?? "";
      assert.equal(read, plain);
    }),
  );
});
