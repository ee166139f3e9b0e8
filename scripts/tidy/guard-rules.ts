import { type GuardCall, readGuards } from "./guards.ts";
import type { Finding, Project, Rule } from "./project.ts";

/** Where it is recorded by what each guard is caught. */
const guardRecord = "test/mutants/guards.json";

interface Marked extends GuardCall {
  readonly path: string;
}

/** Every guard has an id of its own, and is broken by the suite `mutants`. */
export const guards: Rule = (project) => {
  const marked = [...project.code.values()]
    .filter(({ path }) => path.startsWith("src/") && !path.endsWith(".test.ts"))
    .flatMap(({ path, code }) => readGuards(code).map((call) => ({ ...call, path })));
  const recorded = recordedIds(project);
  const ids = new Set(marked.map(({ id }) => id));
  return [
    ...marked.flatMap((call, index) => judge(call, marked.slice(0, index), recorded)),
    ...[...recorded]
      .filter(([id]) => !ids.has(id))
      .map(([id, line]) => {
        const message = `no guard in src has the id ${id}: take the entry out.`;
        return { path: guardRecord, line, rule: "guards", message };
      }),
  ];
};

function judge(
  { path, line, id }: Marked,
  before: readonly Marked[],
  recorded: ReadonlyMap<string, number>,
): Finding[] {
  const finding = (message: string): Finding[] => [{ path, line, rule: "guards", message }];
  if (id === undefined) return finding("the id of a guard is a literal, its first argument.");
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id)) {
    return finding(`the id of a guard is kebab-case, and ${id} is not.`);
  }
  const other = before.find((call) => call.id === id);
  if (other !== undefined) {
    return finding(`the id of a guard is used once: ${other.path}:${other.line} has ${id} too.`);
  }
  if (recorded.has(id)) return [];
  return finding(
    `nothing is known to notice when ${id} is broken: write a test that does, then ` +
      `npm run mutants -- --only ${id} --write.`,
  );
}

/** The ids in the record, with their lines. */
function recordedIds({ files }: Project): Map<string, number> {
  const text = files.find(({ path }) => path === guardRecord)?.text ?? "";
  const lines = text.split("\n").entries();
  const found = [...lines].map(([index, line]) => {
    return [/"id": "([^"]*)"/.exec(line)?.[1] ?? "", index + 1] as const;
  });
  return new Map(found.filter(([id]) => id !== ""));
}
