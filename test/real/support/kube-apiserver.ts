import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { etcdPath, kubeApiserverPath } from "../../../scripts/real/kube-apiserver.ts";
import { running, temporaryFolder } from "./berth.ts";
import { freePorts } from "./free-ports.ts";
import { bodyOf, connect } from "./http.ts";
import { findKubectls, type Ran, runKubectl, type RunOptions } from "./kubectl.ts";

/** A real kube-apiserver with an etcd of its own; it forgets everything when it is stopped. */
export interface KubeApiserver {
  readonly url: string;
  /** The administrator's. */
  readonly token: string;
  readonly ca: string;
  /** Private, and gone with it. */
  readonly folder: string;
  /** Of the etcd, which asks nobody for a password. */
  readonly etcdUrl: string;
  /** Runs kubectl as the administrator, to its end. */
  kubectl(args: readonly string[], options?: RunOptions): Promise<Ran>;
  /** `kill -9` of the server, not of etcd, and another one in its place. */
  restart(): Promise<void>;
  /** What the API was asked to do, by whom, in the order of the answers; see `auditPolicy`. */
  audited(): readonly Audited[];
  stop(): Promise<void>;
}

/** One request, as the audit log has it. */
export interface Audited {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly requestURI: string;
  readonly stageTimestamp: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
}

/** On a busy machine it has taken twenty seconds. */
const readyWithinMs = 120_000;

/** Every request of a service account, and every write of anybody. */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  rules: [
    { level: "Metadata", userGroups: ["system:serviceaccounts"] },
    { level: "None", verbs: ["get", "list", "watch"] },
    { level: "Metadata" },
  ],
  omitStages: ["RequestReceived"],
};

export async function startKubeApiserver(): Promise<KubeApiserver> {
  const folder = temporaryFolder("kube-apiserver");
  const [etcdPort = 0, peerPort = 0, port = 0] = await freePorts(3);
  const token = randomBytes(16).toString("hex");
  writeFiles(folder.path, token);
  const etcd = startIn(folder.path, etcdPath, etcdFlags(folder.path, etcdPort, peerPort));
  const url = `https://127.0.0.1:${port}`;
  const start = async (): Promise<Started> => {
    const flags = serverFlags(folder.path, port, etcdPort);
    const started = startIn(folder.path, kubeApiserverPath, flags);
    const isRunning = (): boolean => started.isRunning();
    await untilReady({ url, token, folder: folder.path, isRunning });
    return started;
  };
  let server = await start();
  const ca = readFileSync(join(folder.path, "certificates", "apiserver.crt"), "utf8");
  const kubeconfig = join(folder.path, "admin.kubeconfig");
  writeFileSync(kubeconfig, kubeconfigOf({ url, ca, token }), { mode: 0o600 });
  const [kubectl] = findKubectls().toReversed();
  if (kubectl === undefined) throw new Error("there is no kubectl");
  // Its cache is by address, and another server may have had this port an hour ago.
  const always = ["--kubeconfig", kubeconfig, "--cache-dir", join(folder.path, "cache")];
  return {
    url,
    token,
    ca,
    folder: folder.path,
    etcdUrl: `http://127.0.0.1:${etcdPort}`,
    kubectl: (args, options) => runKubectl(kubectl, [...always, ...args], options),
    restart: async () => {
      await server.end();
      server = await start();
    },
    audited: () => readLines(join(folder.path, "audit.log")),
    stop: async () => {
      await Promise.all([server.end(), etcd.end()]);
      folder.remove();
    },
  };
}

function kubeconfigOf(access: Pick<KubeApiserver, "url" | "ca" | "token">): string {
  const ca = Buffer.from(access.ca).toString("base64");
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "real", cluster: { server: access.url, "certificate-authority-data": ca } }],
    users: [{ name: "admin", user: { token: access.token } }],
    contexts: [{ name: "real", context: { cluster: "real", user: "admin" } }],
    "current-context": "real",
  });
}

function writeFiles(folder: string, token: string): void {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = privateKey.export({ type: "pkcs1", format: "pem" });
  const write = (name: string, text: string | Buffer): void => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
  };
  write("service-accounts.key", key);
  write("tokens.csv", `${token},admin,admin,system:masters\n`);
  write("audit-policy.yaml", JSON.stringify(auditPolicy));
}

function etcdFlags(folder: string, port: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${port}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  return [
    `--data-dir=${join(folder, "etcd")}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    // What it holds is worth nothing after the test.
    "--unsafe-no-fsync",
    "--log-level=warn",
  ];
}

function serverFlags(folder: string, port: number, etcdPort: number): string[] {
  const key = join(folder, "service-accounts.key");
  return [
    `--etcd-servers=http://127.0.0.1:${etcdPort}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--cert-dir=${join(folder, "certificates")}`,
    "--authorization-mode=RBAC",
    `--token-auth-file=${join(folder, "tokens.csv")}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    `--service-account-key-file=${key}`,
    `--service-account-signing-key-file=${key}`,
    "--service-cluster-ip-range=10.96.0.0/24",
    "--endpoint-reconciler-type=none",
    // Accounts of Pods, of which there are none.
    "--disable-admission-plugins=ServiceAccount",
    `--audit-log-path=${join(folder, "audit.log")}`,
    `--audit-policy-file=${join(folder, "audit-policy.yaml")}`,
  ];
}

interface Started {
  isRunning(): boolean;
  /** `kill -9`: resolves once the process is gone. */
  end(): Promise<void>;
}

/** Its output goes into a file, which is shown where it does not start. */
function startIn(folder: string, program: string, flags: readonly string[]): Started {
  const log = openSync(join(folder, "output.log"), "a");
  const child: ChildProcess = spawn(program, flags, { stdio: ["ignore", log, log] });
  running.add(child);
  const ended = new Promise<void>((resolve) => {
    child.once("close", () => {
      running.delete(child);
      resolve();
    });
    child.once("error", () => resolve());
  });
  return {
    isRunning: () => running.has(child),
    end: () => {
      child.kill("SIGKILL");
      return ended;
    },
  };
}

async function untilReady(server: {
  readonly url: string;
  readonly token: string;
  readonly folder: string;
  isRunning(): boolean;
}): Promise<void> {
  const certificate = join(server.folder, "certificates", "apiserver.crt");
  const deadlineMs = Date.now() + readyWithinMs;
  while (!(await isReady(server, certificate))) {
    if (!server.isRunning() || Date.now() > deadlineMs) {
      const output = readFileSync(join(server.folder, "output.log"), "utf8");
      throw new Error(`kube-apiserver did not become ready: ${output.slice(-4000)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function isReady(
  server: { readonly url: string; readonly token: string },
  certificate: string,
): Promise<boolean> {
  if (!existsSync(certificate)) return false;
  const http = connect({ ...server, ca: readFileSync(certificate, "utf8") });
  try {
    const { status } = await http.ask({ path: "/readyz" });
    if (status !== 200) return false;
    // The first namespaces are made after it says that it is ready.
    const namespaces = bodyOf(await http.ask({ path: "/api/v1/namespaces" }));
    return namespaces.items.some(({ metadata }: { metadata: { name: string } }) => {
      return metadata.name === "default";
    });
  } catch {
    return false; // It does not listen yet, or is still writing its certificate.
  } finally {
    http.close();
  }
}

function readLines(path: string): Audited[] {
  const lines = readFileSync(path, "utf8").split("\n");
  // The last line may be half-written.
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}
