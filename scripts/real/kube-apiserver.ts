import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Need } from "../runner/suite.ts";
import { buildProgram, toolFolder } from "./go.ts";
import { buildKubernetes, kubernetesVersion } from "./kubernetes.ts";

/** The one that this Kubernetes is published with. Those of distributions are often too old. */
const etcdVersion = "3.5.21";

/** The programs of a real Kubernetes API. Their names carry the version: a new one is built. */
export const kubeApiserverPath = join(toolFolder, `kube-apiserver-${kubernetesVersion}`);
export const etcdPath = join(toolFolder, `etcd-${etcdVersion}`);

export const kubeApiserver: Need = {
  name: "kube-apiserver",
  missing: () => whatIsMissing(existsSync),
  provide: async () => {
    if (!existsSync(etcdPath)) await buildEtcd(etcdPath);
    if (!existsSync(kubeApiserverPath)) await buildKubernetes("kube-apiserver", kubeApiserverPath);
  },
};

/** Names what is not there; nothing if both are. */
export function whatIsMissing(exists: (path: string) => boolean): string | undefined {
  const absent = [kubeApiserverPath, etcdPath].filter((path) => !exists(path));
  return absent.length === 0 ? undefined : `there is no ${absent.join(", nor ")}`;
}

async function buildEtcd(to: string): Promise<void> {
  const etcd = "go.etcd.io/etcd/server/v3";
  const module = ["module berth.dev/etcd", "go 1.23.0", `require ${etcd} v${etcdVersion}`, ""];
  await buildProgram({ package: etcd, module: module.join("\n") }, to);
}
