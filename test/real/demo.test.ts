import assert from "node:assert/strict";
import { cpSync, readFileSync } from "node:fs";
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

test("a copy of a folder in use, started beside it, only observes and says so", async (t) => {
  const folder = temporaryFolder("demo-copy");
  t.after(() => folder.remove());
  const [data, copy] = [join(folder.path, "data"), join(folder.path, "copy")];
  const berth = await startBerth({ data, demo: true });
  t.after(() => berth.stop());
  const http = connect(berth);
  t.after(() => http.close());
  await untilDemo(http, /^True Connected /);
  cpSync(data, copy, { recursive: true, preserveTimestamps: true });
  const beside = await startBerth({ data: copy, demo: true });
  t.after(() => beside.stop());
  const other = connect(beside);
  t.after(() => other.close());
  await untilDemo(other, /^False PlaceChanged .*copied, restored or moved.* berth takeover demo/);
  await untilDemo(http, /^True Connected /);
});

/** Its simulated cluster has another port there, which does not hide the reason. */
async function untilDemo(http: Http, says: RegExp): Promise<void> {
  let last = "";
  const isSo = async (): Promise<boolean> => {
    const { status } = bodyOf(await http.ask({ path: `${api}/hypervisors/demo` }));
    const conditions: { type: string; status: string; reason: string; message: string }[] =
      status?.conditions ?? [];
    const ready = conditions.find(({ type }) => type === "Ready");
    last = `${ready?.status} ${ready?.reason} ${ready?.message}`;
    return says.test(last);
  };
  await eventually(isSo, () => last);
}

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
