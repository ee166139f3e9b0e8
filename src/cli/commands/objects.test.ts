import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { NetworkError } from "../../client/index.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";
import { apply, runApply } from "./apply.ts";
import { runComplete } from "./complete.ts";
import { deleteCommand, runDelete } from "./delete.ts";
import { describe as describeCommand, runDescribe } from "./describe.ts";
import { edit, runEdit } from "./edit.ts";
import { get, runGet } from "./get.ts";
import { commands } from "./index.ts";
import { plan, runPlan } from "./plan.ts";
import { runWait, wait } from "./wait.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createBench();
});

const doGet = (...args: string[]): Promise<Ran> => bench.run(get, runGet, args);
const doApply = (...args: string[]): Promise<Ran> => bench.run(apply, runApply, args);
const doDelete = (...args: string[]): Promise<Ran> => bench.run(deleteCommand, runDelete, args);
const doWait = (...args: string[]): Promise<Ran> => bench.run(wait, runWait, args);
const doEdit = (...args: string[]): Promise<Ran> => bench.run(edit, runEdit, args);

/** Lets everything happen that can happen without time passing. */
async function flush(): Promise<void> {
  for (let i = 0; i < 20; i++) await setImmediate();
}

function configMap(name: string, data: Record<string, string> = {}): string {
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
}

const configMaps = "/api/v1/namespaces/default/configmaps";

async function applied(text: string): Promise<Ran> {
  bench.input = text;
  return doApply("-f", "-");
}

describe("finding the server", () => {
  test("says what to do where there is none", async () => {
    bench.files.clear();
    const { code, notes } = await doGet("vm");
    assert.equal(code, 1);
    assert.match(notes.join(), /^no server is known: start berth up here, or name one by --data/);
    assert.match((await doGet("vm", "--kubeconfig", "x")).notes.join(), /there is no \/home\/x/);
    assert.match((await doGet("vm", "--data", "d")).notes.join(), /start berth up first/);
  });

  test("takes --kubeconfig, --data, .berth, $KUBECONFIG and ~/.kube/config in this order", async () => {
    const text = bench.files.get("/home/.berth/kubeconfig") ?? "";
    const places: [string, string[]][] = [
      ["/home/k", ["--kubeconfig", "k"]],
      ["/home/d/kubeconfig", ["--data", "d"]],
      ["/env/config", []],
      ["/me/.kube/config", []],
    ];
    bench.environment.set("HOME", "/me");
    for (const [path, args] of places) {
      bench.files.clear();
      bench.files.set(path, text);
      if (path === "/env/config") bench.environment.set("KUBECONFIG", "/none:/env/config");
      else bench.environment.delete("KUBECONFIG");
      assert.equal((await doGet("vm", ...args)).code, 0, path);
    }
  });

  test("names a context that there is not", async () => {
    assert.match((await doGet("vm", "--context", "x")).notes.join(), /no context named "x"/);
  });

  test("tells a wrong token from a server that is away", async () => {
    const answer = (status: number) => async () => {
      const code = { kind: "Status", code: status, message: "Unauthorized" };
      return { status, headers: {}, body: Buffer.from(JSON.stringify(code)) };
    };
    bench.machine = { ...bench.machine, dial: () => ({ send: answer(401), close: () => {} }) };
    assert.match((await doGet("vm")).notes.join(), /berth.test:7443 does not know you/);
    const away = async (): Promise<never> => {
      throw new NetworkError("Unreachable", "berth.test cannot be reached: refused");
    };
    bench.machine = { ...bench.machine, dial: () => ({ send: away, close: () => {} }) };
    assert.match(
      (await doGet("vm")).notes.join(),
      /^https:\/\/berth.test:7443 cannot be reached: refused\. Is it running/,
    );
  });
});

describe("reading files", () => {
  for (const [command, run] of [
    [apply, runApply],
    [plan, runPlan],
  ] as const) {
    test(`${command.name} wants a file, and something in it`, async () => {
      const nameless = await bench.run(command, run, []);
      assert.equal(nameless.code, 64);
      assert.match(nameless.notes.join(), /^-f FILE is missing/);
      bench.input = "---\n";
      const empty = await bench.run(command, run, ["-f", "-"]);
      assert.deepEqual([empty.code, empty.notes], [1, ["-: no objects in it"]]);
    });
  }
});

