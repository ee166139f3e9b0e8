import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { parseAllDocuments } from "yaml";
import type { VirtualMachine } from "../../src/api/index.ts";
import { repository, startBerth, temporaryFolder } from "./support/berth.ts";
import { eventually } from "./support/eventually.ts";
import { bodyOf, connect, type Http } from "./support/http.ts";
import { parseMachine } from "./support/parse-machine.ts";
import "./support/cleanup.ts";

const api = "/apis/berth.dev/v1alpha1";
const first = `${api}/namespaces/default/virtualmachines/first`;
const plurals: Record<string, string> = {
  VirtualMachine: "virtualmachines",
  VMImage: "vmimages",
};

test("the README's first machine: Ready, still there after kill -9, gone when deleted", async (t) => {
  const folder = temporaryFolder("demo");
  t.after(() => folder.remove());
  let berth = await startBerth({ data: folder.path, demo: true });
  let http = connect(berth);
  const demo = bodyOf(await http.ask({ path: `${api}/hypervisors/demo` }));
  assert.match(demo.spec.description, /simulation/i);
  const example = readFileSync(join(repository, "examples", "first-vm.yaml"), "utf8");
  for (const document of parseAllDocuments(example)) {
    const body = document.toJS();
    const path = `${api}/namespaces/default/${plurals[body.kind]}`;
    const reply = await http.ask({ method: "POST", path, body });
    assert.equal(reply.status, 201, reply.text);
  }
  const before = await untilReady(http);
  http.close();
  await berth.kill();

  berth = await startBerth({ data: folder.path, demo: true });
  t.after(() => berth.stop());
  http = connect(berth);
  t.after(() => http.close());
  const after = await untilReady(http);
  assert.equal(after.status?.externalId, before.status?.externalId);
  assert.equal(after.status?.identity, before.status?.identity);
  assert.equal(after.status?.powerState, "Running");
  const claims = bodyOf(await http.ask({ path: `${api}/claims` }));
  assert.deepEqual(
    claims.items.map((claim: { spec: { state: string } }) => claim.spec.state),
    ["Bound"],
  );

  assert.equal((await http.ask({ method: "DELETE", path: first })).status, 200);
  const isGone = async (): Promise<boolean> => (await http.ask({ path: first })).status === 404;
  await eventually(isGone, () => "it did not go");
});

async function untilReady(http: Http): Promise<VirtualMachine> {
  let found: VirtualMachine | undefined;
  await eventually(
    async () => {
      found = parseMachine((await http.ask({ path: first })).text);
      const conditions = found.status?.conditions ?? [];
      return conditions.some(({ type, status }) => type === "Ready" && status === "True");
    },
    () => `not Ready: ${JSON.stringify(found?.status)}`,
  );
  assert.ok(found);
  return found;
}
