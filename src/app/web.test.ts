import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, it } from "node:test";
import { createWeb } from "./web.ts";

/** A server on loopback for the time of one test. */
async function serving(listener: RequestListener, use: (url: string) => Promise<void>) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  // cast: a server that listens on a port has this kind of address.
  const { port } = server.address() as AddressInfo;
  try {
    await use(`http://127.0.0.1:${port}`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  }
}

const anywhere = (): boolean => true;

describe("a file on the web", () => {
  it("is read as it comes, with its size, also over a redirect", async () => {
    const listener: RequestListener = (request, response) => {
      if (request.url === "/old") response.writeHead(302, { location: "/new" }).end();
      else response.writeHead(200, { "content-length": 5 }).end("hello");
    };
    await serving(listener, async (url) => {
      const opened = await createWeb().open(`${url}/old`, anywhere);
      assert.ok(opened.ok);
      assert.equal(opened.value.sizeBytes, 5);
      const chunks: Uint8Array[] = [];
      for await (const chunk of opened.value.chunks) chunks.push(chunk);
      assert.equal(Buffer.concat(chunks).toString(), "hello");
    });
  });

  it("is never asked for at an address that is not allowed, also where a name leads there", async () => {
    let asked = 0;
    const listener: RequestListener = (_request, response) => {
      asked += 1;
      response.end();
    };
    await serving(listener, async (url) => {
      for (const at of [url, url.replace("127.0.0.1", "localhost")]) {
        const opened = await createWeb().open(at, () => false);
        assert.ok(!opened.ok && opened.failure.category === "PermissionDenied", at);
      }
    });
    assert.equal(asked, 0);
  });

  it("is refused where it is not there, has no size, or leads on for ever", async () => {
    const listener: RequestListener = (request, response) => {
      if (request.url === "/loop") response.writeHead(302, { location: "/loop" }).end();
      else if (request.url === "/endless") response.writeHead(200).write("x");
      else response.writeHead(404).end();
    };
    await serving(listener, async (url) => {
      for (const path of ["loop", "endless", "missing"]) {
        const opened = await createWeb().open(`${url}/${path}`, anywhere);
        assert.ok(!opened.ok && opened.failure.category === "ImageNotFound", path);
      }
      const opened = await createWeb().open("http://nobody.invalid/", anywhere);
      assert.ok(!opened.ok && opened.failure.category === "NetworkError");
    });
  });
});