describe("get", () => {
  test("shows a table of one kind, and of several with their names", async () => {
    await applied(`${configMap("a", { x: "1" })}\n---\n${configMap("b")}`);
    assert.deepEqual((await doGet("cm")).out, [
      "NAME   DATA   AGE",
      "a      1      0s",
      "b      0      0s",
    ]);
    const { out } = await doGet("cm,ns", "-A");
    assert.ok(out.includes("default     configmap/a   1      0s"), out.join("\n"));
    assert.ok(out.some((line) => line.startsWith("namespace/default ")));
  });

  test("says so where there is nothing, and exits well", async () => {
    const { code, notes } = await doGet("vm");
    assert.deepEqual([code, notes], [0, ["No resources found in default namespace."]]);
  });

  test("shows what is there and names what is not", async () => {
    await applied(configMap("a"));
    const { code, out, notes } = await doGet("cm", "a", "b");
    assert.equal(code, 1);
    assert.equal(out.length, 2);
    assert.deepEqual(notes, ['berth: configmaps "b" not found']);
    assert.equal((await doGet("cm", "b", "--ignore-not-found")).code, 0);
  });

  test("gives programs names, JSON, YAML and paths", async () => {
    await applied(configMap("a", { x: "yes" }));
    assert.deepEqual((await doGet("cm", "-o", "name")).out, ["configmap/a"]);
    const one = JSON.parse((await doGet("cm/a", "-o", "json")).out.join("\n"));
    assert.equal(one.kind, "ConfigMap");
    assert.equal(one.metadata.managedFields, undefined);
    const list = JSON.parse((await doGet("cm", "-ojson")).out.join("\n"));
    assert.deepEqual([list.kind, list.items.length], ["List", 1]);
    assert.ok((await doGet("cm/a", "-o", "yaml")).out.includes('  x: "yes"'));
    const { out } = await doGet("cm", "-o", "jsonpath={.items[*].data.x}");
    assert.deepEqual(out, ["yes"]);
  });

  test("selects by labels and fields", async () => {
    bench.input = [
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"app":"x"}}}',
      configMap("b"),
    ].join("\n---\n");
    await doApply("-f", "-");
    assert.deepEqual((await doGet("cm", "-l", "app=x", "-o", "name")).out, ["configmap/a"]);
    const byField = await doGet("cm", "--field-selector", "metadata.name=b", "-o", "name");
    assert.deepEqual(byField.out, ["configmap/b"]);
    assert.equal((await doGet("cm", "a", "-l", "app=x")).code, 64);
    assert.equal((await doGet("cm", "a", "-A")).code, 64);
  });

  test("watches until it is interrupted, a row per change", async () => {
    await applied(configMap("a"));
    const running = doGet("cm", "-w");
    await flush();
    await bench.write("PATCH", `${configMaps}/a`, { data: { x: "1" } });
    await bench.write("DELETE", `${configMaps}/a`, {});
    await flush();
    bench.interrupt();
    const { code, out } = await running;
    assert.equal(code, 0);
    assert.deepEqual(
      out.map((line) => line.split(/ +/).slice(0, 2).join(" ")),
      ["NAME DATA", "a 0", "a 1", "a 1"],
    );
  });
});

describe("apply", () => {
  test("creates, changes, removes what is gone from the file, and knows when to do nothing", async () => {
    assert.deepEqual((await applied(configMap("a", { x: "1", y: "1" }))).out, [
      "configmap/a created",
    ]);
    await bench.write("PATCH", `${configMaps}/a`, { data: { z: "of another" } });
    assert.deepEqual((await applied(configMap("a", { x: "2" }))).out, ["configmap/a configured"]);
    const { out } = await doGet("cm/a", "-o", "jsonpath={.data}");
    assert.deepEqual(JSON.parse(out.join("")), { x: "2", z: "of another" });
    bench.requests.length = 0;
    assert.deepEqual((await applied(configMap("a", { x: "2" }))).out, ["configmap/a unchanged"]);
    assert.ok(bench.requests.every((request) => request.startsWith("GET ")));
  });

  test("names a bad document and applies the others", async () => {
    bench.files.set("/home/f.yaml", `${configMap("a")}\n---\nkind: X\n---\n${configMap("c")}\n`);
    const { code, out, notes } = await doApply("-f", "f.yaml");
    assert.equal(code, 1);
    assert.deepEqual(out, ["configmap/a created", "configmap/c created"]);
    assert.deepEqual(notes, ["berth: f.yaml, document 2: apiVersion is missing"]);
  });

  test("refuses fields that a kind does not have, and kinds that the server does not have", async () => {
    const odd = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, dada: {} };
    assert.match((await applied(JSON.stringify(odd))).notes.join(), /unknown field "dada"/);
    const other = { apiVersion: "x.io/v1", kind: "X", metadata: { name: "a" } };
    assert.match((await applied(JSON.stringify(other))).notes.join(), /no kind X in x.io\/v1/);
  });

  test("reads folders, and the folders in them when told", async () => {
    bench.files.set("/home/m/a.yaml", configMap("a"));
    bench.files.set("/home/m/notes.txt", "no manifest");
    bench.files.set("/home/m/deep/b.json", configMap("b"));
    assert.deepEqual((await doApply("-f", "m")).out, ["configmap/a created"]);
    assert.deepEqual((await doApply("-R", "-f", "m")).out, [
      "configmap/a unchanged",
      "configmap/b created",
    ]);
    assert.match((await doApply("-f", "none")).notes.join(), /there is no file none/);
  });

  test("changes nothing in a dry run", async () => {
    bench.input = configMap("a");
    const { out } = await doApply("-f", "-", "--dry-run=server");
    assert.deepEqual(out, ["configmap/a created (server dry run)"]);
    assert.equal((await doGet("cm", "a")).code, 1);
    assert.equal((await doApply("-f", "-", "--dry-run=x")).code, 64);
  });
});

