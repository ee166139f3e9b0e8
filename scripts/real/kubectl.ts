import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Need } from "../runner/suite.ts";
import { go, goModIn, renameAcross, toolFolder } from "./go.ts";

/** The kubectl that is built where there is none. Its parts are published as v0.<the rest>. */
const kubernetesVersion = "1.33.5";

export const kubectl: Need = {
  name: "kubectl",
  missing: () => {
    const folders = [...(process.env["PATH"] ?? "").split(delimiter), toolFolder];
    const isThere = folders.filter(existsSync).some((folder) => {
      return readdirSync(folder).some((name) => /^kubectl(\.1\.\d+)?$/.test(name));
    });
    return isThere ? undefined : `there is no kubectl in PATH or in ${toolFolder}`;
  },
  provide: async () => await buildKubectl(toolFolder),
};

/**
 * Builds kubectl from its sources with Go, which takes minutes the first time. It cannot simply be
 * installed: its module says that its parts lie in folders beside it. So a module of our own
 * requires it, and says where those parts are published.
 */
async function buildKubectl(into: string): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), "berth-kubectl-"));
  try {
    const module = `k8s.io/kubernetes@v${kubernetesVersion}`;
    const downloaded = await go(work, ["mod", "download", "-json", module]);
    writeFileSync(join(work, "go.mod"), kubectlModule(readFileSync(goModIn(downloaded), "utf8")));
    await go(work, ["build", "-trimpath", ...versionFlags(), "-o", "kubectl", kubectlPackage]);
    mkdirSync(into, { recursive: true });
    const [major, minor] = kubernetesVersion.split(".");
    // Renamed into place when it is whole: a half-written one would be taken for a kubectl.
    renameAcross(join(work, "kubectl"), join(into, `kubectl.${major}.${minor}`));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const kubectlPackage = "k8s.io/kubernetes/cmd/kubectl";

/** A go.mod that requires Kubernetes and replaces each of its own parts by the published one. */
export function kubectlModule(kubernetesModule: string): string {
  const parts = [...kubernetesModule.matchAll(/^\s*(\S+) => \.\/staging\/\S+$/gm)];
  const published = kubernetesVersion.replace(/^1\./, "v0.");
  return [
    "module berth.dev/kubectl",
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
  const flags = Object.entries(values).map(([name, value]) => {
    return `-X k8s.io/component-base/version.${name}=${value}`;
  });
  return ["-ldflags", flags.join(" ")];
}
