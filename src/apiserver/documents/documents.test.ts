import assert from "node:assert/strict";
import { test } from "node:test";
import { acceptedTypes, takesType } from "./accept.ts";
import { makeDocument, perGeneration, serveDocument, type DocumentRequest } from "./document.ts";

function request(headers: Record<string, string>): DocumentRequest {
  return { path: "/x", query: new URLSearchParams(), headers };
}

test("nothing said is everything taken", () => {
  for (const header of [undefined, "", "  "]) {
    assert.deepEqual(
      acceptedTypes(header).map(({ type }) => type),
      ["*/*"],
    );
  }
});

test("wildcards take what they stand for", () => {
  const takes = (header: string): boolean => {
    return acceptedTypes(header).some((accepted) => takesType(accepted, "application/json"));
  };
  assert.ok(takes("*/*") && takes("application/*") && takes("application/json"));
  assert.ok(!takes("text/*") && !takes("application/yaml") && !takes("application"));
});

test("a client that has the document is told so, without it", () => {
  const document = makeDocument({ a: 1 });
  const first = serveDocument(document, request({}));
  assert.equal(first.status, 200);
  assert.equal(Buffer.from(document.body).toString(), '{"a":1}\n');
  const tag = first.headers.etag ?? "";
  assert.match(tag, /^"[0-9A-F]{64}"$/);
  for (const header of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
    const again = serveDocument(document, request({ "if-none-match": header }));
    assert.equal(again.status, 304, header);
    assert.deepEqual(again.body, new Uint8Array());
    assert.equal(again.headers.etag, tag);
    assert.equal(again.headers.vary, "Accept");
  }
  assert.equal(serveDocument(document, request({ "if-none-match": '"x"' })).status, 200);
});

test("equal documents have equal tags, and others do not", () => {
  assert.equal(makeDocument({ a: 1 }).hash, makeDocument({ a: 1 }).hash);
  assert.notEqual(makeDocument({ a: 1 }).hash, makeDocument({ a: 2 }).hash);
});

test("what is built from the catalogue is built once for each of its generations", () => {
  let generation = 1;
  let builds = 0;
  const catalogue = {
    all: () => [],
    find: () => undefined,
    findKind: () => undefined,
    generation: () => generation,
  };
  const built = perGeneration(catalogue, () => ++builds);
  assert.deepEqual([built(), built()], [1, 1]);
  generation = 2;
  assert.deepEqual([built(), built()], [2, 2]);
});
