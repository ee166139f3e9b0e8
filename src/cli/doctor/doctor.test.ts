import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import type { Diagnosis } from "../../hypervisor/index.ts";
import { formatMicroTime } from "../../kernel/clock.ts";
import { doctor } from "../commands/doctor.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";
import { type DoctorTools, runDoctor } from "./run.ts";

const hypervisors = "/apis/berth.dev/v1alpha1/hypervisors";
const leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

let bench: Bench;
let diagnosis: Diagnosis;
let written: Map<string, string>;
let format: { format: number; newest: number } | undefined;
let credentialsSeen: object[];

beforeEach(async () => {
  bench = await createBench();
  diagnosis = { findings: [{ check: "Version", level: "ok", message: "Proxmox VE 9.2.11" }] };
  written = new Map();
  format = { format: 2, newest: 2 };
  credentialsSeen = [];
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "berth-system" } };
  await bench.write("POST", "/api/v1/namespaces", namespace);
});

const tools: DoctorTools = {
  folderFormat: () => format,
  writeNew: (path, content) => {
    if (written.has(path)) throw Object.assign(new Error("exists"), { code: "EEXIST" });
    written.set(path, content);
  },
  createDoctor: (_, credentials) => {
    credentialsSeen.push(credentials);
    return {
      diagnose: async () => diagnosis,
      snapshot: async () => ({ ok: true, value: { version: 1, missing: ["VM 7: away"] } }),
      ownWork: async () => ({ ok: true, value: { tasks: [], unread: [] } }),
      close: () => undefined,
    };
  },
};

async function run(...args: string[]): Promise<Ran & { text: string }> {
  const ran = await bench.run(doctor, (call, machine) => runDoctor(call, machine, tools), args);
  return { ...ran, text: [...ran.out, ...ran.notes].join("\n") };
}

async function lead(agoMs: number): Promise<void> {
  await bench.write("POST", leases.replace("default", "berth-system"), {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    metadata: { name: "berth-controllers" },
    spec: {
      holderIdentity: "berth_1",
      leaseDurationSeconds: 15,
      renewTime: formatMicroTime(bench.clock.nowMs() - agoMs),
    },
  });
}

async function declare(name: string, isReady = true): Promise<void> {
  const secretRef = { namespace: "berth-system", name };
  const secret = { apiVersion: "v1", kind: "Secret", metadata: { name } };
  const data = { tokenId: "aQ==", tokenSecret: "cw==" };
  await bench.write("POST", "/api/v1/namespaces/berth-system/secrets", { ...secret, data });
  await bench.write("POST", hypervisors, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: { type: "proxmox", endpoints: ["https://pve1:8006"], credentials: { secretRef } },
  });
  const ready = {
    type: "Ready",
    status: isReady ? "True" : "False",
    reason: isReady ? "Connected" : "SystemChanged",
    message: isReady ? "It answers." : "Another system answers.",
    lastTransitionTime: "2026-01-02T03:04:05Z",
  };
  const status = { observedGeneration: 1, conditions: [ready] };
  await bench.write("PATCH", `${hypervisors}/${name}/status`, { status });
}

/** From now on the person may read all but this. */
function forbid(resource: string): void {
  const { machine } = bench;
  const message = `the user "v" cannot get ${resource}`;
  const status = { kind: "Status", apiVersion: "v1", status: "Failure", code: 403, message };
  const body = new TextEncoder().encode(JSON.stringify({ ...status, reason: "Forbidden" }));
  const dial: typeof machine.dial = (...at) => {
    const dialled = machine.dial(...at);
    return {
      ...dialled,
      send: (request, signal) => {
        if (!request.url.includes(`/${resource}`)) return dialled.send(request, signal);
        return Promise.resolve({ status: 403, headers: {}, body });
      },
    };
  };
  bench.machine = { ...machine, dial };
}

