import { programEntries, waitingRooms } from "./policy.ts";
import { type Project, type Rule, servesTests } from "./project.ts";

/** Every file is part of the program, of a test or of a tool; and tests keep no dead code alive. */
export const deadFiles: Rule = (project) => {
  const paths = [...project.code.keys()];
  const all = reachable(project, [...programEntries, ...paths.filter(isRoot)]);
  const program = hasProgram(project) ? reachable(project, programEntries) : all;
  const isUnused = (path: string): boolean => !all.has(path);
  const isTestOnly = (path: string): boolean => !program.has(path) && isProgramFile(path);
  const finding = (message: string) => (path: string) => ({
    path,
    line: 1,
    rule: "dead-files",
    message,
  });
  return [
    ...tops(project, paths.filter(isUnused)).map(finding("nothing uses this file: delete it.")),
    ...tops(
      project,
      paths.filter((path) => !isUnused(path) && isTestOnly(path)),
    ).map(finding("only tests use this file: use it, delete it, or move it to a testing folder.")),
  ];
};

/** Those that no other of them uses: with these the rest falls, or comes to life. */
function tops(project: Project, dead: readonly string[]): string[] {
  const used = new Set(
    dead.flatMap((path) => project.code.get(path)?.targets.map((target) => target.path) ?? []),
  );
  const found = dead.filter((path) => !used.has(path));
  return found.length > 0 ? found : [...dead];
}

/** What tests use to pretend must not get into the program. */
export const pretence: Rule = (project) => {
  const program = reachable(project, programEntries);
  return [...project.code.values()]
    .filter(({ path }) => program.has(path) && !isSimulated(path))
    .flatMap(({ path, targets }) =>
      targets
        .filter((target) => servesTests(target.path))
        .map((target) => {
          const message = `${target.path} is for tests only (scripts/tidy/policy.ts).`;
          return { path, line: target.line, rule: "pretence", message };
        }),
    );
};

/** The simulator lives on the clock and the fakes that tests use. */
function isSimulated(path: string): boolean {
  return path.startsWith("src/sim/");
}

/** A value is exported for somebody. */
export const unusedExports: Rule = (project) => {
  const used = usedNames(project);
  return [...project.code.values()]
    .filter(({ path }) => !isRoot(path) && !programEntries.includes(path))
    .flatMap(({ path, module }) => {
      const names = used.get(path);
      if (names?.has("*") || !path.endsWith(".ts") || path.endsWith("/index.ts")) return [];
      return module.values
        .filter(({ name }) => !names?.has(name))
        .map(({ name, line }) => {
          const message = `nobody imports ${name}: drop the "export", or the whole of it.`;
          return { path, line, rule: "unused-exports", message };
        });
    });
};

/** The files that the program can reach: those that a package of it must contain. */
export function programFiles(project: Project): Set<string> {
  return reachable(project, programEntries);
}

function reachable(project: Project, entries: readonly string[]): Set<string> {
  const seen = new Set<string>();
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    waiting.push(...(project.code.get(path)?.targets ?? []).map((target) => target.path));
  }
  return seen;
}

/** Whether somebody starts this file by name: a test, a tool, the launcher. */
function isRoot(path: string): boolean {
  return path.endsWith(".test.ts") || /^(bin|bench|scripts)\/[^/]+$/.test(path);
}

function isProgramFile(path: string): boolean {
  if (!path.startsWith("src/") || servesTests(path)) return false;
  return !waitingRooms.some(({ pattern }) => pattern.test(path));
}

function hasProgram(project: Project): boolean {
  return programEntries.every((path) => project.code.has(path));
}

function usedNames(project: Project): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>();
  for (const { targets } of project.code.values()) {
    for (const { path, names } of targets) {
      const known = used.get(path) ?? new Set();
      for (const name of names) known.add(name);
      used.set(path, known);
    }
  }
  return used;
}
