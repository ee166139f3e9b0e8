import assert from "node:assert/strict";
import { test } from "node:test";
import { type Lock, missingPackages } from "./packages.mjs";

const lock: Lock = {
  packages: {
    "": {},
    "node_modules/run": { version: "1.0.0", integrity: "a" },
    "node_modules/dev": { version: "1.0.0", integrity: "b", dev: true },
    "node_modules/optional": { version: "1.0.0", integrity: "c", optional: true },
  },
};

function missing(changes: Partial<Parameters<typeof missingPackages>[0]>): string[] {
  return missingPackages({ lock, installed: lock, dev: true, exists: () => true, ...changes });
}

test("misses nothing where all is installed as locked", () => {
  assert.deepEqual(missing({}), []);
});

test("misses everything that is required in a fresh clone, tools only if they are wanted", () => {
  assert.deepEqual(missing({ installed: undefined }), ["node_modules/run", "node_modules/dev"]);
  assert.deepEqual(missing({ installed: undefined, dev: false }), ["node_modules/run"]);
});

test("misses a package whose lock changed, and an optional one too if it is there", () => {
  const packages = { ...lock.packages, "node_modules/optional": { version: "2", optional: true } };
  assert.deepEqual(missing({ lock: { packages } }), ["node_modules/optional"]);
  const installed = { packages: { ...lock.packages } };
  delete installed.packages["node_modules/optional"];
  assert.deepEqual(missing({ lock: { packages }, installed }), []);
});

test("misses a folder that somebody removed by hand", () => {
  assert.deepEqual(missing({ exists: (path) => path !== "node_modules/run" }), [
    "node_modules/run",
  ]);
});
