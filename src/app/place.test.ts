import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Client } from "../client/index.ts";
import { ApiError } from "../kernel/status.ts";
import { clusterPlace, folderPlace } from "./place.ts";

test("a folder keeps its place when it is renamed, and a copy or another host has another", () => {
  const root = mkdtempSync(join(tmpdir(), "berth-place-"));
  try {
    const [folder, copy, renamed] = ["a", "b", "c"].map((name) => join(root, name));
    assert.ok(folder && copy && renamed);
    mkdirSync(folder);
    const [host, other] = ["host", "other"].map((name) => join(root, name));
    assert.ok(host && other);
    writeFileSync(host, "11112222333344445555666677778888\n");
    writeFileSync(other, "99992222333344445555666677778888\n");
    const { id } = folderPlace(folder, [host]);
    assert.match(id, /^folder-[0-9a-f]{32}$/);
    assert.equal(folderPlace(folder, [join(root, "absent"), host]).id, id);
    cpSync(folder, copy, { recursive: true });
    assert.notEqual(folderPlace(copy, [host]).id, id);
    assert.notEqual(folderPlace(folder, [other]).id, id);
    renameSync(folder, renamed);
    assert.equal(folderPlace(renamed, [host]).id, id);
    assert.notEqual(folderPlace(renamed, []).id, "");
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test("a cluster is told by the uid of kube-system, where that can be read", async () => {
  const clusterOf = (get: () => Promise<object>): ReturnType<typeof clusterPlace> => {
    return clusterPlace({ of: () => ({ get }) } as unknown as Client);
  };
  const withUid = (uid: string) => () => Promise.resolve({ metadata: { uid } });
  const place = await clusterOf(withUid("11111111-2222-4333-8444-555555555555"));
  assert.equal(place?.id, "cluster-11111111-2222-4333-8444-555555555555");
  const restored = await clusterOf(withUid("99999999-2222-4333-8444-555555555555"));
  assert.notEqual(restored?.id, place?.id);
  for (const code of [403, 404]) {
    const refused = new ApiError(code, "Forbidden", "no");
    assert.equal(await clusterOf(() => Promise.reject(refused)), undefined);
  }
  const away = new ApiError(500, "InternalError", "no");
  await assert.rejects(clusterOf(() => Promise.reject(away)));
});
