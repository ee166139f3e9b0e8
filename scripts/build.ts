import { execFileSync } from "node:child_process";
import { cpSync, globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Project, readProject } from "./tidy/project.ts";
import { programFiles } from "./tidy/reach-rules.ts";
import { readRepository } from "./tidy/repository.ts";

const root = join(import.meta.dirname, "..");
const output = join(root, "dist");

/** Writes the program as plain JavaScript to dist, for the package; with --clean removes it. */
export async function main(args: readonly string[]): Promise<number> {
  rmSync(output, { recursive: true, force: true });
  if (args.includes("--clean")) return 0;
  try {
    compile();
    const project = readProject(readRepository(root));
    trim(project);
    copyAssets(project);
    pointUrlsAtJavaScript(project);
  } catch (error) {
    rmSync(output, { recursive: true, force: true });
    console.error(`berth: the build failed. ${error instanceof Error ? error.message : ""}`);
    return 1;
  }
  return 0;
}

function compile(): void {
  const tsc = join(root, "node_modules", ".bin", "tsc");
  execFileSync(process.execPath, [tsc, "-p", "tsconfig.build.json"], {
    cwd: root,
    stdio: "inherit",
  });
}

/** The compiler takes whole folders; what the program cannot reach stays here. */
function trim(project: Project): void {
  const wanted = programFiles(project);
  for (const name of globSync("**/*.js", { cwd: output })) {
    if (!wanted.has(join("src", name.replace(/\.js$/, ".ts")))) rmSync(join(output, name));
  }
}

/** Whatever the program names by `new URL("./x", import.meta.url)` and is no code. */
function copyAssets(project: Project): void {
  for (const path of programFiles(project)) {
    if (!path.startsWith("src/") || path.endsWith(".ts")) continue;
    cpSync(join(root, path), join(output, path.slice("src/".length)));
  }
}

/** The compiler turns `.ts` into `.js` in imports, but does not know that a URL names a worker. */
function pointUrlsAtJavaScript(project: Project): void {
  for (const path of programFiles(project)) {
    const urls = project.code.get(path)?.module.references.filter(({ how }) => how === "url") ?? [];
    const names = urls.map(({ specifier }) => specifier).filter((name) => name.endsWith(".ts"));
    if (names.length === 0) continue;
    const file = join(output, path.slice("src/".length).replace(/\.ts$/, ".js"));
    let text = readFileSync(file, "utf8");
    for (const name of names) {
      text = text.replaceAll(`URL("${name}"`, `URL("${name.replace(/\.ts$/, ".js")}"`);
    }
    writeFileSync(file, text);
  }
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
