import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, it } from "node:test";
import type { VMImage } from "../../api/index.ts";
import {
  fieldsChangedSince,
  originDigests,
  originsChangedSince,
  originsText,
  withOrigins,
} from "./created-from.ts";

const checksum = `sha256:${"a".repeat(64)}`;
function imageOf(http: object): VMImage {
  const spec = { format: "qcow2", source: { http } };
  // cast: all that is asked of a VMImage here.
  return { metadata: { name: "debian" }, spec } as unknown as VMImage;
}
const image = imageOf({ url: "https://a.example/x", checksum });
const key = Buffer.alloc(32, 7).toString("base64");
const secrets = { passwordHash: "$6$salt$hash" };
const made = originDigests({ image, secrets, key });

describe("the digests of what a VM was created from", () => {
  it("are of its image and of Secrets, by field", () => {
    assert.deepEqual(
      made.map(({ field }) => field),
      ["image", "secret.passwordHash"],
    );
  });

  it("of a Secret cannot be found by trying without the key", () => {
    const digest = made[1]?.digest ?? "";
    const plain = createHash("sha256").update(secrets.passwordHash).digest("hex");
    assert.ok(!plain.startsWith(digest));
    const other = originDigests({ secrets, key: Buffer.alloc(32, 8).toString("base64") });
    assert.notEqual(other[0]?.digest, digest);
    assert.deepEqual(originDigests({ secrets }), []);
  });

  it("tell that the image is another one, and not that its URL is", () => {
    const moved = originDigests({ image: imageOf({ url: "https://b.example/x", checksum }) });
    assert.deepEqual(originsChangedSince(made, moved), []);
    const other = imageOf({ url: "https://a.example/x", checksum: `sha256:${"b".repeat(64)}` });
    const changed = originsChangedSince(made, originDigests({ image: other }));
    assert.deepEqual(changed, ["image"]);
    assert.match(originsText(changed), /without effect on it: its VMImage\.$/);
  });

  it("refuse no edit: only fields of the declaration do", () => {
    const spec = [{ field: "spec.source", digest: "1" }];
    assert.deepEqual(fieldsChangedSince([...made, ...spec], spec), []);
    assert.deepEqual(fieldsChangedSince([...made, ...spec], made), ["spec.source"]);
  });

  it("stay as they were where nothing was looked up", () => {
    const spec = [{ field: "spec.source", digest: "2" }];
    assert.deepEqual(withOrigins([...made, { field: "spec.source", digest: "1" }], spec), [
      ...made,
      ...spec,
    ]);
  });
});