describe("doctor", () => {
  test("says that all is well, with exit code 0", async () => {
    await lead(2_000);
    await declare("pve");
    const { code, text } = await run();
    assert.equal(code, 0, text);
    assert.match(text, /^Control plane\n {2}ok +api +https:\/\/berth.test:7443 answers/);
    assert.match(text, /ok +controllers +berth_1 leads\n {2}ok +data +\.berth has format 2/);
    assert.match(text, /Hypervisor pve \(proxmox\)\n {2}ok +status +Berth uses it/);
    assert.match(text, /ok +version +Proxmox VE 9.2.11\n\nAll is well\.$/);
    assert.deepEqual(credentialsSeen, [{ tokenId: "i", tokenSecret: "s" }]);
  });

  test("counts warnings and problems, shows what to do, and fails only for problems", async () => {
    await lead(2_000);
    await declare("pve");
    const warning = { check: "Clock", level: "warning", message: "60 s off" } as const;
    diagnosis = { findings: [{ ...warning, remedy: "Set it:", commands: ["chronyc"] }] };
    const warned = await run();
    assert.equal(warned.code, 0);
    assert.match(warned.text, /warning +clock +60 s off\n +Set it:\n +chronyc\n\n1 warning\.$/);
    diagnosis = { findings: [warning, { ...warning, level: "problem" }] };
    const failed = await run();
    assert.equal(failed.code, 1);
    assert.match(failed.text, /1 problem and 1 warning\.$/);
  });

  for (const { agoMs, says } of [
    { agoMs: undefined, says: /problem +controllers +no controllers have ever led here/ },
    { agoMs: 60_000, says: /problem +controllers +no controllers lead: berth_1 is silent for 60s/ },
  ]) {
    test(`finds that nobody leads (${agoMs ?? "never"})`, async () => {
      if (agoMs !== undefined) await lead(agoMs);
      const { code, text } = await run();
      assert.equal(code, 1);
      assert.match(text, says);
    });
  }

  test("goes on where a person may not see who leads, and warns of it", async () => {
    await declare("pve");
    forbid("leases");
    const { code, text } = await run();
    assert.equal(code, 0, text);
    assert.match(text, /warning +controllers +you may not read their Lease, so whether any lead/);
    assert.match(text, /ok +version +Proxmox VE 9.2.11\n\n1 warning\.$/);
  });

  test("goes on where a person may not read the credentials of a Hypervisor", async () => {
    await lead(0);
    await declare("pve");
    forbid("secrets");
    const { code, text } = await run();
    assert.equal(code, 0, text);
    assert.match(text, /warning +credentials +you may not read the Secret berth-system\/pve/);
  });

  test("finds a data folder of a later version, and one that waits for an upgrade", async () => {
    await lead(0);
    format = { format: 3, newest: 2 };
    assert.match(
      (await run()).text,
      /problem +data +\.berth has format 3, and this program knows 2/,
    );
    format = { format: 1, newest: 2 };
    assert.match((await run()).text, /warning +data +\.berth has format 1, an older one/);
    format = undefined;
    assert.doesNotMatch((await run()).text, / data /, "a Kubernetes has none");
  });

  test("finds a server that does not answer, before anything else", async () => {
    bench.machine = {
      ...bench.machine,
      dial: () => ({
        send: () => Promise.reject(Object.assign(new Error("gone"), { code: "ECONNRESET" })),
        close: () => undefined,
      }),
    };
    const { code, text } = await run();
    assert.equal(code, 1);
    assert.match(text, /problem +api +the connection to https:\/\/berth.test:7443 broke/);
  });

  test("finds a Hypervisor that Berth does not use, and one without its Secret", async () => {
    await lead(0);
    await declare("pve", false);
    await bench.write("DELETE", "/api/v1/namespaces/berth-system/secrets/pve", {});
    const { code, text } = await run("pve");
    assert.equal(code, 1);
    assert.match(text, /problem +status +Berth does not use it: SystemChanged: Another system/);
    assert.match(text, /problem +credentials +there is no Secret berth-system\/pve/);
  });

  test("refuses a name that is not there, and names those that are", async () => {
    await lead(0);
    await declare("pve");
    const { code, text } = await run("nope");
    assert.equal(code, 1);
    assert.match(text, /there is no Hypervisor nope: there are pve/);
  });

  test("speaks to programs by -o json", async () => {
    await lead(0);
    await declare("pve");
    const { out } = await run("-o", "json");
    const report = JSON.parse(out.join("\n"));
    assert.deepEqual([report.problems, report.warnings], [0, 0]);
    const [found] = report.hypervisors;
    assert.deepEqual([found.name, found.findings.at(-1)], ["pve", diagnosis.findings[0]]);
    assert.equal((await run("-o", "wide")).code, 64);
  });

  test("writes a snapshot into a new file, and tells what is not in it", async () => {
    await declare("pve");
    const ran = await run("--snapshot", "pve.json");
    assert.equal(ran.code, 0, ran.text);
    assert.match(ran.text, /berth sim proxmox --from pve.json\nleft out: VM 7: away/);
    assert.equal(JSON.parse(written.get("/home/pve.json") ?? "").version, 1);
    assert.match((await run("--snapshot", "pve.json")).text, /pve.json exists: name another/);
    await declare("lab");
    const both = await run("--snapshot", "both.json");
    assert.equal(both.code, 64);
    assert.match(both.text, /--snapshot is of one Hypervisor: name one of lab, pve/);
    assert.equal((await run("lab", "--snapshot", "lab.json")).code, 0);
  });
});
