import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { limits } from "../kernel/limits.ts";
import { fitStatus, statusBytes } from "./fit-status.ts";

// The worst that each status can hold: every text for people as long as its schema allows.

const time = "2026-01-02T03:04:05Z";
const failure = {
  category: "OrphanedVolumes",
  message: "m".repeat(2048),
  cause: "ü".repeat(8192),
  remedy: "r".repeat(2048),
  step: "Create",
  attempts: 1_000_000,
  firstAt: time,
  lastAt: time,
  declaration: "d".repeat(16),
};
const { cause: _cause, ...failedStep } = failure;
const operation = {
  id: "o".repeat(32),
  key: "k".repeat(32),
  target: "t".repeat(64),
  step: "Create",
  intent: "i".repeat(1024),
  attempt: 1,
  since: time,
  task: `UPID:pve1:${"0".repeat(60)}`,
};
const conditions = ["Ready", "Synced", "Reconciling", "Stalled", "InUse", "Swept"].map((type) => {
  const said = { status: "False", reason: "OrphanedVolumes", message: "c".repeat(4000) };
  return { type, ...said, lastTransitionTime: time, observedGeneration: 1_000 };
});
const common = { failure, failedSteps: Array(4).fill(failedStep), operation, conditions };

function many<T>(count: number, of: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => of(index));
}

const name = (index: number): string => `a-rather-long-name-${index}`;
const volume = (index: number): string => `local-zfs:vm-1000104-berth-0123456789ab-${index}`;

const worst: Readonly<Record<string, object>> = {
  VirtualMachine: {
    ...common,
    disks: many(16, (index) => ({ name: name(index), volume: volume(index), size: "10737418240" })),
    detachedDisks: many(8, (index) => ({ name: name(index), volume: volume(index), since: time })),
    networks: many(8, (index) => ({ name: name(index), macAddress: "bc:24:11:00:00:00" })),
    unmanaged: many(16, (index) => ({ kind: "Disk", name: name(index), detail: "u".repeat(256) })),
  },
  VMImage: {
    failure,
    conditions,
    copies: many(16, (index) => ({
      hypervisor: "rack-a",
      node: name(index),
      storage: "local",
      message: "w".repeat(512),
      operation,
      failure,
      failedSteps: [failedStep],
    })),
  },
  Orphan: {
    ...common,
    evidence: many(16, () => "e".repeat(512)),
    blocks: many(16, (index) => `default/${name(index)}`),
    decidedFor: { generation: 2, observation: "0".repeat(16), seen: "s".repeat(512) },
    command: "c".repeat(1024),
  },
  Hypervisor: {
    ...common,
    nodes: many(16, (index) => ({ name: name(index), health: "Down", message: "n".repeat(512) })),
    storages: many(24, (index) => ({ name: name(index), capacity: "10737418240" })),
    sweep: {
      since: time,
      sightings: [{ since: time, ids: many(400, (index) => String(index).padStart(16, "0")) }],
    },
  },
};

describe("a status", () => {
  for (const [kind, status] of Object.entries(worst)) {
    it(`of a ${kind} fits into 16 KiB, whatever its texts are`, () => {
      assert.ok(statusBytes(status) > limits.statusBytes, "this is no worst case");
      const fitted = fitStatus(status);
      assert.ok(statusBytes(fitted) <= limits.statusBytes, `${statusBytes(fitted)} bytes`);
      assert.deepEqual(Object.keys(fitted), Object.keys(status));
      assert.deepEqual(fitStatus(fitted), fitted);
    });
  }

  it("of a VMImage with 64 copies under way is larger: only texts are cut, and it is bounded", () => {
    const end = { key: "k".repeat(24), step: "Download", outcome: "Lost", at: time, times: 9 };
    const record = {
      ...operation,
      argumentsDigest: "a".repeat(24),
      clock: { boot: "b".repeat(36), uptimeMs: 1_000_000_000 },
      slots: many(3, (index) => `storage local on ${name(index)} of rack-a`),
      last: end,
      unfinished: [end, end, end],
    };
    const place = { hypervisor: "rack-a", storage: "local", message: "w".repeat(512) };
    const copies = many(64, (index) => ({
      ...place,
      node: name(index),
      fileName: `berth-sha256-${"0".repeat(64)}.qcow2`,
      operation: record,
      failure,
      failedSteps: [failedStep],
    }));
    const bytes = statusBytes(fitStatus({ failure, conditions, copies }));
    // Each copy keeps what its decisions rest on.
    assert.ok(bytes > limits.statusBytes, "then its bound can be promised");
    assert.ok(bytes <= 8 * limits.statusBytes, `${bytes} bytes`);
  });

  it("that fits is written as it is", () => {
    const status = { failure: { ...failure, cause: "c".repeat(8192) } };
    assert.equal(fitStatus(status), status);
  });

  it("loses nothing that a decision rests on", () => {
    const ids = many(400, (index) => "x".repeat(300) + String(index));
    const fitted = fitStatus({ sweep: { sightings: [{ ids }] }, ...common });
    assert.deepEqual(fitted.sweep, { sightings: [{ ids }] });
    assert.equal(fitted.operation.task, operation.task);
  });
});
