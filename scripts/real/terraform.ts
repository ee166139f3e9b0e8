import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import type { Need } from "../runner/suite.ts";
import { buildProgram, readModule, toolFolder } from "./go.ts";

const providerVersion = "0.111.1";
const tofuVersion = "1.12.6";

/** The provider for Proxmox; its name carries the version, so that a new one is built. */
export const providerPath = join(toolFolder, `terraform-provider-proxmox_v${providerVersion}`);
const tofuPath = join(toolFolder, `tofu-${tofuVersion}`);

/** Terraform or OpenTofu, whichever is here, and the provider bpg/proxmox. */
export const terraform: Need = {
  name: "terraform",
  missing: () => {
    if (findTerraform() === undefined)
      return `there is no terraform or tofu in PATH, nor ${tofuPath}`;
    return existsSync(providerPath) ? undefined : `there is no ${providerPath}`;
  },
  provide: async () => {
    if (findTerraform() === undefined) await buildTofu();
    if (!existsSync(providerPath)) await buildProvider();
  },
};

/** Either does: the provider speaks the same protocol to both. */
export function findTerraform(): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const inPath = folders.flatMap((folder) => [join(folder, "terraform"), join(folder, "tofu")]);
  return [...inPath, tofuPath].find((path) => existsSync(path));
}

async function buildProvider(): Promise<void> {
  const provider = "github.com/bpg/terraform-provider-proxmox";
  await build({ module: provider, version: providerVersion, package: provider }, providerPath);
}

async function buildTofu(): Promise<void> {
  const tofu = "github.com/opentofu/opentofu";
  await build({ module: tofu, version: tofuVersion, package: `${tofu}/cmd/tofu` }, tofuPath);
}

interface Published {
  readonly module: string;
  readonly version: string;
  readonly package: string;
}

async function build({ module, version, package: name }: Published, to: string): Promise<void> {
  const published = await readModule(`${module}@v${version}`);
  await buildProgram({ package: name, module: requiringModule(published, module, version) }, to);
}

/** A go.mod that requires a module under the module's own terms: its Go, and what it replaces. */
export function requiringModule(published: string, module: string, version: string): string {
  const replaced = [...published.matchAll(/^(?:replace)?\s+(\S+(?: v\S+)? => \S+ v\S+)$/gm)];
  return [
    "module berth.dev/clients",
    /^go .*$/m.exec(published)?.[0] ?? "go 1.26.0",
    `require ${module} v${version}`,
    ...replaced.map(([, replacement]) => `replace ${replacement}`),
    "",
  ].join("\n");
}
