import { isBuiltin } from "node:module";
import { doors, pureRooms, rooms, simImporters } from "./policy.ts";
import { type CodeFile, type Finding, type Project, type Rule, servesTests } from "./project.ts";

/** Imports point one way: the table of rooms is the architecture. */
export const direction: Rule = (project) => {
  return crossings(project).flatMap(({ file, from, to, line }) => {
    const message = directionFault(file, from, to);
    return message === undefined ? [] : [{ path: file.path, line, rule: "direction", message }];
  });
};

function directionFault(file: CodeFile, from: string, to: string): string | undefined {
  if (rule(to) === undefined) {
    return `src/${to} is no room: add it to scripts/tidy/policy.ts with what it may import.`;
  }
  if (servesTests(file.path)) return undefined;
  if (to === "sim" && !simImporters.includes(from)) {
    return `src/${from} imports the simulator: only ${simImporters.join(", ")} and tests may.`;
  }
  const allowed = rule(from) ?? [];
  if (allowed === "all" || allowed.some((name) => matches(name, to))) return undefined;
  const list = allowed.length === 0 ? "nothing" : allowed.join(", ");
  return `src/${from} may import ${list}, not src/${to}: pass what it needs as an argument.`;
}

/** A room is entered through its door, so that the rest of it can change freely. */
export const door: Rule = (project) => {
  return crossings(project).flatMap(({ file, to, path, line }) => {
    const isDoor = path === `src/${to}/index.ts` || doors.some((pattern) => pattern.test(path));
    const isFixture = servesTests(file.path) && /\/testing(\.ts$|\/)/.test(path);
    if (isDoor || isFixture) return [];
    const message = `reaches into src/${to} (${path}): import it from src/${to}/index.ts.`;
    return [{ path: file.path, line, rule: "door", message }];
  });
};

interface Crossing {
  file: CodeFile;
  from: string;
  to: string;
  path: string;
  line: number;
}

/** Every import in src that goes from one room to another. */
function crossings(project: Project): Crossing[] {
  return [...project.code.values()].flatMap((file) => {
    const from = roomOf(file.path);
    if (from === undefined) return [];
    return file.targets.flatMap(({ path, line }) => {
      const to = roomOf(path);
      return to === undefined || to === from ? [] : [{ file, from, to, path, line }];
    });
  });
}

/** "store", "drivers/proxmox"; nothing for what lies outside src. */
export function roomOf(path: string): string | undefined {
  const match = /^src\/((?:drivers|controllers)\/[^/]+|[^/]+)\//.exec(path);
  return match?.[1];
}

function rule(room: string): readonly string[] | "all" | undefined {
  return rooms[room] ?? rooms[room.replace(/\/.*/, "/*")];
}

function matches(allowed: string, room: string): boolean {
  return allowed === room || (allowed.endsWith("/*") && room.startsWith(allowed.slice(0, -1)));
}

/** Packages are declared where they are used: at run time, or for development only. */
export const packages: Rule = (project) => {
  return [...project.code.values()].flatMap((file) =>
    file.module.references.flatMap(({ specifier, line }) => {
      if (specifier.startsWith(".")) return [];
      const fault = packageFault(project, file.path, specifier);
      return fault ? [{ path: file.path, line, rule: "packages", message: fault }] : [];
    }),
  );
};

function packageFault(project: Project, path: string, specifier: string): string | undefined {
  const room = roomOf(path);
  const isProgram = room !== undefined && !servesTests(path);
  if (isProgram && pureRooms.includes(room)) {
    return `src/${room} is pure and imports no module of Node or npm, such as ${specifier}.`;
  }
  if (specifier.startsWith("node:")) return undefined;
  if (isBuiltin(specifier)) return `write "node:${specifier}": no package can take that name.`;
  const name = specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
  if (project.packages.runtime.has(name)) return undefined;
  if (!project.packages.dev.has(name)) return `${name} is not in package.json: declare it there.`;
  return isProgram ? `${name} is a development package, which users do not get.` : undefined;
}

/** What hides the graph from readers and from this tool. */
export const plainImports: Rule = (project) => {
  const words = {
    "computed import": "imports what only run time knows: name the file, so that it is found.",
    wildcard: "re-exports everything: name what is exported, so that a door stays narrow.",
    "default export": "has a default export: name it, so that it has one name everywhere.",
  };
  return [...project.code.values()]
    .filter((file) => file.path.endsWith(".ts"))
    .flatMap(({ path, module }) =>
      module.oddities.map(({ what, line }) => {
        return { path, line, rule: "plain-imports", message: words[what] };
      }),
    );
};

/** No file leans on itself through others, not even by types: the one cannot be read first. */
export const cycles: Rule = (project) => {
  const done = new Set<string>();
  const findings: Finding[] = [];
  for (const start of project.code.keys()) visit(start, []);
  return findings;

  function visit(path: string, trail: readonly string[]): void {
    const seenAt = trail.indexOf(path);
    if (seenAt !== -1) return void findings.push(cycleFinding([...trail.slice(seenAt), path]));
    if (done.has(path)) return;
    for (const target of project.code.get(path)?.targets ?? []) {
      visit(target.path, [...trail, path]);
    }
    done.add(path);
  }
};

function cycleFinding(trail: readonly string[]): Finding {
  const message = `${trail.join(" imports ")}: move what both need into a file of its own.`;
  return { path: trail[0] ?? "", line: 1, rule: "cycles", message };
}
