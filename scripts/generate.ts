import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { berthKinds } from "../src/api/index.ts";
import { commands } from "../src/cli/commands/index.ts";
import { cliPage } from "./generate/cli-page.ts";
import { editorSchema, editorSchemaOfAll } from "./generate/editor-schema.ts";
import { indexOf, pageOf } from "./generate/page.ts";
import { withProxmoxTables } from "./generate/proxmox-page.ts";

const root = join(import.meta.dirname, "..");

/** Written by hand, but for the tables in it. */
const proxmoxPage = "docs/drivers/proxmox.md";

/** What is derived from the kinds and the commands and kept in the repository, by path. */
export function generatedFiles(): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const kind of berthKinds) {
    const example = readFileSync(join(root, `examples/kinds/${kind.singular}.yaml`), "utf8");
    files.set(`docs/kinds/${kind.singular}.md`, pageOf(kind, example));
    files.set(`schemas/${kind.singular}.json`, json(editorSchema(kind)));
  }
  files.set("docs/cli.md", cliPage(commands));
  files.set(proxmoxPage, withProxmoxTables(readFileSync(join(root, proxmoxPage), "utf8")));
  files.set("docs/kinds/README.md", indexOf(berthKinds));
  files.set("schemas/berth.json", json(editorSchemaOfAll(berthKinds)));
  return files;
}

/** Writes them. Run it after every change of a kind. */
export async function main(): Promise<number> {
  const files = generatedFiles();
  for (const [path, text] of files) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const oxfmt = join(root, "node_modules", ".bin", "oxfmt");
  const { status } = spawnSync(process.execPath, [oxfmt, "schemas"], { cwd: root });
  return status ?? 1;
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

if (import.meta.main) process.exitCode = await main();