describe("delete", () => {
  test("deletes by name, by selector and by file, and waits until they are gone", async () => {
    await applied(`${configMap("a")}\n---\n${configMap("b")}\n---\n${configMap("c")}`);
    assert.deepEqual((await doDelete("cm", "a")).out, ['configmap "a" deleted']);
    bench.files.set("/home/b.yaml", configMap("b"));
    assert.deepEqual((await doDelete("-f", "b.yaml")).out, ['configmap "b" deleted']);
    assert.equal((await doDelete("cm")).code, 64);
    assert.deepEqual((await doDelete("cm", "--all")).out, ['configmap "c" deleted']);
    const gone = await doDelete("cm", "a");
    assert.deepEqual([gone.code, gone.notes], [1, ['berth: configmaps "a" not found']]);
  });

  test("tells what the server refuses, and deletes the others", async () => {
    await applied(`${configMap("a")}\n---\n${configMap("b")}`);
    const { transport } = bench;
    const refusing: typeof transport = async (request, signal) => {
      if (request.method !== "DELETE" || !request.url.includes("configmaps/a")) {
        return transport(request, signal);
      }
      const status = { kind: "Status", code: 403, reason: "Forbidden", message: "a is protected" };
      return { status: 403, headers: {}, body: Buffer.from(JSON.stringify(status)) };
    };
    bench.machine = { ...bench.machine, dial: () => ({ send: refusing, close: () => {} }) };
    const { code, out, notes } = await doDelete("cm", "a", "b");
    assert.deepEqual([code, out, notes], [1, ['configmap "b" deleted'], ["berth: a is protected"]]);
  });

  test("waits for finalizers, unless told not to or the time is up", async () => {
    const held = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", finalizers: ["test.dev/held"] },
    };
    await bench.write("POST", configMaps, held);
    assert.equal((await doDelete("cm", "a", "--wait=false")).code, 0);
    const late = doDelete("cm", "a", "--timeout=5s");
    await flush();
    bench.clock.advance(5000);
    const { code, notes } = await late;
    assert.equal(code, 1);
    assert.match(notes.join(), /not gone yet/);
    const running = doDelete("cm", "a");
    await flush();
    await bench.write("PATCH", `${configMaps}/a`, { metadata: { finalizers: null } });
    assert.equal((await running).code, 0);
  });
});

describe("wait", () => {
  test("ends when the object is as wanted", async () => {
    await applied(configMap("a"));
    const running = doWait("cm/a", "--for=jsonpath={.data.x}=1");
    await flush();
    await bench.write("PATCH", `${configMaps}/a`, { data: { x: "1" } });
    assert.deepEqual(await running, { code: 0, out: ["configmap/a condition met"], notes: [] });
  });

  test("names what is missing when the time is up, and looks once with 0", async () => {
    await applied(configMap("a"));
    const running = doWait("cm/a", "--for=condition=Ready", "--timeout=3s");
    await flush();
    bench.clock.advance(3000);
    const { code, notes } = await running;
    assert.equal(code, 1);
    assert.deepEqual(notes, ["berth: timed out waiting for condition Ready=True on configmap/a"]);
    assert.equal((await doWait("cm/a", "--for=condition=Ready", "--timeout=0")).code, 1);
    assert.match(
      (await doWait("cm/b", "--for=condition=X")).notes.join(),
      /configmap\/b is not there/,
    );
    assert.equal((await doWait("cm/b", "--for=delete")).code, 0);
  });
});

