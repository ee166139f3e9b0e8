import { join } from "node:path";
import { casts, exemptions, injected } from "./tidy/code-rules.ts";
import { engineOnly } from "./tidy/engine-rules.ts";
import { guards } from "./tidy/guard-rules.ts";
import { cycles, direction, door, packages, plainImports } from "./tidy/import-rules.ts";
import { type Finding, readProject, type Rule, type TextFile } from "./tidy/project.ts";
import { deadFiles, pretence, unusedExports } from "./tidy/reach-rules.ts";
import { readRepository } from "./tidy/repository.ts";
import { columns, fileSize, homes, readmes, words } from "./tidy/text-rules.ts";

/**
 * The rules of this repository that no linter knows. Pure: from files to findings, so that each
 * rule is tested with small samples. What oxlint can do, it does: see .oxlintrc.json.
 */
const rules: readonly Rule[] = [
  homes,
  direction,
  door,
  cycles,
  packages,
  plainImports,
  injected,
  engineOnly,
  casts,
  exemptions,
  guards,
  deadFiles,
  unusedExports,
  pretence,
  fileSize,
  columns,
  words,
  readmes,
];

const root = join(import.meta.dirname, "..");

/** Prints every finding of the working tree; names in args narrow it to paths that start so. */
export async function main(args: readonly string[]): Promise<number> {
  const files = readRepository(root);
  const findings = tidy(files).filter(({ path }) => {
    return args.length === 0 || args.some((prefix) => path.startsWith(prefix));
  });
  for (const { path, line, rule, message } of findings) {
    console.log(`${path}:${line} [${rule}] ${message}`);
  }
  if (findings.length > 0) console.log(`${findings.length} findings in ${files.length} files.`);
  return findings.length > 0 ? 1 : 0;
}

export function tidy(files: readonly TextFile[]): Finding[] {
  const project = readProject(files);
  return rules
    .flatMap((rule) => rule(project))
    .toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line);
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
