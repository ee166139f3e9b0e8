import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { systemClock, systemRandom } from "../../src/app/system.ts";
import {
  createAuthority,
  fingerprintOf,
  issueServerCertificate,
} from "../../src/apiserver/index.ts";
import { type Berth, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { eventually } from "./support/eventually.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./support/simulator.ts";
import "./support/cleanup.ts";

const folder = temporaryFolder("connect");
const file = (name: string): string => join(folder.path, name);
let berth: Berth;
let simulator: SimulatorProcess;

before(async () => {
  [berth, simulator] = await Promise.all([
    startBerth({ data: file("data") }),
    startSimulatorProcess(),
  ]);
  writeFileSync(file("token"), `${simulator.tokenId}=${simulator.tokenSecret}\n`);
});

after(async () => {
  await Promise.all([berth.stop(), simulator.stop()]);
  folder.remove();
});

interface Ran {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
}

function run(...args: string[]): Promise<Ran> {
  return runBerth([...args, "--data", berth.data], { cwd: folder.path });
}

function connect(url: string, ...args: string[]): Promise<Ran> {
  return run("connect", "proxmox", url, "--token-file", "token", ...args);
}

function sentence({ code, stderr }: Ran, expected: RegExp): void {
  assert.notEqual(code, 0);
  assert.match(stderr, expected);
  assert.doesNotMatch(stderr, /\n\s+at .*\(.*:\d+\)/, "no stack trace");
}

describe("connecting", () => {
  test("by fingerprint makes a Hypervisor that becomes ready, and the doctor finds it well", async () => {
    const made = await connect(
      simulator.url,
      "--name",
      "lab",
      "--fingerprint",
      simulator.fingerprint,
    );
    assert.equal(made.code, 0, made.stdout + made.stderr);
    assert.match(made.stdout, /hypervisor.berth.dev\/lab created\nready: Berth uses/);
    assert.doesNotMatch(made.stdout + made.stderr, new RegExp(simulator.tokenSecret));
    const found = await run("doctor", "lab", "-o", "json");
    assert.equal(found.code, 0, found.stdout);
    const report = JSON.parse(found.stdout);
    assert.equal(report.problems, 0);
    assert.equal(report.hypervisors[0].version, "9.2.11");
    const seen = report.hypervisors[0].findings.map(({ check }: { check: string }) => check);
    for (const check of ["Clock", "Identity", "Rights", "Nodes", "Storages", "Locks"]) {
      assert.ok(seen.includes(check), `nothing is said about ${check}`);
    }
    const checks = report.controlPlane.findings.map(({ check }: { check: string }) => check);
    assert.deepEqual(checks, ["API", "Controllers", "Data"]);
  });

  test("again by the cluster's authority is allowed for the same system only", async () => {
    writeFileSync(file("ca.pem"), simulator.ca);
    const again = await connect(simulator.url, "--name", "lab", "--ca", "ca.pem");
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /hypervisor.berth.dev\/lab configured/);
    const twice = await connect(simulator.url, "--name", "second", "--ca", "ca.pem");
    sentence(twice, /the Hypervisor lab is this system already/);
  });

  test("to what cannot be reached, or with a wrong token, says so and writes nothing", async () => {
    sentence(
      await connect("https://127.0.0.1:1"),
      /127.0.0.1:1 cannot be reached: nothing listens/,
    );
    writeFileSync(file("wrong"), `${simulator.tokenId}=wrong\n`);
    const args = ["--name", "bad", "--fingerprint", simulator.fingerprint];
    const wrong = await connect(simulator.url, ...args, "--token-file", "wrong");
    sentence(wrong, /nothing was written/);
    assert.match(wrong.stdout, /problem +credentials +the token .* is refused: 401/);
    sentence(await connect(simulator.url, "--name", "bad"), /give --fingerprint [0-9A-F:]{95} if/);
    sentence(await run("get", "hypervisor", "bad"), /not found/);
  });
});

