import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { lockFolder } from "./folder-lock.ts";

describe("the lock of a folder", () => {
  const root = mkdtempSync(join(tmpdir(), "berth-lock-"));
  after(() => rmSync(root, { recursive: true }));

  it("makes the folder, holds it, and lets go of it", () => {
    const folder = join(root, "new", "data");
    const lock = lockFolder(folder);
    assert.throws(() => lockFolder(folder), {
      code: "Locked",
      message: `${folder} is in use by another process (pid ${process.pid}): stop it first`,
    });
    lock.release();
    lock.release();
    lockFolder(folder).release();
    assert.deepEqual(readdirSync(folder), ["lock"]);
  });

  it("is refused to a second process, and dies with the first one at kill -9", async (test) => {
    const folder = join(root, "shared");
    // The result of lockFolder is dropped and garbage is collected: the lock stays all the same.
    const script = `
      import { lockFolder } from ${JSON.stringify(new URL("./folder-lock.ts", import.meta.url))};
      lockFolder(${JSON.stringify(folder)});
      await new Promise((resolve) => setImmediate(resolve));
      gc();
      console.log("locked");
      process.stdin.resume();
    `;
    const args = ["--expose-gc", "--input-type=module", "--eval", script];
    const holder = spawn(process.execPath, args);
    test.after(() => holder.kill("SIGKILL"));
    await once(holder.stdout, "data");
    assert.throws(() => lockFolder(folder), { message: new RegExp(`pid ${holder.pid}`) });
    holder.kill("SIGKILL");
    await once(holder, "exit");
    lockFolder(folder).release();
  });
});
