import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Need } from "../runner/suite.ts";
import { toolFolder } from "./go.ts";
import { buildKubernetes, kubernetesVersion } from "./kubernetes.ts";

export const kubectl: Need = {
  name: "kubectl",
  missing: () => {
    const folders = [...(process.env["PATH"] ?? "").split(delimiter), toolFolder];
    const isThere = folders.filter(existsSync).some((folder) => {
      return readdirSync(folder).some((name) => /^kubectl(\.1\.\d+)?$/.test(name));
    });
    return isThere ? undefined : `there is no kubectl in PATH or in ${toolFolder}`;
  },
  provide: async () => {
    const [major, minor] = kubernetesVersion.split(".");
    await buildKubernetes("kubectl", join(toolFolder, `kubectl.${major}.${minor}`));
  },
};