describe("a server with an odd certificate or version", () => {
  const dayMs = 24 * 60 * 60_000;

  /** A server that says it is a Proxmox VE of some version, with an old certificate. */
  async function standIn(version: string, agoMs: number): Promise<StandIn> {
    const clock = { ...systemClock, nowMs: () => Date.now() - agoMs };
    const environment = { clock, random: systemRandom };
    const authority = await createAuthority(environment);
    const names = ["127.0.0.1"];
    const { cert, key } = await issueServerCertificate(authority, names, environment);
    const data: Record<string, unknown> = {
      "/version": { version },
      "/nodes": [{ node: "pve1", status: "online" }],
      "/nodes/pve1/certificates/info": [{ filename: "pve-root-ca.pem", fingerprint: "AB:CD" }],
      "/access/permissions": {},
      "/cluster/status": [],
      "/cluster/resources": [],
    };
    const server = createServer({ cert, key }, ({ url = "" }, response) => {
      const found = data[url.replace("/api2/json", "")];
      response.statusCode = found === undefined ? 501 : 200;
      response.end(JSON.stringify({ data: found ?? null }));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    return {
      server,
      url: `https://127.0.0.1:${port}`,
      ca: authority.cert,
      fingerprint: fingerprintOf(cert),
    };
  }

  interface StandIn {
    readonly server: Server;
    readonly url: string;
    readonly ca: string;
    readonly fingerprint: string;
  }

  test("that has expired is refused by its authority, and doubtful by its pin", async (t) => {
    const old = await standIn("9.2.11", 400 * dayMs);
    t.after(() => old.server.close());
    writeFileSync(file("old-ca.pem"), old.ca);
    const refused = await connect(old.url, "--ca", "old-ca.pem");
    sentence(
      refused,
      /the certificate of https:.* expired on \d{4}-\d\d-\d\d\. Renew it on the node/,
    );
    const pinned = await connect(old.url, "--fingerprint", old.fingerprint);
    assert.match(pinned.stdout, /warning +certificate +.*pinned certificate, which expired/);
  });

  test("of a version that is too old is refused in words", async (t) => {
    const old = await standIn("6.4-15", dayMs);
    t.after(() => old.server.close());
    const refused = await connect(old.url, "--fingerprint", old.fingerprint);
    sentence(refused, /nothing was written/);
    assert.match(refused.stdout, /problem +version +Proxmox VE 6.4-15 is too old/);
  });

  test("that changed since it was pinned gets no token, and the doctor says what to do", async (t) => {
    const first = await startSimulatorProcess();
    const port = new URL(first.url).port;
    writeFileSync(file("token-2"), `${first.tokenId}=${first.tokenSecret}\n`);
    const args = ["--name", "changed", "--fingerprint", first.fingerprint];
    const made = await connect(first.url, ...args, "--token-file", "token-2");
    assert.equal(made.code, 0, made.stderr);
    await first.stop();
    const away = await run("doctor", "changed");
    assert.equal(away.code, 1);
    assert.match(away.stdout, /problem +endpoint +https:\S+ cannot be reached: nothing listens/);
    const second = await startSimulatorProcess("9.2", ["--port", port]);
    t.after(() => second.stop());
    const found = await run("doctor", "changed");
    assert.equal(found.code, 1);
    assert.match(
      found.stdout,
      /problem +certificate +\S+ shows another certificate than the pinned/,
    );
    assert.doesNotMatch(found.stdout, /credentials/, "nothing was asked");
  });
});

describe("rehearsing", () => {
  test("a snapshot, a twin of it, and a snapshot of the twin are the same", async (t) => {
    await furnish(simulator);
    const taken = await run("doctor", "lab", "--snapshot", "one.json");
    assert.equal(taken.code, 0, taken.stderr);
    assert.equal(statSync(file("one.json")).mode & 0o077, 0, "others cannot read it");
    const text = readFileSync(file("one.json"), "utf8");
    for (const secret of [
      "hunter2",
      "ssh-ed25519",
      "192.168.7.7",
      "call Anna",
      simulator.tokenSecret,
    ]) {
      assert.ok(!text.includes(secret), `${secret} is in the inventory`);
    }
    const twin = await startSimulatorProcess("9.2", ["--from", file("one.json")]);
    t.after(() => twin.stop());
    writeFileSync(file("token-3"), `${twin.tokenId}=${twin.tokenSecret}\n`);
    const args = ["--name", "twin", "--fingerprint", twin.fingerprint, "--token-file", "token-3"];
    const made = await connect(twin.url, ...args);
    assert.equal(made.code, 0, made.stdout + made.stderr);
    assert.equal((await run("doctor", "twin", "--snapshot", "two.json")).code, 0);
    assert.equal(readFileSync(file("two.json"), "utf8"), text);
    assert.equal((await twin.get("/nodes/pve2/qemu/7001/config")).name, "db");
    const exists = await run("doctor", "twin", "--snapshot", "two.json");
    sentence(exists, /two.json exists: name another file/);
  });

  test("bad files are refused in one sentence", async () => {
    writeFileSync(file("torn.json"), '{"format": "berth.dev/prox');
    writeFileSync(file("other.json"), "{}");
    writeFileSync(file("later.json"), '{"format":"berth.dev/proxmox-inventory","version":9}');
    const from = (name: string, ...more: string[]): Promise<Ran> =>
      runBerth(["sim", "proxmox", "--from", name, ...more], { cwd: folder.path });
    sentence(await from("none.json"), /there is no .*none.json/);
    sentence(await from("torn.json"), /torn.json cannot be used: it is not JSON/);
    sentence(await from("other.json"), /it is no inventory: berth doctor --snapshot writes one/);
    sentence(await from("later.json"), /its version is 9, and this program reads 1/);
    sentence(await from("other.json", "--nodes", "a,b"), /--nodes and --from exclude each other/);
  });
});

test("the doctor examines the demo, and says so when nothing is running", async (t) => {
  const demo = await startBerth({ data: file("demo"), demo: true });
  t.after(() => demo.stop());
  // The controllers may still be at their first look.
  let report = "";
  await eventually(
    async () => {
      const found = await runBerth(["doctor", "demo", "--data", demo.data]);
      report = found.stdout + found.stderr;
      return found.code === 0 && !found.stdout.includes("not looked at it yet");
    },
    () => report,
  );
  await demo.stop();
  const gone = await runBerth(["doctor", "--data", demo.data]);
  assert.equal(gone.code, 1);
  assert.match(gone.stdout, /problem +api +https:\S+ cannot be reached/);
});

/** A machine with all that must not leave the house. */
async function furnish(lab: SimulatorProcess): Promise<void> {
  await lab.write("POST", "/pools", { poolid: "web" });
  await lab.write("POST", "/nodes/pve2/qemu", {
    vmid: "7001",
    name: "db",
    pool: "web",
    tags: "prod",
    memory: "2048",
    scsi0: "local-zfs:8",
    net0: "virtio,bridge=vmbr0",
    ciuser: "anna",
    cipassword: "hunter2",
    sshkeys: encodeURIComponent("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEt anna"),
    ipconfig0: "ip=192.168.7.7/24",
    description: "call Anna before you touch it",
  });
  await eventually(
    async () => {
      const config = await lab
        .get("/nodes/pve2/qemu/7001/config")
        .catch(() => ({ lock: "create" }));
      return config.lock === undefined && config.scsi0 !== undefined;
    },
    () => "the machine was not made",
  );
}
