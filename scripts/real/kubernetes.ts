import { buildProgram, readModule } from "./go.ts";

/**
 * Of everything that is built from Kubernetes: what was compiled for one program, the next one
 * takes from Go's cache. Its parts are published as v0.<the rest>; all of them have to be there.
 */
export const kubernetesVersion = "1.33.13";

/**
 * Builds a program of Kubernetes. It cannot simply be installed: its module says that its parts lie
 * in folders beside it. So a module of our own requires it, and says where they are published.
 */
export async function buildKubernetes(
  program: "kubectl" | "kube-apiserver",
  to: string,
): Promise<void> {
  const published = await readModule(`k8s.io/kubernetes@v${kubernetesVersion}`);
  await buildProgram(
    {
      package: `k8s.io/kubernetes/cmd/${program}`,
      module: requiringModule(published),
      linkerFlags: versionFlags(),
    },
    to,
  );
}

/** A go.mod that requires Kubernetes and replaces each of its own parts by the published one. */
export function requiringModule(kubernetesModule: string): string {
  const parts = [...kubernetesModule.matchAll(/^\s*(\S+) => \.\/staging\/\S+$/gm)];
  const published = kubernetesVersion.replace(/^1\./, "v0.");
  return [
    "module berth.dev/kubernetes",
    /^go .*$/m.exec(kubernetesModule)?.[0] ?? "go 1.24.0",
    `require k8s.io/kubernetes v${kubernetesVersion}`,
    ...parts.map(([, name]) => `replace ${name} => ${name} ${published}`),
    "",
  ].join("\n");
}

/** Without these it would call itself v0.0.0-master, and its servers' versions skewed. */
function versionFlags(): string[] {
  const [major, minor] = kubernetesVersion.split(".");
  const values = { gitVersion: `v${kubernetesVersion}`, gitMajor: major, gitMinor: minor };
  return Object.entries(values).map(([name, value]) => {
    return `-X k8s.io/component-base/version.${name}=${value}`;
  });
}
