import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findTerraform, providerPath } from "../../../scripts/real/terraform.ts";
import { running } from "../support/berth.ts";

export interface Ran {
  readonly code: number;
  readonly output: string;
}

export interface Target {
  readonly url: string;
  /** Without one the server's certificate is not checked. */
  readonly caFile?: string;
}

export type Credentials =
  | { readonly tokenId: string; readonly tokenSecret: string }
  | { readonly user: string; readonly password: string };

/** A folder with a configuration, and Terraform or OpenTofu with the provider bpg/proxmox. */
export class Workspace {
  readonly #folder: string;
  readonly #program: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(folder: string, { url, caFile }: Target, credentials: Credentials) {
    const program = findTerraform();
    assert.ok(program, "there is no terraform and no tofu");
    this.#program = program;
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    this.#env = {
      TF_CLI_CONFIG_FILE: installProvider(folder),
      CHECKPOINT_DISABLE: "1",
      TF_IN_AUTOMATION: "1",
      // The provider checks the server's certificate like any program that is written in Go.
      ...(caFile === undefined ? { PROXMOX_VE_INSECURE: "true" } : { SSL_CERT_FILE: caFile }),
      PROXMOX_VE_ENDPOINT: url,
      ...credentialVariables(credentials),
    };
  }

  /** Replaces what is declared. */
  declare(configuration: string): void {
    writeFileSync(join(this.#folder, "main.tf"), `${preamble}${configuration}`);
  }

  async apply(): Promise<Ran> {
    return await this.#run(["apply", "-auto-approve"]);
  }

  async destroy(): Promise<Ran> {
    return await this.#run(["destroy", "-auto-approve"]);
  }

  /** Whether what is there is what is declared: read anew. */
  async isSettled(): Promise<{ readonly settled: boolean; readonly output: string }> {
    const { code, output } = await this.#run(["plan", "-detailed-exitcode"]);
    assert.ok(code === 0 || code === 2, output);
    return { settled: code === 0, output };
  }

  /** An output of the configuration. */
  async output(name: string): Promise<unknown> {
    const { code, output } = await this.#run(["output", "-json", name]);
    assert.equal(code, 0, output);
    return JSON.parse(output);
  }

  #run(args: readonly string[]): Promise<Ran> {
    const child = spawn(this.#program, [...args, "-no-color"], {
      cwd: this.#folder,
      env: { ...process.env, ...this.#env },
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 180_000,
    });
    running.add(child);
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => {
        running.delete(child);
        resolve({ code: code ?? 1, output });
      });
    });
  }
}

const preamble = `terraform {
  required_providers {
    proxmox = { source = "bpg/proxmox" }
  }
}
provider "proxmox" {}
`;

/** Tells Terraform that the provider lies in a folder: no registry is asked, nothing downloaded. */
function installProvider(folder: string): string {
  const plugins = join(folder, "plugins");
  mkdirSync(plugins);
  symlinkSync(providerPath, join(plugins, "terraform-provider-proxmox"));
  const file = join(folder, "cli.tfrc");
  writeFileSync(
    file,
    `provider_installation {
  dev_overrides {
    "bpg/proxmox" = ${JSON.stringify(plugins)}
  }
}
`,
  );
  return file;
}

function credentialVariables(credentials: Credentials): Record<string, string> {
  if ("tokenId" in credentials) {
    const { tokenId, tokenSecret } = credentials;
    return { PROXMOX_VE_API_TOKEN: `${tokenId}=${tokenSecret}` };
  }
  return {
    PROXMOX_VE_USERNAME: credentials.user,
    PROXMOX_VE_PASSWORD: credentials.password,
  };
}
