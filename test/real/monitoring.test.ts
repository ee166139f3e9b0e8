import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { type Berth, repository, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { bodyOf, connect, type Http } from "./support/http.ts";
import "./support/cleanup.ts";
import {
  documentedLabels,
  exportedLabels,
  exportedMetrics,
  familyOf,
  labelsIn,
  metricsIn,
  monitoringFolder,
  readAlerts,
  readQueries,
} from "./support/monitoring.ts";

/** What a running Berth tells monitoring; rules, dashboard and docs have to speak of the same. */

const api = "/apis/berth.dev/v1alpha1";
const first = `${api}/namespaces/default/virtualmachines/first`;
const folder = temporaryFolder("monitoring");
const docs = readFileSync(join(repository, "docs", "monitoring.md"), "utf8");
let berth: Berth;
let http: Http;
let metrics = "";

before(async () => {
  berth = await startBerth({
    data: folder.path,
    demo: true,
    args: ["--verbose", "--log-format", "json"],
  });
  http = connect(berth);
  await declareFirst();
  await until(isReady, "the first machine is not Ready");
  // Events and numbers follow what they tell of, a moment later.
  await until(hasToldAll, "the first machine has not left its numbers and Events");
});

async function hasToldAll(): Promise<boolean> {
  metrics = (await http.ask({ path: "/metrics" })).text;
  const { text } = await http.ask({ path: "/api/v1/namespaces/default/events" });
  return /^berth_vm_overhead_seconds_count 1$/m.test(metrics) && /Succeeded/.test(text);
}

after(async () => {
  http.close();
  await berth.stop();
  folder.remove();
});

async function declareFirst(): Promise<void> {
  const example = readFileSync(join(repository, "examples", "first-vm.yaml"), "utf8");
  for (const document of parseAllDocuments(example)) {
    const body = document.toJS();
    const plural = `${String(body.kind).toLowerCase()}s`;
    const path = `${api}/namespaces/default/${plural}`;
    const reply = await http.ask({ method: "POST", path, body });
    assert.equal(reply.status, 201, reply.text);
  }
}

async function isReady(): Promise<boolean> {
  const { status } = bodyOf(await http.ask({ path: first }));
  const conditions: { type: string; status: string }[] = status?.conditions ?? [];
  return conditions.some((one) => one.type === "Ready" && one.status === "True");
}

async function until(condition: () => Promise<boolean>, complaint: string): Promise<void> {
  const deadlineMs = Date.now() + 60_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadlineMs, complaint);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

test("metrics need a user who may read everywhere", async () => {
  assert.equal((await http.ask({ path: "/metrics", token: null })).status, 401);
  const add = ["user", "add", "prometheus", "--role", "view", "--data", berth.data];
  const token = /token: "?([^"\s]+)/.exec((await runBerth(add)).stdout)?.[1] ?? "";
  const reply = await http.ask({ path: "/metrics", token });
  assert.equal(reply.status, 200);
  assert.match(String(reply.headers["content-type"]), /^text\/plain; version=0\.0\.4/);
  const tenant = ["user", "add", "t", "--role", "edit", "--namespace", "default"];
  const theirs = (await runBerth([...tenant, "--data", berth.data])).stdout;
  const refused = await http.ask({
    path: "/metrics",
    token: /token: "?([^"\s]+)/.exec(theirs)?.[1] ?? "",
  });
  assert.equal(refused.status, 403);
});

test("the first machine has left its numbers", () => {
  for (const line of [
    /^berth_build_info\{version="\d[^"]*",node="v2\d[^"]*"\} 1$/m,
    /^berth_leader 1$/m,
    /^berth_hypervisor_up\{hypervisor="demo"\} 1$/m,
    /^berth_conditions\{kind="VirtualMachine",condition="Ready",status="True"\} 1$/m,
    /^berth_operations_total\{kind="VirtualMachine",step="Create",outcome="done"\} 1$/m,
    /^berth_operation_seconds_count\{kind="VirtualMachine",step="Start"\} 1$/m,
    /^berth_not_ready_seconds_count\{kind="VirtualMachine"\} 1$/m,
    /^berth_claims\{target="VM",state="Bound"\} 1$/m,
    /^berth_hypervisor_calls_total\{method="POST",endpoint="\/nodes\/\{node\}\/qemu",status="200"\} 1$/m,
    /^berth_certificate_expires_timestamp_seconds\{of="hypervisor",hypervisor="demo"\} 1\d{9}$/m,
    /^berth_store_write_seconds_count [1-9]/m,
    /^berth_watch_delay_seconds_count [1-9]/m,
    /^berth_vm_overhead_seconds_count 1$/m,
    /^berth_overhead_seconds_count\{controller="vm"\} [1-9]/m,
  ]) {
    assert.match(metrics, line);
  }
});

test("no label names an object, but for Hypervisors, their storages and nodes", async () => {
  const { status, metadata } = bodyOf(await http.ask({ path: first }));
  for (const name of ['"first"', '"default/first"', metadata.uid, status.identity]) {
    assert.ok(!metrics.includes(name), `${name} is in the metrics`);
  }
  assert.ok(!metrics.includes(`"${status.externalId}"`));
});

test("every metric that the alerts and the dashboard ask for is exported", () => {
  const exported = exportedMetrics(metrics);
  const asked = [
    ...readAlerts().map(({ alert, expr }) => ({ title: alert, expr })),
    ...readQueries(),
  ];
  const missing = asked.flatMap(({ title, expr }) => {
    const unknown = metricsIn(expr).filter((name) => familyOf(name, exported) === undefined);
    return unknown.map((name) => `${title}: ${name}`);
  });
  assert.deepEqual(missing, []);
});

