import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import test from "node:test";
import { berthKinds } from "../../src/api/index.ts";
import { builtinResources } from "../../src/api/builtin/index.ts";
import { createCatalogue } from "../../src/apiserver/catalogue.ts";
import { createDiscovery } from "../../src/apiserver/discovery/index.ts";
import { createOpenApi } from "../../src/apiserver/openapi/index.ts";
import { pathNotFound } from "../../src/kernel/status.ts";
import { temporaryFolder } from "./support/berth.ts";
import { kubectlsToTry, type Kubectl, runKubectl } from "./support/kubectl.ts";

/**
 * What kubectl makes of the documents alone: a server that has nothing else. Every kind, also those
 * that no build serves yet, must be found and explained by every version.
 */
const resources = [...builtinResources, ...berthKinds];
const catalogue = createCatalogue(resources, { serveAll: true });
const handlers = [createDiscovery(catalogue), createOpenApi(catalogue)];
const folder = temporaryFolder("discovery");
const kubectls = kubectlsToTry();

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const headers = { accept: request.headers.accept ?? "" };
  const wire = { path: pathname, query: searchParams, headers };
  const found = handlers.map((handler) => handler(wire)).find((served) => served !== undefined);
  if (found?.body instanceof Uint8Array) {
    response.writeHead(found.status, found.headers).end(found.body);
    return;
  }
  const status = pathNotFound().toStatus();
  response.writeHead(404, { "content-type": "application/json" }).end(JSON.stringify(status));
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

async function ok(kubectl: Kubectl, url: string, args: readonly string[]): Promise<string> {
  const cache = join(folder.path, kubectl.name);
  // No kubeconfig of whoever runs the test may have a say in it.
  const base = [`--server=${url}`, `--cache-dir=${cache}`, "--kubeconfig=/dev/null"];
  const ran = await runKubectl(kubectl, [...base, ...args]);
  assert.equal(ran.code, 0, `kubectl ${args.join(" ")}: ${ran.stderr}${ran.stdout}`);
  return ran.stdout;
}

const skip = kubectls.length === 0 ? "no kubectl on this machine" : false;
test("documents are understood by every kubectl", { skip }, async (suite) => {
  const server = createServer(answer);
  suite.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = await listening(server);
  for (const kubectl of kubectls) {
    await suite.test(`${kubectl.name} finds and explains every kind`, async () => {
      const listed = await ok(kubectl, url, ["api-resources", "--no-headers"]);
      for (const { plural, group, version, kind } of resources) {
        const row = new RegExp(
          `^${plural} .*\\b${group}/?${version} +(true|false) +${kind} *$`,
          "m",
        );
        assert.match(listed, row);
        const name = group === "" ? plural : `${plural}.${group}`;
        const explained = await ok(kubectl, url, ["explain", "--recursive", name]);
        assert.match(explained, new RegExp(`KIND: +${kind}\n`));
        assert.match(explained, /\n {2}metadata\t<ObjectMeta>/);
      }
    });

    await suite.test(
      `${kubectl.name} explains the source of a machine field by field`,
      async () => {
        const explained = await ok(kubectl, url, ["explain", "vm.spec.source"]);
        for (const field of ["image", "clone", "importedDisk", "blank"]) {
          assert.match(explained, new RegExp(`\\n {2}${field}\\t<Object>`));
        }
        assert.doesNotMatch(explained, /<no description>|<empty>/);
      },
    );

    await suite.test(`${kubectl.name} lists what belongs to berth`, async () => {
      const listed = await ok(kubectl, url, ["api-resources", "--categories=berth", "-o", "name"]);
      const names = listed.trim().split("\n").toSorted();
      const ours = berthKinds.filter(({ categories }) => categories.includes("berth"));
      assert.deepEqual(names, ours.map(({ plural, group }) => `${plural}.${group}`).toSorted());
    });
  }
});