describe("edit", () => {
  test("writes what was saved, and nothing where nothing changed", async () => {
    await applied(configMap("a", { x: "old" }));
    bench.requests.length = 0;
    assert.deepEqual((await doEdit("cm/a")).out, ["configmap/a unchanged"]);
    assert.ok(bench.requests.every((request) => request.startsWith("GET ")));
    bench.edit = (text) => text.replace("x: old", "x: new");
    assert.deepEqual((await doEdit("cm", "a")).out, ["configmap/a edited"]);
    assert.deepEqual((await doGet("cm/a", "-o", "jsonpath={.data.x}")).out, ["new"]);
  });

  test("keeps what was written where it is refused, and says where", async () => {
    await applied(configMap("a", { x: "old" }));
    bench.edit = (text) => text.replace("\ndata:", "\ndada:");
    const { code, notes } = await doEdit("cm", "a");
    assert.equal(code, 1);
    assert.match(notes.join(), /unknown field "dada".*kept in \/tmp\/edit\/a\.yaml/);
    assert.match(bench.files.get("/tmp/edit/a.yaml") ?? "", /dada:/);
  });

  test("does not mind a status that was written meanwhile", async () => {
    const path = "/apis/berth.dev/v1alpha1/namespaces/default/vmclasses";
    const spec = { cpu: { cores: 1 }, memory: { size: "1Gi" } };
    await bench.write("POST", path, {
      apiVersion: "berth.dev/v1alpha1",
      kind: "VMClass",
      metadata: { name: "h" },
      spec,
    });
    const { machine } = bench;
    bench.machine = {
      ...machine,
      runEditor: async (...args) => {
        await bench.write("PATCH", `${path}/h/status`, { status: { observedGeneration: 1 } });
        return machine.runEditor(...args);
      },
    };
    bench.edit = (text) => text.replace("cores: 1", "cores: 2");
    assert.deepEqual((await doEdit("vmclass", "h")).out, ["vmclass.berth.dev/h edited"]);
    const { out } = await doGet("vmclass/h", "-o", "jsonpath={.spec.cpu.cores}{.status}");
    assert.deepEqual(out, ['2{"observedGeneration":1}']);
  });

  test("does not overwrite what somebody else changed meanwhile", async () => {
    await applied(configMap("a", { x: "old" }));
    const { machine } = bench;
    bench.machine = {
      ...machine,
      runEditor: async (...args) => {
        await bench.write("PATCH", `${configMaps}/a`, { data: { y: "theirs" } });
        return machine.runEditor(...args);
      },
    };
    bench.edit = (text) => text.replace("x: old", "x: mine");
    assert.match((await doEdit("cm", "a")).notes.join(), /somebody else changed.*kept in/);
    assert.deepEqual((await doGet("cm/a", "-o", "jsonpath={.data.x}")).out, ["old"]);
  });
});

describe("describe", () => {
  test("shows an object, and of a Secret only how long its values are", async () => {
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" } };
    await applied(JSON.stringify({ ...secret, stringData: { token: "hunter2" } }));
    const { out } = await bench.run(describeCommand, runDescribe, ["secret", "s"]);
    assert.ok(out.includes("  token: 7 bytes"), out.join("\n"));
    assert.doesNotMatch(out.join("\n"), /hunter2|aHVudGVyMg/);
    assert.equal(out.at(-1), "Events:  <none>");
  });
});

describe("completion", () => {
  const complete = async (...words: string[]): Promise<string[]> => {
    const command = commands.find(({ name }) => name === "__complete");
    assert.ok(command !== undefined);
    const work: typeof runGet = (call, machine) => runComplete(call, machine, commands);
    return (await bench.run(command, work, ["--", ...words])).out;
  };

  test("knows commands, options, kinds, names and choices", async () => {
    await applied(configMap("settings"));
    assert.deepEqual(await complete("des"), ["describe"]);
    assert.deepEqual(await complete("__"), []);
    assert.deepEqual(await complete("get", "--show"), ["--show-labels"]);
    assert.deepEqual(await complete("get", "virtual"), ["virtualmachines"]);
    assert.deepEqual(await complete("get", "cm", "se"), ["settings"]);
    assert.deepEqual(await complete("why", "cm/"), ["cm/settings"]);
    assert.deepEqual(await complete("get", "-n", "de"), ["default"]);
    assert.deepEqual(await complete("get", "cm", "-o", "j"), ["json", "jsonpath="]);
    assert.deepEqual(await complete("completion", ""), ["bash", "fish", "zsh"]);
  });

  test("says nothing where there is no server", async () => {
    bench.files.clear();
    assert.deepEqual(await complete("get", ""), []);
  });
});