test("docs/monitoring.md lists every metric, and no other", () => {
  const exported = [...exportedMetrics(metrics).keys()].toSorted();
  const listed = [...docs.matchAll(/^\| `((?:berth|process)_[a-z_]+)`/gm)].map(
    ([, name = ""]) => name,
  );
  assert.deepEqual(listed.toSorted(), exported);
});

test("labels are as docs/monitoring.md lists them, and queries use no others", () => {
  const documented = documentedLabels(docs);
  for (const [name, labels] of exportedLabels(metrics)) {
    assert.deepEqual(labels.toSorted(), documented.get(name)?.toSorted(), name);
  }
  const exported = exportedMetrics(metrics);
  const asked = [
    ...readAlerts().map(({ alert, expr }) => ({ title: alert, expr })),
    ...readQueries(),
  ];
  const wrong = asked.flatMap(({ title, expr }) => {
    const known = metricsIn(expr).flatMap((name) => {
      return documented.get(familyOf(name, exported) ?? "") ?? [];
    });
    const strange = labelsIn(expr).filter((label) => !known.includes(label));
    return strange.map((label) => `${title}: ${label}`);
  });
  assert.deepEqual(wrong, []);
  assert.deepEqual(labelsIn('sum by (job, kind) (x{a="1",b!~"2"} / on (c) y)'), [
    "a",
    "b",
    "kind",
    "c",
  ]);
});

test("every alert has a runbook, and every runbook an alert", () => {
  const headings = [...docs.matchAll(/^### (Berth\w+)$/gm)].map(([, name = ""]) => name);
  const alerts = readAlerts();
  assert.deepEqual(headings.toSorted(), alerts.map(({ alert }) => alert).toSorted());
  for (const { alert, annotations } of alerts) {
    assert.equal(annotations["runbook_url"], `docs/monitoring.md#${alert.toLowerCase()}`);
  }
  // The documented line makes each of them a whole address.
  const [, from = "", to = ""] = /^sed 's\|(.+)\|(.+)\|' alerts\.yaml/m.exec(docs) ?? [];
  const text = readFileSync(join(monitoringFolder, "alerts.yaml"), "utf8").replaceAll(from, to);
  const links = [...text.matchAll(/^ +runbook_url: (.+)$/gm)].map(([, link = ""]) => link);
  assert.equal(links.length, alerts.length);
  for (const link of links) {
    assert.match(new URL(link).href, /^https:.*\/docs\/monitoring\.md#berth[a-z]+$/);
  }
});

test("the dashboard has a place for each panel, and none twice", () => {
  interface Panel {
    id: number;
    title: string;
    gridPos: { x: number; y: number; w: number; h: number };
  }
  const text = readFileSync(join(monitoringFolder, "grafana.json"), "utf8");
  const { panels } = JSON.parse(text) as { panels: Panel[] };
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  assert.equal(new Set(panels.map(({ title }) => title)).size, panels.length);
  const taken = new Set<string>();
  for (const { title, gridPos } of panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !taken.has(`${x} ${y}`), `${title} lies on another`);
        taken.add(`${x} ${y}`);
      }
    }
  }
});

test("what happened to the machine is told in Events, each once", async () => {
  const path = "/api/v1/namespaces/default/events";
  const events: { reason: string; message: string; involvedObject?: { name: string } }[] = bodyOf(
    await http.ask({ path }),
  ).items;
  const reasons = events.map(({ reason }) => reason).toSorted();
  for (const reason of [
    "Reserved",
    "CreateStarted",
    "CreateDone",
    "AddDiskDone",
    "StartStarted",
    "StartDone",
    "Succeeded",
  ]) {
    assert.equal(
      reasons.filter((one) => one === reason).length,
      1,
      `${reason} in ${reasons.join(", ")}`,
    );
  }
  const started = events.find(({ reason }) => reason === "CreateStarted");
  assert.match(started?.message ?? "", /\(task UPID:/);
});

test("berth controller serves its own numbers where it is told to, and only those", async (t) => {
  const program = join(repository, "bin", "berth");
  const args = ["controller", "--kubeconfig", berth.kubeconfig, "--metrics-port", "0"];
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  await until(async () => printed.includes("\n"), "the controllers do not run");
  const url = / metrics on (http:\/\/127\.0\.0\.1:\d+)\/metrics/.exec(printed)?.[1] ?? "";
  const answer = await fetch(`${url}/metrics`);
  assert.match(answer.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = await answer.text();
  assert.match(text, /^berth_leader 0$/m, "the embedded ones lead");
  assert.match(text, /^# TYPE berth_operations_total counter$/m);
  assert.doesNotMatch(text, /^berth_objects\{/m, "who waits counts nothing twice");
  assert.equal(await (await fetch(`${url}/livez`)).text(), "ok");
  assert.equal((await fetch(`${url}/api`)).status, 404);
  assert.equal((await fetch(`${url}/metrics`, { method: "POST" })).status, 404);
  child.kill("SIGTERM");
  assert.equal(await new Promise((resolve) => child.once("exit", resolve)), 0);
});

test("the log is JSON, with the object, the operation and the hypervisor's task", () => {
  const lines = berth
    .output()
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line));
  const begun = lines.find((line) => line.message === "a step has begun" && line.step === "Create");
  assert.equal(begun.object, "VirtualMachine default/first");
  assert.equal(begun.hypervisor, "demo");
  assert.match(begun.operation, /^[0-9a-f-]{36}$/);
  assert.match(begun.task, /^UPID:/);
  const ended = lines.find((line) => line.operation === begun.operation && line.outcome);
  assert.equal(ended.outcome, "succeeded");
});
