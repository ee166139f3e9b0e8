import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { repository, runBerth } from "./berth.ts";
import { startReplica, type Replica } from "./controllers.ts";
import { type Http, bodyOf, connect } from "./http.ts";
import { type KubeApiserver, startKubeApiserver } from "./kube-apiserver.ts";
import { type SimulatorProcess, startSimulatorProcess } from "./simulator.ts";

/**
 * A Kubernetes API, a simulated Proxmox cluster that it knows as the Hypervisor `demo`, and two
 * replicas of the controllers, which have no more rights than deploy/kubernetes.yaml gives them.
 */
export interface World {
  readonly server: KubeApiserver;
  readonly simulator: SimulatorProcess;
  /** As the administrator. */
  readonly http: Http;
  /** Runs kubectl, and fails the test where it fails. Gives what it printed. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  /** Both; the one that was killed is replaced in its place. */
  readonly replicas: Replica[];
  /** Which of them holds the lease, as soon as one does. */
  leader(): Promise<Replica>;
  /** `kill -9` of the one that leads; another one is started at once. */
  killLeader(): Promise<void>;
  stop(): Promise<void>;
}

/** The user that the controllers are. */
export const controllersUser = "system:serviceaccount:berth-system:berth-controller";
export const manifest = join(repository, "deploy", "kubernetes.yaml");
/** For which the controllers contend. */
export const lease =
  "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth-controllers";
/** Generous: a takeover takes about a minute, and other suites may be running. */
const patienceMs = 180_000;

export async function startWorld(): Promise<World> {
  const server = await startKubeApiserver();
  const kubectl = kubectlOf(server);
  await kubectl(["apply", "-f", "-"], (await runBerth(["crds"])).stdout);
  await kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await kubectl(["apply", "-f", manifest]);
  const simulator = await startSimulatorProcess();
  await kubectl(["apply", "-f", "-"], labOf(simulator));
  const kubeconfig = await writeKubeconfig(server, kubectl);
  const http = connect(server);
  const replicas = [startReplica(kubeconfig), startReplica(kubeconfig)];
  const leader = async (): Promise<Replica> => {
    let found: Replica | undefined;
    await until("somebody leads", async () => {
      const { spec } = bodyOf(await http.ask({ path: lease }));
      found = replicas.find((replica) => replica.holds(spec?.holderIdentity ?? ""));
      return found !== undefined;
    });
    assert.ok(found);
    return found;
  };
  return {
    server,
    simulator,
    http,
    kubectl,
    replicas,
    leader,
    killLeader: async () => {
      const killed = await leader();
      await killed.kill();
      replicas[replicas.indexOf(killed)] = startReplica(kubeconfig);
    },
    stop: async () => {
      http.close();
      await Promise.all(replicas.map((replica) => replica.kill()));
      await simulator.stop();
      await server.stop();
    },
  };
}

/** Runs kubectl as the administrator, and fails the test where it fails. */
export function kubectlOf(server: KubeApiserver): World["kubectl"] {
  return async (args, input) => {
    const timeoutMs = patienceMs + 10_000;
    const ran = await server.kubectl(args, {
      timeoutMs,
      ...(input === undefined ? {} : { input }),
    });
    assert.equal(ran.code, 0, `kubectl ${args.join(" ")}: ${ran.stdout}${ran.stderr}`);
    assert.equal(ran.stderr, "", `kubectl ${args.join(" ")} warns of nothing`);
    return ran.stdout;
  };
}

/** Polls until it is so. The complaint is made when the patience has ended. */
export async function until(
  wanted: string,
  condition: () => Promise<boolean>,
  found: () => string = () => "",
): Promise<void> {
  const deadlineMs = Date.now() + patienceMs;
  while (!(await condition())) {
    assert.ok(Date.now() < deadlineMs, `expected that ${wanted} ${found()}`);
    await sleep(250);
  }
}

export function sleep(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

/**
 * The kubeconfig of the manifest itself, with the account's token in a file as a Pod has it; only
 * where things are is another matter here.
 */
export async function writeKubeconfig(
  server: KubeApiserver,
  kubectl: World["kubectl"],
): Promise<string> {
  const account = ["berth-controller", "-n", "berth-system"];
  const token = await kubectl(["create", "token", ...account]);
  const write = (name: string, text: string): string => {
    const path = join(server.folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const mounted = "/var/run/secrets/kubernetes.io/serviceaccount";
  const text = objectsOf(manifest).find(({ kind }) => kind === "ConfigMap")?.data.kubeconfig;
  const moved = String(text)
    .replace("https://kubernetes.default.svc", server.url)
    .replace(`${mounted}/ca.crt`, write("ca.crt", server.ca))
    .replace(`${mounted}/token`, write("token", token));
  assert.ok(!moved.includes(mounted), moved);
  return write("kubeconfig", moved);
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary objects
export function objectsOf(path: string): any[] {
  const documents = parseAllDocuments(readFileSync(path, "utf8"));
  return documents.map((document) => document.toJS());
}

function labOf(simulator: SimulatorProcess): string {
  const { url, tokenId, tokenSecret, fingerprint } = simulator;
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { namespace: "berth-system", name: "demo" },
    stringData: { tokenId, tokenSecret },
  };
  const hypervisor = {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name: "demo" },
    spec: {
      type: "proxmox",
      endpoints: [url],
      credentials: { secretRef: { namespace: "berth-system", name: "demo" } },
      tls: { fingerprints: [fingerprint] },
      idRange: { first: 1000, last: 1999 },
      defaults: { storage: "local-zfs", imageStorage: "local" },
      limits: { pollSeconds: 1 },
    },
  };
  return [secret, hypervisor].map((object) => JSON.stringify(object)).join("\n---\n");
}
